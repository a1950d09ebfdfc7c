// The entities of the table Remarks, inferred from 3 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::TableEntity;

/// 3 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "{year:04}")]
pub struct Remark {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 2021 to 2023.
    pub year: u32,
    /// In all entities.
    pub remarks: String,
    /// In all entities.
    #[table(rename = "Remarks__1")]
    pub remarks_1: String,
    /// In all entities; `Remarks` is a value in chunks: read and write it by `tablesdk::chunked::Chunked`.
    #[table(rename = "Remarks__n")]
    pub remarks_n: i32,
    /// In all entities; `Remarks` is a value in chunks: read and write it by `tablesdk::chunked::Chunked`.
    #[table(rename = "Remarks__sha")]
    pub remarks_sha: Vec<u8>,
}
