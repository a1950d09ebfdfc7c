//! The steps of outboxes that wait, or were set aside, as they are stored. This module changes
//! none.

use std::collections::BTreeSet;

use futures::TryStreamExt as _;
use serde::Serialize;
use tablesdk::{DynamicEntity, Error, TableClient};

use super::{AsStored, DEAD, LOG, MESSAGE, OUTBOX, STEP};

/// A step of an outbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Step {
    /// The partition of the transaction that it follows.
    pub partition: String,
    /// The number of the step among those of the partition.
    pub number: u64,
    /// True if the step was set aside. Otherwise a worker will apply it.
    pub poisoned: bool,
    /// The change, such as `upsert_replace` or `delete`, or `message`.
    pub kind: String,
    /// The entity that it changes: its table and its keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<(String, String, String)>,
    /// The name of its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The number of attempts.
    pub attempts: i32,
    /// The error of the last attempt; empty if there is none.
    pub error: String,
}

impl Step {
    fn of(row: &DynamicEntity) -> Option<Self> {
        let row_key = row.row_key();
        let poisoned = row_key.strip_prefix(DEAD);
        let number = poisoned.or_else(|| row_key.strip_prefix(LOG))?;
        let text = |name| row.properties().read::<String>(name).ok();
        let kind = text(STEP).unwrap_or_default();
        Some(Self {
            partition: row.partition_key().to_owned(),
            number: number.parse().ok()?,
            poisoned: poisoned.is_some(),
            target: text(TABLE)
                .zip(text(PARTITION_KEY))
                .zip(text(ROW_KEY))
                .map(|((table, partition), row)| (table, partition, row)),
            message: text(MESSAGE_NAME).filter(|_| kind == MESSAGE),
            kind,
            attempts: row.properties().read(ATTEMPTS).unwrap_or_default(),
            error: text(ERROR).unwrap_or_default(),
        })
    }
}

/// The partitions whose outbox has steps. It may have become empty a moment ago.
///
/// # Errors
///
/// The errors of the service, such as `TableNotFound`.
pub async fn partitions(table: &TableClient) -> Result<BTreeSet<String>, Error> {
    let pointers = table.query::<AsStored>().odata(POINTERS);
    let mut found = pointers.stream();
    let mut partitions = BTreeSet::new();
    while let Some(pointer) = found.try_next().await? {
        partitions.extend(pointer.0.properties().read::<String>(POINTED).ok());
    }
    Ok(partitions)
}

/// The steps of a partition, those that were set aside first, in their order.
///
/// # Errors
///
/// The errors of the service.
pub async fn steps(table: &TableClient, partition: &str) -> Result<Vec<Step>, Error> {
    let rows = table.query::<AsStored>().partition(partition);
    let range = format!("RowKey ge '{OUTBOX}' and RowKey lt '{LOG}~'");
    let rows = rows.odata(&range).collect().await?;
    Ok(rows.iter().filter_map(|row| Step::of(&row.0)).collect())
}

const POINTERS: &str =
    "PartitionKey ge '~tablesdk.outbox.' and PartitionKey lt '~tablesdk.outbox.~'";
const POINTED: &str = "TablesdkPartition";
const TABLE: &str = "TablesdkTable";
const PARTITION_KEY: &str = "TablesdkPartitionKey";
const ROW_KEY: &str = "TablesdkRowKey";
const MESSAGE_NAME: &str = "TablesdkMessage";
const ATTEMPTS: &str = "TablesdkAttempts";
const ERROR: &str = "TablesdkError";
