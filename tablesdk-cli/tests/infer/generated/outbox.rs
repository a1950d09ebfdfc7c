// The entities of the table Departments, inferred from 3 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::TableEntity;

/// 3 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "department")]
pub struct Department {
    /// The partition key; 3 values.
    #[table(partition_key)]
    pub partition_key: String,
    /// In all entities; the same as the partition key.
    pub title: String,
}
