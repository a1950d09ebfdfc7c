//! The format of lines: golden lines, every entity unchanged, and an error for each malformed line.

use std::error::Error;

use tablesdk::{DynamicEntity, Guid, Timestamp, Value};
use tablesdk_cli::lines::{Line, LineError, MAX_LINE_BYTES, Totals};

use crate::text;

fn written(line: &Line) -> Vec<u8> {
    let mut out = Vec::new();
    line.write(&mut out);
    out
}

#[test]
fn a_file_has_the_documented_format() {
    let table = "Employees".to_owned();
    let mut entity = DynamicEntity::new("Sales", "a\nb");
    entity.properties_mut().set("Badge", Value::Int64(7));
    let totals = Totals {
        tables: 1,
        entities: 1,
    };
    for (line, expected) in [
        (Line::Start, r#"{"format":"tablesdk","version":1}"#),
        (Line::Table(table.clone()), r#"{"table":"Employees"}"#),
        (
            Line::Entity { table, entity },
            r#"{"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"a\nb","Badge@odata.type":"Edm.Int64","Badge":"7"}}"#,
        ),
        (Line::End(totals), r#"{"end":{"tables":1,"entities":1}}"#),
    ] {
        assert_eq!(written(&line), format!("{expected}\n").into_bytes());
        assert_eq!(Line::read(expected.as_bytes()).unwrap(), line);
    }
}

#[test]
fn random_entities_are_unchanged() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..2_000 {
        let entity = entity(&mut random);
        let table = "Random".to_owned();
        let line = written(&Line::Entity {
            table,
            entity: entity.clone(),
        });
        let content = line.strip_suffix(b"\n").unwrap();
        assert!(!content.contains(&b'\n'));
        let Line::Entity { entity: read, .. } = Line::read(&line).unwrap() else {
            panic!("the line is an entity");
        };
        assert_eq!(text(&read), text(&entity));
    }
}

fn entity(random: &mut fastrand::Rng) -> DynamicEntity {
    let mut string = |max: usize| -> String {
        let count = random.usize(..max);
        std::iter::repeat_with(|| random.char(..))
            .take(count)
            .collect()
    };
    let mut entity = DynamicEntity::new(string(20), string(20));
    let text = string(100);
    for index in 0..random.usize(..8) {
        let value = match random.u8(..8) {
            0 => Value::Binary((0..random.usize(..50)).map(|_| random.u8(..)).collect()),
            1 => Value::Boolean(random.bool()),
            2 => Value::DateTime("2021-01-19T17:08:02.4069791Z".parse::<Timestamp>().unwrap()),
            // There is one NaN in JSON.
            3 => match f64::from_bits(random.u64(..)) {
                number if number.is_nan() => Value::Double(f64::NAN),
                number => Value::Double(number),
            },
            4 => Value::Guid(Guid::from_bytes(random.u128(..).to_be_bytes())),
            5 => Value::Int32(random.i32(..)),
            6 => Value::Int64(random.i64(..)),
            _ => Value::String(text.clone()),
        };
        entity.properties_mut().set(format!("P{index}"), value);
    }
    entity
}

#[test]
fn malformed_lines_are_rejected_with_the_reason() {
    let entity = |json: &str| format!(r#"{{"table":"Logs","entity":{json}}}"#);
    let members = "members of a line";
    let form = "neither a table nor an entity";
    for (line, problem) in [
        (String::new(), members),
        ("PartitionKey,RowKey".to_owned(), members),
        ("[]".to_owned(), members),
        ("{".to_owned(), members),
        ("{}{}".to_owned(), members),
        (r#"{"table":"Logs","more":1}"#.to_owned(), members),
        (r#"{"table":"Logs","table":"B"}"#.to_owned(), members),
        (r#"{"end":{"tables":1}}"#.to_owned(), members),
        (r#"{"end":{"tables":-1,"entities":0}}"#.to_owned(), members),
        ("{}".to_owned(), form),
        (r#"{"entity":{}}"#.to_owned(), form),
        (r#"{"format":"tablesdk"}"#.to_owned(), form),
        (
            r#"{"table":"Logs","end":{"tables":1,"entities":1}}"#.to_owned(),
            form,
        ),
        (
            r#"{"format":"csv","version":1}"#.to_owned(),
            "format of the file",
        ),
        (
            r#"{"format":"tablesdk","version":2}"#.to_owned(),
            "version 2",
        ),
        (r#"{"table":"1Logs"}"#.to_owned(), "1Logs"),
        (entity("[]"), "entity is malformed"),
        (
            entity(r#"{"PartitionKey":"p","RowKey":"r","At":1498179600055}"#),
            "property \"At\": an integer beyond Edm.Int32 needs an annotation: Edm.Int64, with the number in quotes, or Edm.Double",
        ),
        (entity(r#"{"a":1,"a":2}"#), "a property twice"),
        (entity(r#"{"RowKey":"r"}"#), "no PartitionKey"),
        (
            entity(r#"{"PartitionKey":"p","RowKey":"r","A":[]}"#),
            "array or object",
        ),
        (
            entity(r#"{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Int32","A":"x"}"#),
            "Edm.Int32",
        ),
        (
            entity(r#"{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Byte","A":"1"}"#),
            "eight EDM types",
        ),
        (
            entity(r#"{"PartitionKey":"p","RowKey":"r","Timestamp":"now"}"#),
            "Timestamp",
        ),
    ] {
        let error = Line::read(line.as_bytes()).unwrap_err();
        let shown = error.to_string();
        assert!(error.source().is_none(), "the message says all: {shown}");
        assert!(shown.contains(problem), "{line}: {shown}");
    }
    let long = vec![b' '; MAX_LINE_BYTES + 1];
    assert!(matches!(Line::read(&long), Err(LineError::Line(_))));
}

#[test]
fn deep_nesting_needs_no_stack() {
    let depth = 100_000;
    let nested = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let line = format!(r#"{{"table":"Logs","entity":{{"a":{nested}}}}}"#);
    let thread = std::thread::Builder::new().stack_size(256 * 1024);
    let read = move || Line::read(line.as_bytes()).is_err();
    assert!(thread.spawn(read).unwrap().join().unwrap());
}
