//! Runs the sweep of deleted tables beside the requests.
//!
//! On a task of its own where there is a runtime, so that nobody waits for it; where there is none, in the request that
//! deletes the table. What a sweep does is the engine's business.

use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use tokio::task::yield_now;

use crate::engine::Engine;

/// Sweeps what an earlier process left behind. Without a runtime, the next deleted table takes it along.
pub(crate) fn resume(engine: &Arc<Engine>) {
    if engine.has_sweeps()
        && let Ok(runtime) = Handle::try_current()
    {
        runtime.spawn(sweep(Arc::downgrade(engine)));
    }
}

/// Sweeps a table that was just deleted.
pub(crate) async fn start(engine: &Arc<Engine>) {
    let sweep = sweep(Arc::downgrade(engine));
    match Handle::try_current() {
        Ok(runtime) => {
            runtime.spawn(sweep);
        }
        Err(_) => sweep.await,
    }
}

/// Sweeps until nothing is left, or the engine is gone.
async fn sweep(engine: Weak<Engine>) {
    // After a failure the marks are still there, and so the next sweep tries again.
    while let Some(engine) = engine.upgrade() {
        let Ok(Some(commit)) = engine.sweep() else {
            return;
        };
        // Whoever waits for the engine to go does not wait for this.
        drop(engine);
        if commit.await.is_err() {
            return;
        }
        yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use tablesdk_protocol::{Clock, EntityKey, TableName};

    use super::*;
    use crate::engine::{Action, Change, Command, Paging};
    use crate::stamp::tests::ManualClock;
    use crate::storage::MemoryStorage;

    /// With a table that was deleted.
    async fn engine() -> Arc<Engine> {
        let clock = ManualClock::new("2024-03-15T10:20:30Z") as Arc<dyn Clock>;
        let storage = Box::new(MemoryStorage::default());
        let engine = Engine::new(storage, clock, Paging::default()).unwrap();
        let table: TableName = "people".parse().unwrap();
        let create = Command::CreateTable(&table);
        engine.commit("acct", &create).await.unwrap();
        for number in 0..1000 {
            let key = &EntityKey::new("p", number.to_string()).unwrap();
            let action = Action::Insert(&[]);
            let insert = Command::Change(&table, Change { key, action });
            engine.commit("acct", &insert).await.unwrap();
        }
        let delete = Command::DeleteTable(&table);
        engine.commit("acct", &delete).await.unwrap();
        assert!(engine.has_sweeps());
        Arc::new(engine)
    }

    #[tokio::test]
    async fn sweeps_on_a_task() {
        for start in [true, false] {
            let engine = engine().await;
            if start {
                super::start(&engine).await;
            } else {
                resume(&engine);
            }
            assert!(engine.has_sweeps(), "nobody waits for the sweep");
            while engine.has_sweeps() {
                yield_now().await;
            }
        }
    }

    #[test]
    fn sweeps_at_once_without_a_runtime() {
        let mut engine = std::pin::pin!(async {
            let engine = engine().await;
            start(&engine).await;
            engine
        });
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let engine = loop {
            if let std::task::Poll::Ready(engine) = engine.as_mut().poll(&mut context) {
                break engine;
            }
        };
        assert!(!engine.has_sweeps());
    }
}
