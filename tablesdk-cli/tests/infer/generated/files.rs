// The entities of the table Files, inferred from 4 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::{Guid, TableEntity};

/// 4 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "host:{host:escaped}",
    row_key = "{id}"
)]
pub struct File {
    /// In the partition key; 4 values.
    pub host: String,
    /// In the row key; 4 values.
    pub id: Guid,
    /// In all entities; always 4096.
    pub size: i64,
    /// In all entities.
    pub hash: Vec<u8>,
}
