//! Which partitions have entries, by the pointers of their writers.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tablesdk_protocol::{PartitionKey, TableName};

use super::entry::{OUTBOX, Row};
use super::head::{directories, read_pointer};
use super::view::{END, read};
use crate::error::Error;
use crate::pipeline::Table;

/// The partitions that have entries, with the pointers to each of them that are not new.
pub(super) async fn read_pointers(
    table: &Table,
    name: &TableName,
) -> Result<BTreeMap<PartitionKey, Vec<Row>>, Error> {
    let reads = directories().map(|directory| async move {
        let mut run = table.pipeline.begin(OPERATION);
        let rows = read(&mut run, name, &directory, (OUTBOX, END), usize::MAX).await;
        run.end(rows)
    });
    let reads: Vec<_> = stream::iter(reads).buffer_unordered(16).collect().await;
    let mut partitions: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for rows in reads {
        let rows = rows?;
        for row in &rows.found {
            if let Some((_, partition)) = read_pointer(row) {
                let old = partitions.entry(partition).or_default();
                old.extend((rows.age(row) > PATIENCE).then(|| row.clone()));
            }
        }
    }
    Ok(partitions)
}

const OPERATION: &str = "drain outbox";
/// A write that is in flight for longer is refused, and starts over.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
