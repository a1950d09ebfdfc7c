//! The head of the outbox of a partition, which numbers its entries, and the pointers that lead
//! workers to the partition.
//!
//! Each commit, and each entry that is set aside or put back, replaces the head as it was read. So
//! two of them never rest on the same version, and a copy of such a request that arrives late is
//! refused. The head has the ids of the last of these writes: a client whose request was refused
//! finds out whether it met a write of another client, or the first copy of its own.

use http::StatusCode;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, Guid, IfMatch, PartitionKey, TableName};

use super::entry::{OUTBOX, Row, change, text};
use super::view::read;
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::response::check_status;
use crate::entity::{DynamicEntity, EntityError};
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun};
use crate::random::random_guid;

/// The head of an outbox.
#[derive(Clone, Debug)]
pub(super) struct Head {
    partition: PartitionKey,
    /// `None` as long as it is not stored. It is never deleted.
    pub(super) etag: Option<ETag>,
    /// Identifies the outbox.
    pub(super) stream: String,
    /// The number of the next entry.
    pub(super) next: u64,
    /// How often entries were set aside, put back or discarded.
    pub(super) moves: u64,
    /// The ids of the last writes, the last one first.
    writes: Vec<String>,
}

impl Head {
    /// That of a partition without one.
    pub(super) fn new(partition: &PartitionKey) -> Self {
        Self {
            partition: partition.clone(),
            etag: None,
            stream: random_guid().to_string(),
            next: 1,
            moves: 0,
            writes: Vec::new(),
        }
    }

    pub(super) async fn read(
        run: &mut OperationRun<'_>,
        table: &TableName,
        partition: &PartitionKey,
    ) -> Result<Self, Error> {
        let key = row_key();
        let range = (&*key, &*format!("{key}."));
        let rows = read(run, table, partition.as_str(), range, 1).await?;
        Self::of(rows.found.first(), partition)
    }

    pub(super) fn of(row: Option<&Row>, partition: &PartitionKey) -> Result<Self, Error> {
        let Some(row) = row else {
            return Ok(Self::new(partition));
        };
        let properties = row.properties();
        let number = |name| properties.read::<i64>(name).map(i64::unsigned_abs);
        let writes = text(row, WRITES).unwrap_or_default();
        let read = || -> Result<_, EntityError> {
            Ok(Self {
                partition: partition.clone(),
                etag: Some(row.etag().clone()),
                stream: properties.read(STREAM)?,
                next: number(NEXT)?,
                moves: number(MOVES)?,
                writes: writes.split_whitespace().map(str::to_owned).collect(),
            })
        };
        read().map_err(|error| Error::entity(error).with_key(row.key()))
    }

    /// The head after a write with that id.
    pub(super) fn after(mut self, write: &str) -> Self {
        self.writes.insert(0, write.to_owned());
        self.writes.truncate(WRITES_MAX);
        self
    }

    /// Returns true if a write that depended on the head `before` was carried out. `None` if so
    /// many other writes followed that the head no longer shows it.
    pub(super) fn has(&self, write: &str, before: &Self) -> Option<bool> {
        if self.writes.iter().any(|known| known == write) {
            return Some(true);
        }
        // Writes leave the list at its end: those after an earlier one are in front of it.
        let is_complete = self.writes.len() < WRITES_MAX;
        let mut earlier = before.writes.iter();
        let has_earlier = earlier.any(|earlier| self.writes.contains(earlier));
        (is_complete || has_earlier).then_some(false)
    }

    /// The change that stores it, if no other client has stored it since.
    pub(super) fn store(&self, table: &TableName) -> Result<EntityChange, Error> {
        let kind = match &self.etag {
            Some(etag) => ChangeKind::Update(Mode::Replace, Some(IfMatch::ETag(etag.clone()))),
            None => ChangeKind::Insert,
        };
        let int64 = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let head = DynamicEntity::new(self.partition.as_str(), row_key())
            .with(NEXT, int64(self.next))
            .with(STREAM, &self.stream)
            .with(MOVES, int64(self.moves))
            .with(WRITES, self.writes.join(" "));
        change(table, kind, &head)
    }

    /// Changes that set entries aside, put them back or discard them, and the one that counts them.
    pub(super) fn with_moves(
        mut self,
        table: &TableName,
        moves: impl IntoIterator<Item = EntityChange>,
    ) -> Result<Vec<EntityChange>, Error> {
        self.moves += 1;
        let mut all = vec![self.store(table)?];
        all.extend(moves);
        Ok(all)
    }
}

/// The row key of the head: it sorts before the entries that are not set aside.
pub(super) fn row_key() -> String {
    format!("{OUTBOX}head")
}

/// The key of the pointer that leads workers to a partition with entries of that write.
pub(super) fn pointer_key(id: &str) -> Result<EntityKey, Error> {
    // Random, so that writes of all partitions spread over them.
    let first = id.parse::<Guid>().map_or(0, |id| id.to_bytes()[0]);
    let row_key = format!("{POINTER_PREFIX}{id}");
    EntityKey::new(directory(first % DIRECTORIES), row_key).map_err(Error::input)
}

/// The id of a pointer and the partition that it leads to; `None` where it is no pointer.
pub(super) fn read_pointer(row: &Row) -> Option<(&str, PartitionKey)> {
    let id = row.row_key().strip_prefix(POINTER_PREFIX)?;
    Some((id, PartitionKey::new(text(row, PARTITION)?).ok()?))
}

/// Writes a pointer. One that exists gets another version: a worker that was about to delete it
/// does not.
pub(super) async fn write_pointer(
    run: &mut OperationRun<'_>,
    table: &TableName,
    partition: &PartitionKey,
    key: &EntityKey,
) -> Result<(), Error> {
    let pointer = DynamicEntity::of_key(key).with(PARTITION, partition.as_str());
    let write = change(table, ChangeKind::Update(Mode::Merge, None), &pointer)?;
    let request = write.change.encode(&run.pipeline().endpoint);
    let written = run.send(Effect::Write, &request).await;
    let written = written.and_then(|response| check_status(&response, &[StatusCode::NO_CONTENT]));
    // Nothing of the program was sent yet.
    written.map_err(|error| run.annotate(error.into_not_done()))
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
const WRITES: &str = "TablesdkWrites";
/// A client learns what came of its write unless so many other writes follow before it reads the
/// head.
const WRITES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_recognized_until_too_many_others_have_followed() {
        let partition = PartitionKey::new("Sales").unwrap();
        for earlier in [0, 1, 15, 16, 40] {
            let mut before = Head::new(&partition);
            for write in 0..earlier {
                before = before.after(&format!("earlier {write}"));
            }
            let mut done = before.clone().after("ours");
            let mut not_done = before.clone();
            for others in 0..40 {
                let expected = (others < 16).then_some(true);
                let what = format!("{others} others after {earlier} writes");
                assert_eq!(done.has("ours", &before), expected, "{what}");
                assert_ne!(not_done.has("ours", &before), Some(true), "{what}");
                if others + earlier.min(1) < 16 {
                    let known = not_done.has("ours", &before);
                    assert_eq!(known, Some(false), "{what}");
                }
                let other = format!("other {others}");
                done = done.after(&other);
                not_done = not_done.after(&other);
            }
            assert_eq!(done.has("ours", &before), None, "after {earlier} writes");
        }
    }
}
