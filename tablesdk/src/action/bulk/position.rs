//! The position of a bulk run in the order of keys of its query. Knows nothing of batches.

use std::sync::{Arc, Mutex, PoisonError};

use tablesdk_protocol::EntityKey;
use tablesdk_protocol::continuation::EntityContinuation;

use crate::query::PageToken;

/// A position that the input moves and the report reads.
#[derive(Clone)]
pub(crate) struct Position {
    /// The fingerprint in the tokens.
    print: u64,
    passed: Arc<Mutex<Passed>>,
}

#[derive(Default)]
struct Passed {
    /// The key of the last entity that the query has found, and of the one before it.
    last: Option<Arc<EntityKey>>,
    before: Option<Arc<EntityKey>>,
    /// True if the query finds no more.
    is_end: bool,
}

impl Position {
    /// The position after the entity of that key, or at the start.
    pub(crate) fn new(print: u64, start: Option<EntityKey>) -> Self {
        let start = start.map(Arc::new);
        Self {
            print,
            passed: Arc::new(Mutex::new(Passed {
                before: start.clone(),
                last: start,
                is_end: false,
            })),
        }
    }

    /// The query has found the entity of that key.
    pub(crate) fn pass(&self, key: EntityKey) {
        self.with(|passed| passed.before = passed.last.replace(Arc::new(key)));
    }

    /// The query finds no more.
    pub(crate) fn end(&self) {
        self.with(|passed| passed.is_end = true);
    }

    /// The key before that of the last entity.
    pub(crate) fn before(&self) -> Option<Arc<EntityKey>> {
        self.with(|passed| passed.before.clone())
    }

    /// The position after the last entity; `None` at the end.
    pub(crate) fn now(&self) -> Option<PageToken> {
        let last = self.with(|passed| (!passed.is_end).then(|| passed.last.clone()));
        last.map(|last| self.token(last.as_deref()))
    }

    /// The position after the entity of that key, or at the start.
    pub(crate) fn token(&self, after: Option<&EntityKey>) -> PageToken {
        let continuation = EntityContinuation {
            next_partition_key: after
                .map_or_else(String::new, |key| key.partition_key().as_str().to_owned()),
            next_row_key: after.map(|key| key.row_key().as_str().to_owned()),
        };
        PageToken::new(self.print, continuation)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Passed) -> T) -> T {
        change(&mut self.passed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
