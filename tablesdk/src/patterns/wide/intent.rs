//! The intent of a write that takes several transactions, and the clean-up of the siblings of one
//! that did not end.
//!
//! Each of the transactions changes the intent, under the ETag that the one before gave it; the
//! last one deletes it, and writes the head. So siblings have an intent, or a head that names their
//! version. A clean-up deletes an intent and the siblings of its version in one transaction, under
//! the ETag of the intent. What the writer sends afterwards is refused, however late it arrives. So
//! a clean-up that takes a slow writer for one that ended fails its write, and does no other harm.

use std::time::Duration;

use bytes::Bytes;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, PartitionKey, TableName, Value};

use super::layout::{Row, sibling_start};
use super::read::{rows_between, sibling_keys};
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::commit::send_together;
use crate::action::write::encoded::EncodedEntity;
use crate::entity::write_values;
use crate::error::{Error, ErrorKind};
use crate::pipeline::{Effect, OperationRun};

/// The intent of a write.
pub(super) struct Intent<'t> {
    table: &'t TableName,
    key: EntityKey,
    /// The key and the version of the entity that is written.
    entity: EntityKey,
    version: String,
    /// How many transactions were carried out.
    step: i32,
    /// `None` before the first transaction.
    etag: Option<ETag>,
}

impl<'t> Intent<'t> {
    pub(super) fn new(
        table: &'t TableName,
        entity: &EntityKey,
        version: &str,
    ) -> Result<Self, Error> {
        let key = EntityKey::new(entity.partition_key().as_str(), format!("{WIDE}{version}"));
        Ok(Self {
            table,
            key: key.map_err(Error::input)?,
            entity: entity.clone(),
            version: version.to_owned(),
            step: 0,
            etag: None,
        })
    }

    /// An intent that was read.
    fn of(table: &'t TableName, row: &Row) -> Option<Self> {
        let mut values = row.values.iter();
        let row_key = values.find_map(|(name, value)| match value {
            Value::String(text) if name == ROW_KEY => Some(text.as_str()),
            _ => None,
        });
        let version = row.key.row_key().as_str().strip_prefix(WIDE)?;
        let entity = EntityKey::new(row.key.partition_key().as_str(), row_key?).ok()?;
        let intent = Self::new(table, &entity, version).ok()?;
        Some(Self {
            etag: Some(row.etag.clone()),
            ..intent
        })
    }

    pub(super) const fn entity(&self) -> &EntityKey {
        &self.entity
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// The change of the intent in the next transaction.
    pub(super) fn write(&self) -> Result<EntityChange, Error> {
        let row_key = Value::String(self.entity.row_key().as_str().to_owned());
        let step = Value::Int32(self.step + 1);
        let values = [(ROW_KEY.to_owned(), row_key), (STEP.to_owned(), step)];
        let body = write_values(&self.key, &values).map_err(Error::input)?;
        let kind = match &self.etag {
            None => ChangeKind::Insert,
            Some(etag) => ChangeKind::Update(Mode::Replace, Some(IfMatch::ETag(etag.clone()))),
        };
        Ok(self.change(kind, body))
    }

    /// The change of the intent in the last transaction.
    pub(super) fn delete(&self) -> EntityChange {
        let if_match = self.etag.clone().map_or(IfMatch::Any, IfMatch::ETag);
        self.change(ChangeKind::Delete(if_match), Bytes::new())
    }

    fn change(&self, kind: ChangeKind, body: Bytes) -> EntityChange {
        let entity = EncodedEntity::alone(self.key.clone(), body);
        EntityChange::of(self.table.clone(), kind, entity)
    }

    /// Takes the result of the transaction that wrote the intent. If it is ambiguous, the number in
    /// the intent shows the outcome.
    pub(super) async fn written(
        &mut self,
        run: &mut OperationRun<'_>,
        sent: Result<ETag, Error>,
    ) -> Result<(), Error> {
        let etag = match sent {
            Ok(etag) => etag,
            Err(error) => {
                let error = error.with_key(&self.entity);
                let step = Value::Int32(self.step + 1);
                let is_first = self.etag.is_none();
                let found = if responds(&error) {
                    self.read(run).await?
                } else {
                    None
                };
                let is_step = |row: &Row| {
                    row.values
                        .iter()
                        .any(|(name, value)| name == STEP && *value == step)
                };
                match found {
                    Some(row) if is_step(&row) => row.etag,
                    None if !is_first && error.is_out_of_date() => return Err(self.lost(run)),
                    // Nothing of the entity is written yet.
                    _ => return Err(run.annotate(error.into_not_done())),
                }
            }
        };
        self.step += 1;
        self.etag = Some(etag);
        Ok(())
    }

    async fn read(&self, run: &mut OperationRun<'_>) -> Result<Option<Row>, Error> {
        let (from, to) = (
            self.key.row_key().as_str(),
            format!("{}!", self.key.row_key().as_str()),
        );
        let effect = Effect::ReadNow;
        let rows = rows_between(run, self.table, &self.key, (from, &to), None, effect);
        Ok(rows.await?.pop())
    }

    /// Deletes the intent and its siblings, if the intent is still as it was read or written.
    pub(super) async fn discard(&self, run: &mut OperationRun<'_>) -> Result<bool, Error> {
        if self.etag.is_none() {
            return Ok(false);
        }
        let start = sibling_start(self.entity.row_key().as_str(), &self.version);
        let siblings = sibling_keys(run, self.table, &self.entity, &start).await?;
        let siblings = siblings.into_iter().map(|key| {
            let (kind, entity) = (ChangeKind::Delete(IfMatch::Any), EncodedEntity::of_key(key));
            EntityChange::of(self.table.clone(), kind, entity)
        });
        let all: Vec<_> = [self.delete()].into_iter().chain(siblings).collect();
        match send_together(run, &all, None).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_out_of_date() && !error.is_ambiguous() => Ok(false),
            Err(error) => Err(error.without_batch_index()),
        }
    }

    /// The error of a write whose intent was deleted.
    pub(super) fn lost(&self, run: &OperationRun<'_>) -> Error {
        let message = "a clean-up took the write for one that had ended, as it was older than the age of the clean-up";
        run.annotate(Error::timeout(message.to_owned()))
            .with_key(&self.entity)
    }
}

/// Deletes the intents of a partition that are that old, and their siblings. Returns how many there
/// were.
pub(super) async fn clean_up(
    run: &mut OperationRun<'_>,
    table: &TableName,
    partition: &PartitionKey,
    older_than: Duration,
) -> Result<usize, Error> {
    run.pipeline().watch_service_time();
    let key = EntityKey::new(partition.as_str(), WIDE).map_err(Error::input)?;
    let rows = rows_between(run, table, &key, (WIDE, WIDE_END), None, Effect::ReadNow).await?;
    let now = run.pipeline().service_now();
    let mut removed = 0;
    for row in rows {
        let age = row
            .timestamp
            .filter(|written| *written < now)
            .map_or(Duration::ZERO, |written| now.abs_diff(written));
        if age < older_than {
            continue;
        }
        if let Some(intent) = Intent::of(table, &row) {
            removed += usize::from(intent.discard(run).await?);
        }
    }
    Ok(removed)
}

/// Returns true if the service has responded to the write.
pub(super) fn responds(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Response | ErrorKind::Service)
}

/// The row key of the entity.
const ROW_KEY: &str = "TablesdkRowKey";
const STEP: &str = "TablesdkStep";
/// The prefix of the row keys of the intents.
const WIDE: &str = "~tablesdk.wide.";
/// Sorts after the row keys of all intents, which go on with a version.
const WIDE_END: &str = "~tablesdk.wide.~";
