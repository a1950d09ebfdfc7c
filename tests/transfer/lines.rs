//! Records as lines: every entity is read back unchanged, and a malformed line gives an error that says what is wrong.

use tablesdk::transfer::Record;
use tablesdk::{DynamicEntity, ErrorKind, Guid, Timestamp, Value};

use crate::{assert_same, content};

#[test]
fn any_entity_survives_as_a_line() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..2_000 {
        let record = Record::Entity {
            table: "Random".to_owned(),
            entity: entity(&mut random),
        };
        let mut line = Vec::new();
        record.write_line(&mut line).unwrap();
        let is_inner = line.iter().rev().skip(1).any(|byte| *byte == b'\n');
        assert!(!is_inner, "one line");
        assert_eq!(line.last(), Some(&b'\n'));
        let read = Record::read_line(&line).unwrap();
        let table = Record::Table {
            name: "Random".to_owned(),
        };
        assert_same(&content(&[table.clone(), read]), &content(&[table, record]));
    }
}

fn entity(random: &mut fastrand::Rng) -> DynamicEntity {
    let mut entity = DynamicEntity::new(text(random, 40, true), text(random, 40, true));
    for index in 0..random.usize(..8) {
        let value = match random.u8(..8) {
            0 => Value::Binary((0..random.usize(..50)).map(|_| random.u8(..)).collect()),
            1 => Value::Boolean(random.bool()),
            2 => {
                let at = "2021-01-19T17:08:02.4069791Z".parse::<Timestamp>();
                Value::DateTime(at.unwrap())
            }
            3 => Value::Double(f64::from_bits(random.u64(..)) + 0.0),
            4 => Value::Guid(Guid::from_bytes(random.u128(..).to_be_bytes())),
            5 => Value::Int32(random.i32(..)),
            6 => Value::Int64(random.i64(..)),
            _ => Value::String(text(random, 200, false)),
        };
        // What is no number has one form.
        let value = match value {
            Value::Double(double) if double.is_nan() => Value::Double(f64::NAN),
            value => value,
        };
        entity.properties_mut().set(format!("P{index}"), value);
    }
    entity
}

fn text(random: &mut fastrand::Rng, units_max: usize, is_key: bool) -> String {
    let count = random.usize(..units_max);
    let chars = std::iter::repeat_with(|| random.char(..))
        .filter(|c| !is_key || !(c.is_control() || "/\\#?".contains(*c)));
    chars.take(count / 2).collect()
}

#[test]
fn a_timestamp_is_kept_in_the_file() {
    let line = br#"{"table":"Logs","entity":{"PartitionKey":"p","RowKey":"r","Timestamp":"2021-01-19T17:08:02.4069791Z","A":1}}"#;
    let record = Record::read_line(line).unwrap();
    let Record::Entity { entity, .. } = &record else {
        panic!("{record:?} is an entity");
    };
    let at = "2021-01-19T17:08:02.4069791Z".parse().unwrap();
    assert_eq!(entity.timestamp(), Some(at));
    assert_eq!(
        entity.properties().len(),
        1,
        "it is no property of the user"
    );
    let mut written = Vec::new();
    record.write_line(&mut written).unwrap();
    assert_eq!(written.strip_suffix(b"\n"), Some(&line[..]));
}

#[test]
fn what_is_no_record_says_what_is_wrong() {
    for (line, problem) in [
        (
            r#"{"table":"Logs","entity":{"RowKey":"r"}}"#,
            "PartitionKey",
        ),
        (
            r#"{"table":"Logs","entity":{"PartitionKey":"p","RowKey":"r","A":[]}}"#,
            "array or object",
        ),
        (
            r#"{"table":"Logs","entity":{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Int32","A":"x"}}"#,
            "Edm.Int32",
        ),
        (
            r#"{"table":"Logs","entity":{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Byte","A":"1"}}"#,
            "eight EDM types",
        ),
        (
            r#"{"table":"Logs","entity":{"PartitionKey":"p","RowKey":"r","Timestamp":"now"}}"#,
            "Timestamp",
        ),
        (r#"{"table":"1Logs"}"#, "1Logs"),
        ("PartitionKey,RowKey", "line 1"),
    ] {
        let error = Record::read_line(line.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let text = format!("{error:?}");
        assert!(text.contains(problem), "{line}: {text}");
    }
    let unwritable = [
        Record::Table {
            name: "a".to_owned(),
        },
        Record::Entity {
            table: "Logs".to_owned(),
            entity: DynamicEntity::new("a/b", "c"),
        },
        Record::Entity {
            table: "Logs".to_owned(),
            entity: {
                let mut entity = DynamicEntity::new("a", "b");
                entity.properties_mut().set("a b", 1);
                entity
            },
        },
    ];
    for record in unwritable {
        let mut out = Vec::new();
        let error = record.write_line(&mut out).unwrap_err();
        assert_eq!((error.kind(), out.len()), (ErrorKind::Input, 0));
    }
}
