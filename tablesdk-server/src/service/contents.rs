//! The tables of an account as a whole: as text for people, and as lines of JSON to be saved and
//! loaded.

use std::fmt::Write as _;
use std::io;
use std::ops::ControlFlow;

use tablesdk_protocol::filter::Literal;
use tablesdk_protocol::operation::EntityBody;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::wire::json::{EntityHead, RawProperty, read_entity};
use tablesdk_protocol::wire::lines::{Line, Totals, write_entity};
use tablesdk_protocol::{ErrorCode, ServiceError, TableName, ValueRef, check_property_name};

use super::handler::stored;
use crate::engine::{
    Action, Change, Command, Engine, Entity, Failure, KeyBounds, Query, Scan, ScanBudget, TableScan,
};
use crate::flavor::Flavor;
use crate::storage::StorageError;

/// The tables and entities of an account as text: sorted, without timestamps, and one property a
/// line.
pub(crate) fn dump(engine: &Engine, account: &str) -> Result<String, StorageError> {
    let mut text = String::new();
    visit(engine, account, |table, entity| {
        let Some(entity) = entity else {
            text.push_str(table);
            text.push('\n');
            return Ok(());
        };
        let EntityHead {
            partition_key,
            row_key,
            ..
        } = entity.head();
        let [partition_key, row_key] =
            [partition_key, row_key].map(|key| Literal(ValueRef::String(key.into())));
        let _ = writeln!(
            text,
            "{table}(PartitionKey={partition_key},RowKey={row_key})"
        );
        let mut lines = Vec::new();
        for (name, value) in properties(engine.flavor(), entity)? {
            lines.push(match value {
                // As in JSON, because it may have line breaks.
                ValueRef::String(text) => {
                    format!("  {name} = {}\n", serde_json::Value::from(&*text))
                }
                value => format!("  {name} = {}\n", Literal(value)),
            });
        }
        lines.sort_unstable();
        text.extend(lines);
        Ok(())
    })?;
    Ok(text)
}

/// The tables and entities of an account as lines of JSON.
pub(crate) fn save(engine: &Engine, account: &str) -> Result<Vec<u8>, StorageError> {
    let mut lines = Vec::new();
    let mut totals = Totals::default();
    Line::Start.write(&mut lines);
    visit(engine, account, |table, entity| {
        let Some(entity) = entity else {
            totals.tables += 1;
            Line::Table(table.into()).write(&mut lines);
            return Ok(());
        };
        totals.entities += 1;
        let EntityHead {
            partition_key,
            row_key,
            timestamp,
        } = entity.head();
        let properties = properties(engine.flavor(), entity)?;
        let line = Line::Entity {
            table: table.into(),
            entity: write_entity(partition_key, row_key, Some(timestamp), properties).into(),
        };
        line.write(&mut lines);
        Ok(())
    })?;
    Line::End(totals).write(&mut lines);
    Ok(lines)
}

/// Creates the tables of the lines that do not exist, and inserts or replaces the entities.
///
/// # Errors
///
/// With the number of the line. The lines before it are loaded.
pub(crate) async fn load(engine: &Engine, account: &str, lines: &[u8]) -> io::Result<()> {
    let mut totals = Totals::default();
    for (index, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let at_line = |error: String| {
            let message = format!("line {}: {error}", index + 1);
            io::Error::new(io::ErrorKind::InvalidData, message)
        };
        let line = Line::read(line).map_err(|error| at_line(error.to_string()))?;
        let is_last = matches!(line, Line::End(_));
        let loaded = load_line(engine, account, line, &mut totals).await;
        loaded.map_err(at_line)?;
        if is_last {
            break;
        }
    }
    Ok(())
}

async fn load_line(
    engine: &Engine,
    account: &str,
    line: Line<'_>,
    totals: &mut Totals,
) -> Result<(), String> {
    match line {
        Line::Table(table) => {
            totals.tables += 1;
            create(engine, account, &name(&table)?).await?;
        }
        Line::Entity { table, entity } => {
            totals.entities += 1;
            let table = name(&table)?;
            create(engine, account, &table).await?;
            let body = EntityBody::from_bytes(entity.into_owned().into());
            let refused = |error: ServiceError| match problem(body.as_bytes()) {
                Some(problem) => format!("{} {}: {problem}", error.status().as_u16(), error.code()),
                None => error.to_string(),
            };
            let numbers = read_entity(body.as_bytes()).map(|entity| {
                let mut properties = entity.properties();
                properties.try_for_each(RawProperty::require_annotated)
            });
            if let Ok(Err(_)) = numbers {
                return Err(refused(ErrorCode::InvalidInput.into()));
            }
            let mut input = body
                .read_as(engine.flavor().entity_style())
                .map_err(refused)?;
            let key = input.take_key().map_err(refused)?;
            let properties = stored(input, &body, &key, engine.flavor(), false).map_err(refused)?;
            let change = Change {
                key: &key,
                action: Action::Update {
                    mode: Mode::Replace,
                    if_match: None,
                    properties: &properties,
                },
            };
            commit(engine, account, &Command::Change(&table, change)).await?;
        }
        Line::End(expected) if expected != *totals => {
            return Err(format!(
                "the file should have {} tables and {} entities, and has {} and {}",
                expected.tables, expected.entities, totals.tables, totals.entities
            ));
        }
        Line::Start | Line::End(_) => {}
    }
    Ok(())
}

/// The details that the service omits when it refuses an entity: the property, and the reason.
fn problem(entity: &[u8]) -> Option<String> {
    let entity = match read_entity(entity) {
        Ok(entity) => entity,
        Err(error) => return Some(error.to_string()),
    };
    for key in ["PartitionKey", "RowKey"] {
        match entity.text(key) {
            Ok(Some(_)) => {}
            Ok(None) => return Some(format!("property {key:?} is missing")),
            Err(error) => return Some(error.to_string()),
        }
    }
    entity.properties().find_map(|property| {
        let name = property.name();
        if let Err(error) = property.require_annotated() {
            return Some(error.to_string());
        }
        match (check_property_name(name), property.to_value_ref()) {
            (Err(problem), _) => Some(format!("property {name:?}: {problem}")),
            (_, Err(error)) => Some(error.to_string()),
            _ => None,
        }
    })
}

fn name(table: &str) -> Result<TableName, String> {
    TableName::new(table).map_err(|error| error.to_string())
}

async fn create(engine: &Engine, account: &str, table: &TableName) -> Result<(), String> {
    if engine.require_table(account, table).await.is_ok() {
        return Ok(());
    }
    commit(engine, account, &Command::CreateTable(table)).await
}

async fn commit(engine: &Engine, account: &str, command: &Command<'_>) -> Result<(), String> {
    match engine.commit(account, command).await {
        Ok(_) => Ok(()),
        Err(Failure::Rejected(rejection) | Failure::RejectedChange(_, rejection)) => {
            Err(ServiceError::from(rejection).to_string())
        }
        Err(Failure::Storage(error)) => Err(error.to_string()),
    }
}

/// Passes each table to the visitor, and after it its entities, in the order of names and keys.
fn visit(
    engine: &Engine,
    account: &str,
    mut visitor: impl FnMut(&str, Option<&Entity<'_>>) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let view = engine.local_view()?;
    let mut tables = Vec::new();
    let mut scan = TableScan::new(account, None, false, String::new());
    let add = |table| {
        tables.push(table);
        ControlFlow::Continue(())
    };
    scan.slice(&view, &mut ScanBudget::unlimited(), add)?;
    for table in tables {
        visitor(&table.name, None)?;
        let query = Query {
            table: table.id,
            filter: None,
            from: None,
            within: &KeyBounds::default(),
        };
        let visit = |entity: &Entity<'_>| {
            visitor(&table.name, Some(entity))?;
            Ok(ControlFlow::Continue(()))
        };
        Scan::new(&query).slice(&view, &mut ScanBudget::unlimited(), visit)?;
    }
    Ok(())
}

/// The names and values of an entity.
fn properties<'e>(
    flavor: Flavor,
    entity: &Entity<'e>,
) -> Result<Vec<(String, ValueRef<'e>)>, StorageError> {
    let damaged = || StorageError::corrupt("entity");
    let properties = entity.properties().map(|property| {
        let property = property?;
        let name = String::from_utf8(property.name().to_vec()).map_err(|_| damaged())?;
        Ok((name, property.value().ok_or_else(damaged)?))
    });
    let is_key = |name: &String| flavor.stores_key(name);
    properties
        .filter(|property| !property.as_ref().is_ok_and(|(name, _)| is_key(name)))
        .collect()
}
