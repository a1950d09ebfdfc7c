//! The head of the outbox of a partition, which numbers its entries, and the pointers that lead workers to the partition.
//!
//! Each commit, and each entry that is set aside or put back, replaces the head as it was read. So two of them never rest on the same
//! version, and a copy of such a request that arrives late is refused.

use http::StatusCode;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, Guid, IfMatch, PartitionKey, TableName, Value};

use super::entry::change;
use super::view::{Row, read_rows};
use crate::action::EncodedEntity;
use crate::action::write::ambiguous_write::check_status;
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::reserved::OUTBOX;
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun};
use crate::random::random_guid;

/// The head of an outbox.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// `None` as long as it is not stored. It is never deleted.
    pub(super) etag: Option<ETag>,
    /// Identifies the outbox.
    pub(super) stream: String,
    /// The number of the next entry.
    pub(super) next: u64,
    /// How often entries were set aside, put back or discarded.
    pub(super) moves: u64,
}

impl Head {
    /// That of a partition without one.
    pub(super) fn new() -> Self {
        Self {
            etag: None,
            stream: random_guid().to_string(),
            next: 1,
            moves: 0,
        }
    }

    pub(super) async fn read(
        run: &mut OperationRun<'_>,
        table: &TableName,
        partition: &PartitionKey,
    ) -> Result<Self, Error> {
        let key = row_key();
        let rows = read_rows(run, table, partition.as_str(), (&key, &format!("{key}."))).await?;
        let row = rows.found.into_iter().next();
        row.map_or_else(|| Ok(Self::new()), Self::of)
    }

    pub(super) fn of(row: Row) -> Result<Self, Error> {
        let number = |name| match row.value(name) {
            Some(Value::Int64(number)) => u64::try_from(*number).ok(),
            _ => None,
        };
        let stream = match row.value(STREAM) {
            Some(Value::String(stream)) => Some(stream.clone()),
            _ => None,
        };
        let (Some(next), Some(moves), Some(stream)) = (number(NEXT), number(MOVES), stream) else {
            return Err(Error::response("the head of the outbox cannot be read").with_key(&row.key));
        };
        Ok(Self {
            etag: Some(row.etag),
            stream,
            next,
            moves,
        })
    }

    /// The change that stores it, if no other client has stored it since.
    pub(super) fn store(
        &self,
        table: &TableName,
        partition: &PartitionKey,
    ) -> Result<EntityChange, Error> {
        let kind = match &self.etag {
            Some(etag) => ChangeKind::Update(Mode::Replace, Some(IfMatch::ETag(etag.clone()))),
            None => ChangeKind::Insert,
        };
        let int64 = |number: u64| Value::Int64(number.try_into().unwrap_or(i64::MAX));
        let values = [
            (NEXT.to_owned(), int64(self.next)),
            (STREAM.to_owned(), Value::String(self.stream.clone())),
            (MOVES.to_owned(), int64(self.moves)),
        ];
        let key = EntityKey::new(partition.as_str(), row_key()).map_err(Error::input)?;
        change(table, &key, kind, &values)
    }
}

/// The row key of the head: it sorts before the entries that are not set aside.
pub(super) fn row_key() -> String {
    format!("{OUTBOX}head")
}

/// Leads workers to a partition with entries of one write.
#[derive(Clone, Debug)]
pub(super) struct Pointer {
    pub(super) id: String,
    key: EntityKey,
}

impl Pointer {
    pub(super) fn new() -> Result<Self, Error> {
        Self::of(random_guid().to_string())
    }

    pub(super) fn of(id: String) -> Result<Self, Error> {
        // Random, so that writes of all partitions spread over them.
        let first = id.parse::<Guid>().map_or(0, |id| id.to_bytes()[0]);
        let key = EntityKey::new(
            directory(first % DIRECTORIES),
            format!("{POINTER_PREFIX}{id}"),
        );
        Ok(Self {
            id,
            key: key.map_err(Error::input)?,
        })
    }

    /// The pointer and the partition that it leads to; `None` where it is no pointer.
    pub(super) fn read(row: &Row) -> Option<(Self, PartitionKey)> {
        let id = row.key.row_key().as_str().strip_prefix(POINTER_PREFIX)?;
        let Some(Value::String(partition)) = row.value(PARTITION) else {
            return None;
        };
        let pointer = Self {
            id: id.to_owned(),
            key: row.key.clone(),
        };
        Some((pointer, PartitionKey::new(partition).ok()?))
    }

    /// Writes it. A pointer that exists gets another version: a worker that was about to delete it does not.
    pub(super) async fn write(
        &self,
        run: &mut OperationRun<'_>,
        table: &TableName,
        partition: &PartitionKey,
    ) -> Result<(), Error> {
        let kind = ChangeKind::Update(Mode::Merge, None);
        let partition = Value::String(partition.as_str().to_owned());
        let write = change(table, &self.key, kind, &[(PARTITION.to_owned(), partition)])?;
        let request = write.change.encode(&run.pipeline().endpoint);
        let written = run.send(Effect::Write, &request).await;
        let written =
            written.and_then(|response| check_status(&response, &[StatusCode::NO_CONTENT]));
        // Nothing of the program was sent yet.
        written.map_err(|error| run.annotate(error.into_not_done()))
    }

    pub(super) fn delete(&self, table: &TableName, if_match: IfMatch) -> EntityChange {
        let entity = EncodedEntity::of_key(self.key.clone());
        EntityChange::of(table.clone(), ChangeKind::Delete(if_match), entity)
    }
}

/// The partitions of the pointers.
pub(super) fn directories() -> impl Iterator<Item = String> {
    (0..DIRECTORIES).map(directory)
}

fn directory(number: u8) -> String {
    format!("{OUTBOX}{number:02}")
}

const DIRECTORIES: u8 = 16;
const POINTER_PREFIX: &str = "~tablesdk.outbox.pointer.";
const PARTITION: &str = "TablesdkPartition";
const NEXT: &str = "TablesdkNext";
const STREAM: &str = "TablesdkStream";
const MOVES: &str = "TablesdkMoves";
