// The entities of the table Titles, inferred from 3 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::TableEntity;

/// 3 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
pub struct Title {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// The row key; 3 values.
    #[table(row_key)]
    pub row_key: String,
    /// In all entities.
    pub title: String,
}
