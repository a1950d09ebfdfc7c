//! The proxy's record of the requests of each operation: their faults, and what the server made of
//! them.
//!
//! An operation is open from its beginning until it is settled. A request of an operation that is
//! not open is dropped, so that nothing of it can arrive once its outcome is judged.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::Notify;

use crate::wire::Message;

/// The fate of a request that was passed on to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was carried out.
    Applied,
    /// It was refused, with this status.
    Refused(u16),
    /// The server gave no response, or one that leaves it open: it was killed.
    Lost,
}

impl Fate {
    pub(crate) fn of(response: Option<&Message>) -> Self {
        let Some(response) = response else {
            return Self::Lost;
        };
        let body = String::from_utf8_lossy(response.body());
        match response.status() {
            202 if body.contains("odata.error") => Self::Refused(202),
            200..300 => Self::Applied,
            503 if body.contains("ServerBusy") => Self::Refused(503),
            status @ 400..500 => Self::Refused(status),
            _ => Self::Lost,
        }
    }
}

/// One copy of a request that reached the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    pub(crate) fate: Fate,
}

/// One request of the client.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) began: Instant,
    pub(crate) method: String,
    pub(crate) target: String,
    /// The fault that the proxy applied.
    pub(crate) fault: String,
    pub(crate) deliveries: Vec<Delivery>,
}

/// All requests of an operation, in the order in which the proxy read them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) exchanges: Vec<Exchange>,
}

impl Record {
    /// The requests that carry the change: not those that read, or handle markers.
    fn exchanges_of_changes(&self, in_batches: bool) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().filter(move |exchange| {
            if in_batches {
                exchange.target.ends_with("/$batch")
            } else {
                exchange.method != "GET"
            }
        })
    }

    /// The copies of them that reached the server.
    pub(crate) fn changes(&self, in_batches: bool) -> impl Iterator<Item = &Delivery> {
        let exchanges = self.exchanges_of_changes(in_batches);
        exchanges.flat_map(|exchange| &exchange.deliveries)
    }

    /// The fate of the first copy of a change whose second copy was carried out.
    pub(crate) fn copy_applied_after(&self, in_batches: bool) -> Option<Fate> {
        let mut exchanges = self.exchanges_of_changes(in_batches);
        exchanges.find_map(|exchange| match exchange.deliveries.as_slice() {
            [first, .., last] if last.fate == Fate::Applied => Some(first.fate),
            _ => None,
        })
    }

    /// Returns true if the server got a request twice that the client sent once.
    pub(crate) fn is_duplicated(&self) -> bool {
        let mut exchanges = self.exchanges.iter();
        exchanges.any(|exchange| exchange.method != "GET" && exchange.deliveries.len() > 1)
    }

    /// Returns true if every request reached the server twice. A request that did not met a server
    /// that was killed.
    pub(crate) fn is_all_doubled(&self) -> bool {
        let mut exchanges = self.exchanges.iter();
        exchanges.all(|exchange| exchange.deliveries.len() == 2)
    }

    /// As lines of text, with times in milliseconds since `origin`.
    pub(crate) fn show(&self, origin: Instant) -> String {
        let ms = |time: Instant| time.saturating_duration_since(origin).as_millis();
        let mut text = String::new();
        for it in &self.exchanges {
            let Exchange { method, target, .. } = it;
            text += &format!("    {} {method} {target} | {}", ms(it.began), it.fault);
            for Delivery { began, ended, fate } in &it.deliveries {
                text += &format!(" | {}-{} {fate:?}", ms(*began), ms(*ended));
            }
            text += "\n";
        }
        text
    }
}

/// The records of all operations that are open. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Registry(Arc<Inner>);

#[derive(Default)]
struct Inner {
    operations: Mutex<HashMap<u64, Operation>>,
    changed: Notify,
}

#[derive(Default)]
struct Operation {
    record: Record,
    /// How many requests may still reach the server.
    pending: usize,
    is_closed: bool,
}

impl Registry {
    /// Opens an operation.
    pub(crate) fn open(&self, id: u64) {
        let mut operations = self.0.operations.lock().unwrap();
        operations.insert(id, Operation::default());
    }

    /// How many requests of an operation were noted.
    pub(crate) fn requests(&self, id: u64) -> usize {
        let operations = self.0.operations.lock().unwrap();
        let operation = operations.get(&id);
        operation.map_or(0, |operation| operation.record.exchanges.len())
    }

    /// Notes a request. `None` when its operation is not open.
    pub(crate) fn note(&self, id: u64, request: &Message, fault: String) -> Option<Pending> {
        let mut operations = self.0.operations.lock().unwrap();
        let operation = operations.get_mut(&id).filter(|it| !it.is_closed)?;
        operation.record.exchanges.push(Exchange {
            began: Instant::now(),
            method: request.word(0).to_owned(),
            target: request.word(1).to_owned(),
            fault,
            deliveries: Vec::new(),
        });
        operation.pending += 1;
        Some(Pending {
            registry: self.clone(),
            id,
            index: operation.record.exchanges.len() - 1,
        })
    }

    /// Closes an operation, waits until nothing of it is in flight any more, and gives its record.
    pub(crate) async fn settle(&self, id: u64) -> Record {
        loop {
            let mut changed = std::pin::pin!(self.0.changed.notified());
            changed.as_mut().enable();
            {
                let mut operations = self.0.operations.lock().unwrap();
                let operation = operations.get_mut(&id).expect("an operation settles once");
                operation.is_closed = true;
                if operation.pending == 0 {
                    let operation = operations.remove(&id);
                    return operation.expect("it was just there").record;
                }
            }
            changed.await;
        }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

/// A request that may still reach the server, until this is dropped.
#[derive(Debug)]
pub(crate) struct Pending {
    registry: Registry,
    id: u64,
    index: usize,
}

impl Pending {
    /// Notes a copy that reached the server.
    pub(crate) fn delivered(&self, delivery: Delivery) {
        self.with(|operation| {
            let exchange = &mut operation.record.exchanges[self.index];
            exchange.deliveries.push(delivery);
        });
    }

    fn with(&self, change: impl FnOnce(&mut Operation)) {
        let mut operations = self.registry.0.operations.lock().unwrap();
        let operation = operations.get_mut(&self.id);
        change(operation.expect("an operation stays while requests of it are pending"));
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.with(|operation| operation.pending -= 1);
        self.registry.0.changed.notify_waiters();
    }
}
