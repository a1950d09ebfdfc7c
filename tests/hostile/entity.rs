//! The entities that operations write: each bears the number of the operation.

use tablesdk::Stored;

pub(crate) use harness::written::Row;

use crate::judge::Snapshot;

pub(crate) fn snapshot(row: &Stored<Row>) -> Snapshot {
    Snapshot {
        token: row.token,
        a: row.a,
        b: row.b,
        etag: row.etag().clone(),
    }
}
