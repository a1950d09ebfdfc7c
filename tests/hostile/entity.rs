//! The entities that operations write: each bears the number of the operation.

use tablesdk::{Stored, TableEntity};

use crate::judge::Snapshot;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
pub(crate) struct Row {
    #[table(partition_key)]
    pub(crate) partition: String,
    #[table(row_key)]
    pub(crate) row: String,
    /// The operation that wrote it last.
    pub(crate) token: i64,
    /// The operation that wrote all of it last.
    pub(crate) a: Option<i64>,
    /// The operation that wrote a part of it last, since.
    pub(crate) b: Option<i64>,
}

impl Row {
    /// What an insert or a replace writes.
    pub(crate) fn whole(partition: &str, row: &str, token: i64) -> Self {
        Self {
            partition: partition.to_owned(),
            row: row.to_owned(),
            token,
            a: Some(token),
            b: None,
        }
    }

    /// What a merge writes.
    pub(crate) fn part(partition: &str, row: &str, token: i64) -> Self {
        Self {
            a: None,
            b: Some(token),
            ..Self::whole(partition, row, token)
        }
    }
}

pub(crate) fn snapshot(row: &Stored<Row>) -> Snapshot {
    Snapshot {
        token: row.token,
        a: row.a,
        b: row.b,
        etag: row.etag().clone(),
    }
}
