//! [`IdleList`]: the connections that wait for a request, in the order in which they are closed when new connections need slots.
//!
//! This module knows neither sockets nor HTTP: a connection is a position in the list and a notification that asks it to close.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The idle connections of a server: those that can be closed without the loss of a response.
#[derive(Debug, Default)]
pub(crate) struct IdleList {
    list: Mutex<List>,
    /// Notified whenever a connection enters the list.
    arrival: Notify,
}

#[derive(Debug, Default)]
struct List {
    count: u64,
    positions: BTreeMap<IdlePosition, Arc<Notify>>,
}

/// The position of a connection in the order of eviction. Unauthenticated connections, which never sent a valid credential, come
/// first, so that many of them do not disposition authenticated clients. Within each group, the longest idle connection comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IdlePosition {
    is_authenticated: bool,
    number: u64,
}

impl IdleList {
    /// Adds a connection that has become idle. `evict` is notified when the connection has to close to free its permit.
    pub(super) fn enter(&self, is_authenticated: bool, evict: Arc<Notify>) -> IdlePosition {
        let mut list = self.lock();
        list.count += 1;
        let position = IdlePosition {
            is_authenticated,
            number: list.count,
        };
        list.positions.insert(position, evict);
        drop(list);
        self.arrival.notify_one();
        position
    }

    /// Removes a connection that has a request, or has ended.
    pub(super) fn remove(&self, position: IdlePosition) {
        self.lock().positions.remove(&position);
    }

    /// Asks the first connection to close; waits for one if the list is empty.
    pub(crate) async fn evict(&self) {
        loop {
            let first = self.lock().positions.pop_first();
            if let Some((_, evict)) = first {
                evict.notify_one();
                return;
            }
            // A connection that entered since then is remembered here.
            self.arrival.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        // Nothing panics while it is held.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unauthenticated_connections_are_evicted_first() {
        let list = IdleList::default();
        let connections: Vec<_> = (0..5).map(|_| Arc::new(Notify::new())).collect();
        let enter = |index: usize, is_authenticated| {
            list.enter(is_authenticated, Arc::clone(&connections[index]))
        };
        enter(0, true);
        let removed = enter(1, false);
        enter(2, false);
        enter(3, true);
        enter(4, false);
        list.remove(removed);
        for index in [2, 4, 0, 3] {
            list.evict().await;
            connections[index].notified().await;
        }
        assert!(list.lock().positions.is_empty());
    }

    #[tokio::test]
    async fn eviction_waits_for_an_idle_connection() {
        let list = IdleList::default();
        let evict = Arc::new(Notify::new());
        let arrival = async {
            tokio::task::yield_now().await;
            list.enter(true, Arc::clone(&evict));
        };
        tokio::join!(list.evict(), arrival);
        evict.notified().await;
    }
}
