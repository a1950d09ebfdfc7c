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
    places: BTreeMap<Place, Arc<Notify>>,
}

/// The position of a connection in the order of eviction. Unauthenticated connections, which never sent a valid credential, come
/// first, so that many of them do not displace authenticated clients. Within each group, the longest idle connection comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    is_known: bool,
    number: u64,
}

impl IdleList {
    /// Adds a connection that has become idle. `leave` is notified when the connection has to close to free its slot.
    pub(super) fn enter(&self, is_known: bool, leave: Arc<Notify>) -> Place {
        let mut list = self.lock();
        list.count += 1;
        let place = Place {
            is_known,
            number: list.count,
        };
        list.places.insert(place, leave);
        drop(list);
        self.arrival.notify_one();
        place
    }

    /// Takes out a connection that has something to do, or has ended.
    pub(super) fn remove(&self, place: Place) {
        self.lock().places.remove(&place);
    }

    /// Asks the first connection to close; waits for one if the list is empty.
    pub(crate) async fn evict(&self) {
        loop {
            let first = self.lock().places.pop_first();
            if let Some((_, leave)) = first {
                leave.notify_one();
                return;
            }
            // A connection that came in since is remembered here.
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
    async fn strangers_leave_first_and_then_who_waited_longest() {
        let list = IdleList::default();
        let connections: Vec<_> = (0..5).map(|_| Arc::new(Notify::new())).collect();
        let enter = |index: usize, is_known| list.enter(is_known, Arc::clone(&connections[index]));
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
        assert!(list.lock().places.is_empty());
    }

    #[tokio::test]
    async fn waits_for_one_that_can_leave() {
        let list = IdleList::default();
        let leave = Arc::new(Notify::new());
        let arrival = async {
            tokio::task::yield_now().await;
            list.enter(true, Arc::clone(&leave));
        };
        tokio::join!(list.evict(), arrival);
        leave.notified().await;
    }
}
