// The entities of the table Sessions, inferred from 3 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::{TableEntity, Timestamp};

/// 3 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "session_{session:06}")]
pub struct Session {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 to 3.
    pub session: u32,
    /// In all entities; always `phone`.
    pub device: String,
    /// In 1 of 3 entities; 2124-03-15T10:20:30Z.
    pub until: Option<Timestamp>,
}
