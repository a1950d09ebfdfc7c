//! Each type that cannot be stored, or not in this way, has one message.
use std::collections::HashMap;

use tablesdk::series::Series;
use tablesdk::{DynamicEntity, ETag, PropertyValue, TableEntity, Timestamp};

#[derive(TableEntity)]
#[table(partition_key = "{country}", row_key = "{id}")]
struct NotValues {
    country: String,
    id: String,
    count: usize,
    letter: char,
    words: Vec<String>,
    map: HashMap<String, String>,
    twice: Option<Option<i32>>,
    pair: (i32, i32),
    array: [u8; 4],
    boxed: Box<str>,
    not_flattened: Series<i32, 24>,
}

struct Ordinary;

#[derive(TableEntity)]
#[table(partition_key = "{country}", row_key = "{id}")]
struct NotOfThisWay {
    country: String,
    id: String,
    #[table(flatten)]
    home: Ordinary,
    #[table(json)]
    tags: Ordinary,
    #[table(with = "cents")]
    pay: Ordinary,
    #[table(default)]
    at: Timestamp,
    #[table(skip)]
    seen: std::time::Instant,
    /// An entity that was not read has no ETag.
    #[table(etag)]
    etag: ETag,
    /// It keeps exact types.
    #[table(rest)]
    other: HashMap<String, String>,
}

/// One of the functions is missing.
mod cents {
    pub(super) type Property = i64;
    pub(super) fn to_property(_: &super::Ordinary) -> Result<i64, tablesdk::entity::ValueError> {
        Ok(5)
    }
}

/// A slot is absent without a value.
#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct SeriesOfOptions {
    employee: String,
    day: String,
    #[table(flatten, prefix = "H")]
    hours: Series<Option<i32>, 24>,
}

/// A newtype is stored as its field.
#[derive(PropertyValue)]
struct Strange(std::net::IpAddr);

fn main() {
    let _ = DynamicEntity::new("a", "1").with("Address", std::net::Ipv4Addr::LOCALHOST);
}
