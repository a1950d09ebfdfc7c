//! Scans that wait for a disk, and other tasks that need the thread in the meantime.
//!
//! The disk of these tests waits for a signal from a task, and that task needs a thread to send it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::request::connection::Connection;
use crate::storage::tests::StorageDouble;
use crate::storage::{Records, Slice, Snapshot, StorageError};

struct SlowDisk {
    records: MemoryStorage,
    gate: Arc<Gate>,
}

#[derive(Debug)]
struct Gate {
    arrived: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl StorageDouble for SlowDisk {
    fn inner(&self) -> &dyn Storage {
        &self.records
    }

    fn snapshot(&self) -> Box<dyn Snapshot> {
        Box::new(SlowReads {
            records: self.records.snapshot(),
            gate: Arc::clone(&self.gate),
        })
    }

    fn is_persistent(&self) -> bool {
        true
    }
}

struct SlowReads {
    records: Box<dyn Snapshot>,
    gate: Arc<Gate>,
}

impl Snapshot for SlowReads {
    fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        self.records.get(key)
    }

    fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
        // Those of entities.
        if start.starts_with(b"e") {
            self.gate.arrived.send(()).unwrap();
            let go_on = self.gate.go_on.lock().unwrap();
            let told = go_on.recv_timeout(Duration::from_secs(60));
            told.expect("other tasks have no thread while a scan waits");
        }
        self.records.range(start, end)
    }
}

/// A client whose scans wait, a receiver that reports a waiting scan, and a sender that lets the
/// scan continue.
fn client() -> (Client, Receiver<()>, Sender<()>) {
    let (arrived, has_arrived) = channel();
    let (go_on, told) = channel();
    let storage = SlowDisk {
        records: MemoryStorage::default(),
        gate: Arc::new(Gate {
            arrived,
            go_on: Mutex::new(told),
        }),
    };
    (Client::on(storage, |_| {}).and_table(), has_arrived, go_on)
}

fn query(client: &Client) -> Request<Bytes> {
    let mut request = client.signed("GET", "/acct/people()", &[], "");
    request.extensions_mut().insert(Connection {
        peer: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        ..Connection::default()
    });
    request
}

#[test]
fn scans_that_wait_for_a_disk_block_no_other_task() {
    let (client, has_arrived, go_on) = client();
    let request = query(&client);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).build().unwrap();
    let scan = runtime.spawn(async move { client.service.call(request).await.status() });
    has_arrived.recv().unwrap();
    // The only worker has the scan.
    runtime.spawn(async move { go_on.send(()).unwrap() });
    assert_eq!(runtime.block_on(scan).unwrap(), 200);
}

#[test]
fn scans_wait_in_place_on_a_single_thread() {
    let (client, _has_arrived, go_on) = client();
    go_on.send(()).unwrap();
    assert_eq!(client.call(query(&client)).status(), 200);
}
