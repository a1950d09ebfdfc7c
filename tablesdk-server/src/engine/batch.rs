//! Entity group transaction: each change is decided independently, and either all changes are
//! applied or none.
//!
//! No entity occurs twice, so no change depends on another one. This module knows which change
//! failed, but not which records are written. See
//! <https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions>.

use std::collections::HashSet;

use tablesdk_protocol::{EntityKey, TableName, Timestamp};

use super::change::{begin_change, decide_change};
use super::view::View;
use super::{Change, Failure, Rejection};
use crate::flavor::Flavor;
use crate::storage::WriteBatch;

/// Adds the writes of all changes, in order. A failure names the first change that cannot be
/// applied.
pub(super) fn decide_batch(
    view: &View,
    flavor: Flavor,
    account: &str,
    table: &TableName,
    changes: &[Change<'_>],
    now: Timestamp,
    batch: &mut WriteBatch,
) -> Result<(), Failure> {
    let Some(first) = changes.first() else {
        return Ok(());
    };
    let table = view.require_table(account, table);
    let table = table.map_err(|failure| failure.of_change(0))?;
    let keys_of_all = changes.iter().map(|change| change.key);
    if changes.iter().all(Change::is_insert) {
        view.presume_absent(table, keys_of_all);
    } else {
        view.announce_entities(table, keys_of_all);
    }
    let bytes = changes.iter().map(Change::bytes_max).sum();
    // With the time of the last write.
    batch.reserve(changes.len() + 1, bytes);
    let mut keys = Keys::default();
    for (index, change) in changes.iter().enumerate() {
        begin_change(table, change, batch);
        let is_in_partition = change.key.partition_key() == first.key.partition_key();
        let decided = if !is_in_partition && !flavor.batches_partitions() {
            Err(Rejection::DifferentPartitions.into())
        } else if keys.is_repeated(batch, changes, index) {
            Err(Rejection::DuplicateRow.into())
        } else {
            decide_change(view, flavor, change, now, batch)
        };
        decided.map_err(|failure| failure.of_change(index))?;
    }
    Ok(())
}

/// The keys of the changes so far. Most batches are in the order of their keys: then, each is only
/// compared with the one before.
#[derive(Default)]
struct Keys<'k> {
    /// All of them, since one was not after the one before.
    seen: Option<HashSet<&'k EntityKey>>,
}

impl<'k> Keys<'k> {
    /// Returns true if the change that is begun has the key of an earlier one.
    fn is_repeated(&mut self, batch: &WriteBatch, changes: &[Change<'k>], index: usize) -> bool {
        let is_after = |last| last < batch.begun_key();
        if self.seen.is_none() && batch.last_key().is_none_or(is_after) {
            return false;
        }
        let keys = changes.iter().map(|change| change.key);
        let seen = self.seen.get_or_insert_with(|| keys.take(index).collect());
        let change = changes.get(index);
        change.is_some_and(|change| !seen.insert(change.key))
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::Arc;

    use tablesdk_protocol::operation::update_entity::Mode;
    use tablesdk_protocol::{IfMatch, ValueRef};

    use super::*;
    use crate::engine::decide::decide;
    use crate::engine::key_codec::KeyReader;
    use crate::engine::{Action, Command, Properties, key_codec};
    use crate::storage::{MemoryStorage, Storage};

    /// A partition key, a row key, and the action on that entity.
    type Step<'a> = (&'static str, &'static str, Action<'a>);

    struct State {
        storage: MemoryStorage,
        now: Timestamp,
    }

    impl State {
        /// With the table `people`, that has one entity in the partition `p`: `old`.
        fn new() -> Self {
            let mut state = Self {
                storage: MemoryStorage::default(),
                now: "2024-03-15T10:20:30Z".parse().unwrap(),
            };
            let people = "people".parse().unwrap();
            state.run(&Command::CreateTable(&people)).unwrap();
            state.batch("people", &[("p", "old", INSERT)]).unwrap();
            state
        }

        fn view(&self) -> View {
            View::local(self.storage.snapshot(), &Arc::default())
        }

        fn run(&mut self, command: &Command<'_>) -> Result<(), Failure> {
            self.now = self.now.next();
            let batch = decide(&self.view(), Flavor::Storage, "acct", command, self.now)?;
            drop(self.storage.commit(batch).unwrap());
            Ok(())
        }

        fn batch(&mut self, table: &str, steps: &[Step<'_>]) -> Result<(), Failure> {
            let key = |step: &Step<'_>| EntityKey::new(step.0, step.1).unwrap();
            let keys: Vec<_> = steps.iter().map(key).collect();
            let changes = keys.iter().zip(steps);
            let changes: Vec<_> = changes
                .map(|(key, &(.., action))| Change { key, action })
                .collect();
            self.run(&Command::Batch(&table.parse().unwrap(), &changes))
        }

        /// Row keys and timestamps.
        fn rows(&self) -> Vec<(String, Timestamp)> {
            let view = self.view();
            let table = view.require_table("acct", &"people".parse().unwrap());
            let id = table.unwrap();
            let (start, end) = (key_codec::entities_start(id), key_codec::entities_end(id));
            let mut rows = Vec::new();
            let visited = view.visit_entities(&start, &end, |row| {
                let mut keys = KeyReader::default();
                let entity = row.open(&mut keys)?;
                let head = entity.head();
                rows.push((head.row_key.to_owned(), head.timestamp));
                Ok(ControlFlow::Continue(()))
            });
            assert_eq!(visited, Ok(None));
            rows
        }
    }

    const INSERT: Action<'_> = Action::Insert(&Properties::NONE);
    const DELETE: Action<'_> = Action::Delete(&IfMatch::Any);

    fn rejected(index: usize, rejection: Rejection) -> Result<(), Failure> {
        Err(Failure::RejectedChange(index, rejection))
    }

    #[test]
    fn all_changes_get_one_timestamp() {
        let mut state = State::new();
        let properties = Properties::from_iter([("a", ValueRef::Int32(1))]);
        let upsert = |mode| Action::Update {
            mode,
            if_match: None,
            properties: &properties,
        };
        let steps = [
            ("p", "a", INSERT),
            ("p", "old", DELETE),
            ("p", "b", upsert(Mode::Merge)),
            ("p", "c", upsert(Mode::Replace)),
        ];
        state.batch("PEOPLE", &steps).unwrap();
        let rows = ["a", "b", "c"].map(|row| (row.to_owned(), state.now));
        assert_eq!(state.rows(), rows);
    }

    #[test]
    fn the_first_failed_change_is_named_and_nothing_is_written() {
        let good = ("p", "new", INSERT);
        let missing = ("p", "gone", DELETE);
        let taken = ("p", "old", INSERT);
        for (steps, index, rejection) in [
            (vec![good, taken], 1, Rejection::EntityAlreadyExists),
            (vec![missing, taken], 0, Rejection::ResourceNotFound),
            (vec![good, missing, taken], 1, Rejection::ResourceNotFound),
            (vec![good, good], 1, Rejection::DuplicateRow),
            (vec![good, good, taken], 1, Rejection::DuplicateRow),
            (vec![good, taken, good], 1, Rejection::EntityAlreadyExists),
            (
                vec![good, ("p", "old", DELETE), taken],
                2,
                Rejection::DuplicateRow,
            ),
            (
                vec![good, ("q", "x", INSERT)],
                1,
                Rejection::DifferentPartitions,
            ),
            (
                vec![good, ("q", "new", INSERT)],
                1,
                Rejection::DifferentPartitions,
            ),
        ] {
            let mut state = State::new();
            let before = state.rows();
            let result = state.batch("people", &steps);
            assert_eq!(result, rejected(index, rejection), "{steps:?}");
            assert_eq!(state.rows(), before, "{steps:?}");
        }
    }

    #[test]
    fn a_missing_table_rejects_the_first_change() {
        let mut state = State::new();
        let steps = [("p", "a", INSERT), ("q", "b", INSERT)];
        let result = state.batch("nobody", &steps);
        assert_eq!(result, rejected(0, Rejection::TableNotFound));
    }

    #[test]
    fn an_empty_batch_succeeds() {
        let mut state = State::new();
        let before = state.rows();
        assert_eq!(state.batch("people", &[]), Ok(()));
        assert_eq!(state.rows(), before);
    }
}
