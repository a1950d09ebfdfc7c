// The entities of the table Archive, inferred from 12 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::TableEntity;

/// 12 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "empid_{empid:06}")]
pub struct Archive {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 to 12.
    pub empid: u32,
    /// In all entities.
    pub name: String,
    /// In 6 of 12 entities; 2002 to 2012.
    pub left: Option<i32>,
}
