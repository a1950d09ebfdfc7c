// The entities of the table Logins20240311, inferred from 3 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::{TableEntity, Timestamp};

/// 3 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "{at}_{number:04}")]
pub struct Login {
    /// The partition key; 3 values.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 value.
    pub at: Timestamp,
    /// In the row key; 1 to 3.
    pub number: u32,
    /// In all entities.
    pub succeeded: bool,
}
