//! The entity of the client's benches: one struct that our derive and serde read and write.

use std::fmt::Display;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tablesdk::{Guid, TableEntity, Timestamp};

/// Two keys and ten properties, of every type but Binary.
#[derive(Clone, Debug, PartialEq, TableEntity, Serialize, Deserialize)]
#[table(rename_all = "PascalCase")]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Employee {
    #[table(partition_key)]
    pub(crate) partition_key: String,
    #[table(row_key)]
    pub(crate) row_key: String,
    pub(crate) first_name: String,
    pub(crate) last_name: String,
    pub(crate) email: String,
    pub(crate) department: String,
    pub(crate) age: i32,
    #[serde(deserialize_with = "parsed", serialize_with = "printed")]
    pub(crate) badge: i64,
    pub(crate) salary: f64,
    pub(crate) remote: bool,
    #[serde(deserialize_with = "parsed", serialize_with = "printed")]
    pub(crate) hired: Timestamp,
    #[serde(deserialize_with = "parsed", serialize_with = "printed")]
    pub(crate) office: Guid,
}

impl Employee {
    pub(crate) fn new(number: u32) -> Self {
        let small = i64::from(number % 1000);
        let hired = Timestamp::from_unix_ticks(17_000_000_000_000_000 + small * 1_234_567);
        Self {
            partition_key: "sales".to_owned(),
            row_key: format!("{number:010}"),
            first_name: format!("Firstname{number:08}"),
            last_name: format!("Lastname{number:08}"),
            email: format!("employee{number:08}@contoso.example"),
            department: "Research and development".to_owned(),
            age: i32::try_from(small).unwrap_or_default(),
            badge: small << 33,
            salary: f64::from(number % 1000) * 101.25,
            remote: number.is_multiple_of(2),
            hired: hired.unwrap_or(Timestamp::UNIX_EPOCH),
            office: Guid::from_bytes(u128::from(number).to_be_bytes()),
        }
    }
}

/// Reads a value that JSON has as a string without escapes.
fn parsed<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<T, D::Error> {
    let text = <&str>::deserialize(deserializer)?;
    let value = text.parse();
    value.map_err(|_| serde::de::Error::custom("the string cannot be parsed"))
}

fn printed<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
