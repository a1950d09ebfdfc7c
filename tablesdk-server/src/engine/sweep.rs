//! The entities of deleted tables, which are removed after the table.
//!
//! Deleting a table removes its name and leaves a mark with its id; the entities, however many, go later and a few at a time.
//! What is left to do stands in the storage alone, so that a sweep goes on wherever another one ended, in another process,
//! too. Nobody reads or writes entities of a deleted table, so a sweep needs no writer's lock.

use super::layout::{self, TableId};
use super::view::View;
use crate::storage::{StorageError, WriteBatch};

/// What to remove next; `None` when nothing is left of any deleted table.
pub(super) fn next_batch(view: &View) -> Result<Option<WriteBatch>, StorageError> {
    let Some(table) = view.sweeps().next().transpose()? else {
        return Ok(None);
    };
    let (start, end) = (layout::entities_start(table), layout::entities_end(table));
    let mut batch = WriteBatch::default();
    let mut rows = view.rows(&start, &end);
    for row in rows.by_ref().take(ENTITIES_MAX) {
        batch.delete(row?.key().clone());
    }
    if rows.next().is_none() {
        batch.delete(layout::sweep_key(table));
    }
    Ok(Some(batch))
}

/// The mark of a deleted table.
pub(super) fn mark(table: TableId, batch: &mut WriteBatch) {
    batch.put(layout::sweep_key(table), []);
}

/// The most entities that are removed at once. Writers wait for no more than this.
const ENTITIES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tablesdk_protocol::{Clock, EntityKey, TableName};

    use super::*;
    use crate::engine::{Action, Change, Command, Engine, Failure, Paging};
    use crate::stamp::tests::ManualClock;
    use crate::storage::{Closed, Commit, MemoryStorage, Snapshot, Storage};

    /// A storage that outlives engines.
    #[derive(Clone, Debug, Default)]
    struct Lasting(Arc<MemoryStorage>);

    impl Storage for Lasting {
        fn snapshot(&self) -> Box<dyn Snapshot> {
            self.0.snapshot()
        }

        fn latest(&self) -> Box<dyn Snapshot> {
            self.0.latest()
        }

        fn commit(&self, batch: WriteBatch) -> Result<Commit, StorageError> {
            self.0.commit(batch)
        }

        fn settle(&self) -> Commit {
            self.0.settle()
        }

        fn is_full(&self) -> bool {
            self.0.is_full()
        }

        fn outlives_the_process(&self) -> bool {
            true
        }

        fn closed(&self) -> Closed {
            self.0.closed()
        }
    }

    impl Lasting {
        fn engine(&self) -> Engine {
            let clock = ManualClock::new("2024-03-15T10:20:30Z") as Arc<dyn Clock>;
            Engine::new(Box::new(self.clone()), clock, Paging::default()).unwrap()
        }

        fn entities(&self) -> usize {
            self.snapshot().range(b"e", b"f").count()
        }
    }

    fn wait_for<T>(future: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.build().unwrap().block_on(future)
    }

    fn run(engine: &Engine, command: &Command<'_>) -> Result<(), Failure> {
        wait_for(engine.commit("acct", command)).map(|_| ())
    }

    fn sweep(engine: &Engine) -> Result<bool, StorageError> {
        let Some(commit) = engine.sweep()? else {
            return Ok(false);
        };
        wait_for(commit)?;
        Ok(true)
    }

    fn fill(engine: &Engine, table: &TableName, count: usize) {
        run(engine, &Command::CreateTable(table)).unwrap();
        for number in 0..count {
            let key = &EntityKey::new("p", format!("{number:05}")).unwrap();
            let action = Action::Insert(&[]);
            run(engine, &Command::Change(table, Change { key, action })).unwrap();
        }
    }

    #[test]
    fn a_deleted_table_is_swept_a_little_at_a_time() {
        let storage = Lasting::default();
        let engine = storage.engine();
        let (old, other) = ("old".parse().unwrap(), "other".parse().unwrap());
        fill(&engine, &old, 2 * ENTITIES_MAX + 1);
        fill(&engine, &other, 3);
        assert_eq!(sweep(&engine), Ok(false));

        run(&engine, &Command::DeleteTable(&old)).unwrap();
        assert_eq!(storage.entities(), 2 * ENTITIES_MAX + 4);
        assert_eq!(sweep(&engine), Ok(true));
        assert_eq!(storage.entities(), ENTITIES_MAX + 4);
        // Its name is free, and what is created now has nothing to do with what is swept.
        fill(&engine, &old, 2);
        assert_eq!(sweep(&engine), Ok(true));
        // Whoever opens the storage goes on.
        let engine = storage.engine();
        assert_eq!(sweep(&engine), Ok(true));
        assert_eq!(storage.entities(), 5);
        assert_eq!(sweep(&engine), Ok(false));
        assert_eq!(storage.snapshot().range(b"s", b"t").count(), 0);
    }

    #[test]
    fn tables_are_swept_one_after_another() {
        let storage = Lasting::default();
        let engine = storage.engine();
        for name in ["one", "two", "six"] {
            let table = name.parse().unwrap();
            fill(&engine, &table, ENTITIES_MAX);
            run(&engine, &Command::DeleteTable(&table)).unwrap();
        }
        let mut sweeps = 0;
        while sweep(&engine).unwrap() {
            sweeps += 1;
        }
        assert_eq!((sweeps, storage.entities()), (3, 0));
    }
}
