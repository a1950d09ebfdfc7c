// The entities of the table Claims, inferred from 10 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::{TableEntity, Timestamp};

/// 10 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "{at:desc}_{number:04}")]
pub struct Claim {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 10 values.
    pub at: Timestamp,
    /// In the row key; always 1.
    pub number: u32,
    /// In all entities; always 12.5.
    pub amount: f64,
}
