//! Export and import of tables as lines of JSON; the format of the lines is `tablesdk_protocol::wire::json_lines`.
//!
//! Export and import use the engine without requests. An export is a snapshot of one moment. An import writes as if a request
//! inserted or replaced each entity.

use std::io::{self, BufRead, Write};

use tablesdk_protocol::operation::EntityInput;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::wire::json::EntityWriter;
use tablesdk_protocol::wire::json_lines::{self, LINE_BYTES_MAX, Line, Totals};
use tablesdk_protocol::{EntityKey, ServiceError, TableName, ValueRef};

use crate::engine::{
    Action, Change, Command, Engine, Entity, Failure, Progress, Query, Rejection, Scan, Span,
    Table, TableScan, View, Work,
};
use crate::storage::StorageError;

/// Writes all tables of an account with all their entities. Periodically calls `progress` with the number of entities so far.
pub(crate) fn export(
    engine: &Engine,
    account: &str,
    mut to: impl Write,
    mut progress: impl FnMut(u64),
) -> io::Result<Totals> {
    let view = engine.read();
    let mut line = Vec::new();
    json_lines::write_start(&mut line);
    to.write_all(&line)?;
    let mut totals = Totals::default();
    for table in tables(&view, account).map_err(io::Error::other)? {
        let name = TableName::new(&table.name).map_err(io::Error::other)?;
        line.clear();
        json_lines::write_table(&mut line, &name);
        to.write_all(&line)?;
        totals.tables += 1;
        let everywhere = Span::default();
        let mut scan = Scan::new(&Query {
            table: table.id,
            filter: None,
            from: None,
            within: &everywhere,
        });
        let mut written = Ok(());
        let mut visit = |entity: &Entity<'_>| {
            line.clear();
            json_lines::write_entity(&mut line, &name, &entity_json(entity)?);
            written = to.write_all(&line);
            totals.entities += 1;
            Ok(match written {
                Ok(()) => std::ops::ControlFlow::Continue(()),
                Err(_) => std::ops::ControlFlow::Break(()),
            })
        };
        while let Progress::Paused = scan
            .slice(&view, &mut Work::slice(), &mut visit)
            .map_err(io::Error::other)?
        {}
        written?;
        progress(totals.entities);
    }
    line.clear();
    json_lines::write_end(&mut line, totals);
    to.write_all(&line)?;
    to.flush()?;
    Ok(totals)
}

fn tables(view: &View, account: &str) -> Result<Vec<Table>, StorageError> {
    let mut tables = Vec::new();
    let mut scan = TableScan::new(account, None, String::new());
    let mut visit = |table| {
        tables.push(table);
        std::ops::ControlFlow::Continue(())
    };
    while let Progress::Paused = scan.slice(view, &mut Work::slice(), &mut visit)? {}
    Ok(tables)
}

fn entity_json(entity: &Entity<'_>) -> Result<Vec<u8>, StorageError> {
    let head = entity.head();
    let mut writer = EntityWriter::new();
    for (name, key) in [
        ("PartitionKey", head.partition_key),
        ("RowKey", head.row_key),
    ] {
        writer.property(name, &ValueRef::String(key.into()));
    }
    writer.property("Timestamp", &ValueRef::DateTime(head.timestamp));
    for (name, value) in entity.properties()? {
        writer.property(name, &value);
    }
    Ok(writer.finish().to_vec())
}

/// Stores tables and entities, after skipping the first `skip` lines. Periodically calls `settled` with the number of the line up
/// to which all lines are stored.
pub(crate) fn import(
    engine: &Engine,
    account: &str,
    mut from: impl BufRead,
    skip: u64,
    mut settled: impl FnMut(u64),
) -> io::Result<Totals> {
    let mut totals = Totals::default();
    let mut line = Vec::new();
    let mut is_whole = false;
    for number in 1_u64.. {
        line.clear();
        // One byte more than a line can have, so that a longer one is seen to be too long.
        let length_max = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX) + 2;
        let mut limited = io::Read::take(&mut from, length_max);
        if limited.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let in_line = |why: &dyn std::fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidData, format!("line {number}: {why}"))
        };
        if is_whole {
            return Err(in_line(&"there is more behind the last line of an export"));
        }
        let parsed = json_lines::read_line(text).map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            match cause {
                Some(cause) => in_line(&format!("{error}: {cause}")),
                None => in_line(&error),
            }
        })?;
        match parsed {
            Line::Start if number == 1 => {}
            _ if number == 1 => return Err(in_line(&"an export begins with its format")),
            Line::Table { name } => {
                totals.tables += 1;
                if number > skip {
                    create(engine, account, &name).map_err(|why| in_line(&why))?;
                }
            }
            Line::Entity { table, entity } => {
                totals.entities += 1;
                if number > skip {
                    let input = EntityInput::of(&entity).map_err(|why| in_line(&told(&why)))?;
                    put(engine, account, &table, input).map_err(|why| in_line(&why))?;
                }
            }
            Line::End(counted) if counted == totals => is_whole = true,
            Line::End(counted) => {
                return Err(in_line(&format!(
                    "the export says that it has {} tables and {} entities, but it has {} and {}",
                    counted.tables, counted.entities, totals.tables, totals.entities
                )));
            }
            _ => return Err(in_line(&"this is no line of an export's middle")),
        }
        if number > skip && number.is_multiple_of(SETTLE_LINES) {
            engine.settle_on_this_thread().map_err(io::Error::other)?;
            settled(number);
        }
    }
    engine.settle_on_this_thread().map_err(io::Error::other)?;
    if !is_whole {
        let message = "the export was cut short: its last line is missing, all before is stored";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
    }
    Ok(totals)
}

fn create(engine: &Engine, account: &str, name: &TableName) -> Result<(), String> {
    match engine.commit_unawaited(account, &Command::CreateTable(name)) {
        Ok(()) | Err(Failure::Rejected(Rejection::TableAlreadyExists)) => Ok(()),
        Err(failure) => Err(explain(failure)),
    }
}

fn put(
    engine: &Engine,
    account: &str,
    table: &TableName,
    input: EntityInput,
) -> Result<(), String> {
    let key: EntityKey = input.key().map_err(|error| told(&error))?;
    let properties = input.into_properties();
    let properties = properties.map_err(|error| told(&error))?;
    let action = Action::Update {
        mode: Mode::Replace,
        if_match: None,
        properties: &properties,
    };
    let change = Change { key: &key, action };
    let command = Command::Change(table, change);
    engine.commit_unawaited(account, &command).map_err(explain)
}

fn explain(failure: Failure) -> String {
    match failure {
        Failure::Rejected(rejection) | Failure::RejectedChange(_, rejection) => {
            told(&ServiceError::from(rejection))
        }
        Failure::Storage(error) => error.to_string(),
    }
}

fn told(error: &ServiceError) -> String {
    format!("{}: {}", error.code().as_str(), error.message())
}

/// After so many lines it is made sure that they are stored.
const SETTLE_LINES: u64 = 1000;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tablesdk_protocol::{Clock, Guid, Timestamp, Value};

    use super::*;
    use crate::engine::Paging;
    use crate::stamp::tests::ManualClock;
    use crate::storage::MemoryStorage;

    fn engine() -> Engine {
        let clock = ManualClock::new("2024-03-15T10:20:30Z") as Arc<dyn Clock>;
        Engine::new(Box::new(MemoryStorage::default()), clock, Paging::default()).unwrap()
    }

    /// With a property of every type, in its awkward values, under awkward keys.
    fn filled() -> Engine {
        let engine = engine();
        let text = |value: &str| Value::from(value);
        let values = [
            Value::Binary(vec![0, 255, 7]),
            Value::Binary(Vec::new()),
            Value::Boolean(true),
            Value::DateTime(Timestamp::MIN),
            Value::DateTime(Timestamp::MAX),
            Value::Double(f64::NEG_INFINITY),
            Value::Double(-0.0),
            Value::Double(5.0),
            Value::Double(f64::MIN_POSITIVE),
            Value::Guid(Guid::from_bytes([0xAB; 16])),
            Value::Int32(i32::MIN),
            Value::Int64(i64::MIN),
            Value::Int64(5),
            text(""),
            text("quote \" slash \\ line\nnul \0 😀 \u{FFFF}"),
        ];
        let properties: Vec<_> = (0..)
            .zip(values)
            .map(|(number, value)| (format!("p{number}"), value))
            .collect();
        for name in ["Empty", "people"] {
            let name = name.parse().unwrap();
            engine
                .commit_unawaited("acct", &Command::CreateTable(&name))
                .unwrap();
        }
        let table = "people".parse().unwrap();
        for key in ["", " ", "a'b", "\"", "😀", "\u{FFFF}", "é", "{}", "%2F"] {
            let key = &EntityKey::new(key, key).unwrap();
            let action = Action::Insert(&properties);
            let insert = Command::Change(&table, Change { key, action });
            engine.commit_unawaited("acct", &insert).unwrap();
        }
        engine
    }

    fn exported(engine: &Engine) -> String {
        let mut lines = Vec::new();
        let totals = export(engine, "acct", &mut lines, |_| {}).unwrap();
        assert_eq!((totals.tables, totals.entities), (2, 9));
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn what_is_exported_is_imported_as_it_was() {
        let first = exported(&filled());
        let other = engine();
        for skip in [0, 3] {
            import(&other, "acct", first.as_bytes(), skip, |_| {}).unwrap();
            let without_times = |text: &str| {
                let parts =
                    text.split("\"Timestamp@odata.type\":\"Edm.DateTime\",\"Timestamp\":\"");
                let rest = parts.map(|part| part.split_once("Z\",").map_or(part, |(_, rest)| rest));
                rest.collect::<String>()
            };
            assert_eq!(without_times(&exported(&other)), without_times(&first));
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let whole = exported(&filled());
        let refused = |text: &str| {
            let error = import(&engine(), "acct", text.as_bytes(), 0, |_| {}).unwrap_err();
            error.to_string()
        };
        let cut = whole.rsplit_once("{\"end\"").unwrap().0;
        assert!(refused(cut).contains("cut short"));
        assert!(refused("").contains("cut short"));
        assert!(refused(&whole.replacen("{\"table\"", "{\"chair\"", 1)).starts_with("line 2: "));
        let missing = whole.replacen("{\"table\":\"people\"}\n", "", 1);
        assert!(refused(&missing).contains("line 3: TableNotFound"));
        assert!(
            refused(&whole.replace("\"entities\":9", "\"entities\":8")).contains("it has 2 and 9")
        );
        assert!(refused(&(whole + "{}\n")).contains("more behind the last line"));
        assert!(refused("{\"table\":\"x1y\"}\n").contains("begins with its format"));
    }
}
