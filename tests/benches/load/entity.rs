//! The entities of the load program.

use tablesdk_protocol::operation::EntityBody;
use tablesdk_protocol::wire::json::EntityWriter;
use tablesdk_protocol::{Guid, Timestamp, Value};

/// An entity with ten properties, of every type but Binary, and strings of that many bytes
/// together, if any.
pub(crate) fn entity(partition: &str, row: &str, number: usize, text_bytes: usize) -> EntityBody {
    let small = i32::try_from(number % 1000).unwrap_or_default();
    let guid = Guid::from_bytes((number as u128).to_be_bytes());
    let hired = Timestamp::from_unix_ticks(17_000_000_000_000_000 + i64::from(small) * 1_234_567);
    let properties = [
        ("FirstName", Value::from(format!("Firstname{number:08}"))),
        ("LastName", Value::from(format!("Lastname{number:08}"))),
        (
            "Email",
            Value::from(format!("employee{number:08}@contoso.example")),
        ),
        ("Department", Value::from("Research and development")),
        ("Age", Value::from(small)),
        ("Badge", Value::from(i64::from(small) << 33)),
        ("Salary", Value::from(f64::from(small) * 101.25)),
        ("Remote", Value::from(number.is_multiple_of(2))),
        ("Hired", Value::from(hired.unwrap_or(Timestamp::UNIX_EPOCH))),
        ("Office", Value::from(guid)),
    ];
    let mut writer = EntityWriter::new();
    for (name, key) in [("PartitionKey", partition), ("RowKey", row)] {
        writer.property(name, &Value::from(key).as_ref());
    }
    for (name, value) in &properties {
        writer.property(name, &value.as_ref());
    }
    for (part, start) in (0..text_bytes).step_by(STRING_BYTES).enumerate() {
        let text = text(number, STRING_BYTES.min(text_bytes - start));
        writer.property(&format!("Notes{part}"), &Value::from(text).as_ref());
    }
    EntityBody::from_bytes(writer.finish())
}

/// Another one for each number, which can hardly be compressed.
fn text(number: usize, bytes: usize) -> String {
    let mut rng = fastrand::Rng::with_seed(number as u64);
    (0..bytes).map(|_| rng.alphanumeric()).collect()
}

/// Fewer than the service allows in one string.
const STRING_BYTES: usize = 30_000;
