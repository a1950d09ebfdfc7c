//! Entities that bear the number of the operation that wrote them, so that a reader knows whose
//! write it sees.

use tablesdk::TableEntity;

/// An entity with the numbers of the operations that its content is of.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
pub struct Row {
    /// The partition key.
    #[table(partition_key)]
    pub partition: String,
    /// The row key.
    #[table(row_key)]
    pub row: String,
    /// The operation that wrote it last.
    pub token: i64,
    /// The operation that wrote all of it last.
    pub a: Option<i64>,
    /// The operation that wrote a part of it last, since.
    pub b: Option<i64>,
}

impl Row {
    /// The entity that an insert or a replace writes.
    pub fn whole(partition: &str, row: &str, token: i64) -> Self {
        Self {
            partition: partition.to_owned(),
            row: row.to_owned(),
            token,
            a: Some(token),
            b: None,
        }
    }

    /// The properties that a merge writes.
    pub fn part(partition: &str, row: &str, token: i64) -> Self {
        Self {
            a: None,
            b: Some(token),
            ..Self::whole(partition, row, token)
        }
    }
}
