//! [`IdleList`]: the connections that wait for a request, in the order in which they are closed
//! when new connections need slots.
//!
//! A connection becomes idle and busy with each request, but connections are rarely closed. So a
//! connection only notes its position when it becomes idle, and the list is put in order when a
//! connection has to be closed. This module knows neither sockets nor HTTP: a connection is a
//! position in the list and a notification that asks it to close.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The idle connections of a server: those that can be closed without the loss of a response.
#[derive(Debug, Default)]
pub(crate) struct IdleList {
    /// The last number that was given to a connection.
    count: AtomicU64,
    /// The connections, each under its position or an earlier one: those that are idle, and some
    /// that were.
    places: Mutex<BTreeMap<u64, Arc<IdleConnection>>>,
    /// Notified whenever a connection becomes idle.
    arrival: Notify,
}

/// A connection in an [`IdleList`].
///
/// The two numbers are in one order for all threads: when a connection becomes idle, either it sees
/// that it has no place in the list, or the thread that removed it from its place sees that it is
/// idle.
#[derive(Debug, Default)]
pub(super) struct IdleConnection {
    /// The position in the order of eviction; 0 while the connection is busy. Unauthenticated
    /// connections, which never sent a valid credential, come first, so that many of them do not
    /// displace authenticated clients. Within each group, the longest idle connection comes first.
    position: AtomicU64,
    /// The place in the list; 0 for none. Changes only while the list is locked.
    place: AtomicU64,
    evict: Notify,
}

impl IdleConnection {
    /// The connection is not idle any more.
    pub(super) fn leave(&self) {
        self.position.store(0, Ordering::SeqCst);
    }

    /// Resolves when the connection has to close to free its permit.
    pub(super) async fn evicted(&self) {
        self.evict.notified().await;
    }
}

impl IdleList {
    /// Notes that a connection has become idle.
    pub(super) fn enter(&self, connection: &Arc<IdleConnection>, is_authenticated: bool) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let position = if is_authenticated {
            number | AUTHENTICATED
        } else {
            number
        };
        connection.position.store(position, Ordering::SeqCst);
        if connection.place.load(Ordering::SeqCst) == 0 {
            place(&mut self.lock(), connection);
        }
        self.arrival.notify_one();
    }

    /// Removes a connection that has ended.
    pub(super) fn remove(&self, connection: &IdleConnection) {
        let mut places = self.lock();
        connection.leave();
        places.remove(&connection.place.swap(0, Ordering::SeqCst));
    }

    /// Asks the first connection to close; waits for one if none is idle.
    pub(crate) async fn evict(&self) {
        loop {
            let first = self.take_first();
            if let Some(first) = first {
                first.evict.notify_one();
                return;
            }
            // A connection that became idle since then is remembered here.
            self.arrival.notified().await;
        }
    }

    /// The first idle connection, which is busy from now on. Each step moves a connection from a
    /// place that it has left.
    fn take_first(&self) -> Option<Arc<IdleConnection>> {
        let mut places = self.lock();
        while let Some((at, connection)) = places.pop_first() {
            connection.place.store(0, Ordering::SeqCst);
            let idle = &connection.position;
            let taken = idle.compare_exchange(at, 0, Ordering::SeqCst, Ordering::SeqCst);
            if taken.is_ok() {
                return Some(connection);
            }
            place(&mut places, &connection);
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<IdleConnection>>> {
        // Nothing panics while it is held.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a connection the place of its position, if it is idle and has none.
fn place(places: &mut BTreeMap<u64, Arc<IdleConnection>>, connection: &Arc<IdleConnection>) {
    let position = connection.position.load(Ordering::SeqCst);
    if position != 0 && connection.place.load(Ordering::SeqCst) == 0 {
        connection.place.store(position, Ordering::SeqCst);
        places.insert(position, Arc::clone(connection));
    }
}

/// A bit of the positions of authenticated connections. No server gives so many numbers.
const AUTHENTICATED: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unauthenticated_connections_are_evicted_first() {
        let list = IdleList::default();
        let connections: Vec<Arc<IdleConnection>> = (0..5).map(|_| Arc::default()).collect();
        for (index, is_authenticated) in [(0, true), (1, false), (2, false), (3, true), (4, false)]
        {
            list.enter(&connections[index], is_authenticated);
        }
        list.remove(&connections[1]);
        for index in [2, 4, 0, 3] {
            list.evict().await;
            connections[index].evicted().await;
        }
        assert!(list.lock().is_empty());
    }

    #[tokio::test]
    async fn busy_connections_are_not_evicted() {
        let list = IdleList::default();
        let [served, waiting, busy]: [Arc<IdleConnection>; 3] = Default::default();
        for connection in [&served, &waiting, &busy] {
            list.enter(connection, true);
        }
        busy.leave();
        // It is idle again, for less time than the other.
        served.leave();
        list.enter(&served, true);
        for connection in [waiting, served] {
            list.evict().await;
            connection.evicted().await;
        }
        assert!(list.take_first().is_none());
        list.enter(&busy, true);
        list.evict().await;
        busy.evicted().await;
    }

    #[tokio::test]
    async fn a_connection_that_ends_has_no_place() {
        let list = IdleList::default();
        let connection = Arc::default();
        list.enter(&connection, false);
        connection.leave();
        list.enter(&connection, true);
        list.remove(&connection);
        assert!(list.lock().is_empty() && list.take_first().is_none());
    }

    #[tokio::test]
    async fn eviction_waits_for_an_idle_connection() {
        let list = IdleList::default();
        let connection = Arc::default();
        let arrival = async {
            tokio::task::yield_now().await;
            list.enter(&connection, true);
        };
        tokio::join!(list.evict(), arrival);
        connection.evicted().await;
    }

    /// Threads become idle and busy, while another one evicts: no connection is evicted while it is
    /// busy, and none is lost.
    #[test]
    fn idle_connections_are_found_while_others_come_and_go() {
        let list = IdleList::default();
        let connections: Vec<Arc<IdleConnection>> = (0..4).map(|_| Arc::default()).collect();
        std::thread::scope(|scope| {
            for connection in &connections {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        list.enter(connection, true);
                        connection.leave();
                    }
                    list.enter(connection, true);
                });
            }
            scope.spawn(|| {
                for _ in 0..10_000 {
                    list.take_first();
                }
            });
        });
        for connection in &connections {
            if connection.position.load(Ordering::SeqCst) == 0 {
                // The last eviction took it.
                list.enter(connection, true);
            }
        }
        let found: Vec<_> = std::iter::from_fn(|| list.take_first()).collect();
        assert_eq!(found.len(), connections.len());
        assert!(list.lock().is_empty());
    }
}
