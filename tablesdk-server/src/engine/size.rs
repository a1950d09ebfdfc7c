//! The size of an entity as the service computes it. It differs from the size of the JSON and from
//! the size of the record.
//!
//! This module knows neither storage nor JSON. See
//! <https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model>.

use tablesdk_protocol::{EntityKey, ValueRef};

/// The bytes that the service counts for an entity. The timestamp costs nothing.
pub(crate) fn entity_bytes<'v, E>(
    key: &EntityKey,
    properties: impl Iterator<Item = Result<(&'v str, ValueRef<'v>), E>>,
) -> Result<usize, E> {
    let keys = utf16_bytes(key.partition_key().as_str()) + utf16_bytes(key.row_key().as_str());
    let mut bytes = 4 + keys;
    for property in properties {
        let (name, value) = property?;
        bytes += property_bytes(name, &value);
    }
    Ok(bytes)
}

fn property_bytes(name: &str, value: &ValueRef<'_>) -> usize {
    8 + utf16_bytes(name) + value.counted_bytes()
}

fn utf16_bytes(text: &str) -> usize {
    text.encode_utf16().count() * 2
}

#[cfg(test)]
mod tests {
    use tablesdk_protocol::{Guid, Timestamp, Value};

    use super::*;

    #[test]
    fn sizes_follow_the_formula() {
        let key = EntityKey::new("p😀", "rk").unwrap();
        for (value, size) in [
            (Value::Binary(vec![0; 10]), 14),
            (Value::Boolean(true), 1),
            (Value::DateTime(Timestamp::UNIX_EPOCH), 8),
            (Value::Double(1.0), 8),
            (Value::Guid(Guid::default()), 16),
            (Value::Int32(1), 4),
            (Value::Int64(1), 8),
            (Value::from("né😀"), 12),
        ] {
            let property = std::iter::once(Ok::<_, ()>(("naïve", value.as_ref())));
            let expected = Ok(4 + 10 + 8 + 10 + size);
            assert_eq!(entity_bytes(&key, property), expected, "{value:?}");
        }
        let none = std::iter::empty::<Result<(&str, ValueRef<'_>), ()>>();
        assert_eq!(entity_bytes(&key, none), Ok(14));
    }
}
