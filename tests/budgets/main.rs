//! How often the server allocates memory for a request, and the client for a change of a batch:
//! budgets, which are exact on every machine.
//!
//! The allocator of this test program counts the calls of each thread. A server runs on the thread
//! of the test, with its HTTP stack and sockets, and the client on another one. The difference
//! between many requests and fewer of them leaves out what a server and a connection need once. A
//! reallocation counts as an allocation.

mod by_hand;
mod client;
#[path = "../benches/client/entity.rs"]
mod entity;
#[path = "../benches/client/fixed.rs"]
mod fixed;
#[path = "../benches/client/floor.rs"]
mod floor;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use harness::raw::RawClient;
use tablesdk_server::TableServer;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// A server on this thread, with one table.
struct Subject {
    runtime: Runtime,
    server: TableServer,
    client: RawClient,
}

impl Subject {
    fn new() -> Self {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        let server = runtime.block_on(TableServer::start()).unwrap();
        let client = RawClient::of(&server);
        let subject = Self {
            runtime,
            server,
            client,
        };
        let create = subject.request("POST /Tables", r#"{"TableName":"people"}"#);
        subject.count(vec![create], 204);
        subject
    }

    /// The bytes of a signed request with the headers that clients send.
    fn request(&self, line: &str, body: &str) -> Vec<u8> {
        self.request_of("application/json", line, body)
    }

    fn request_of(&self, content_type: &str, line: &str, body: &str) -> Vec<u8> {
        let content_type = format!("Content-Type: {content_type}");
        let length = format!("Content-Length: {}", body.len());
        let mut headers = vec![
            "Accept: application/json;odata=minimalmetadata",
            "DataServiceVersion: 3.0",
            "Prefer: return-no-content",
            "User-Agent: budgets",
            "x-ms-client-request-id: 0b9f6a52-6f0d-4c31-9d0b-7a5d4c1f8e77",
            "x-ms-version: 2019-02-02",
        ];
        if !body.is_empty() {
            headers.extend([content_type.as_str(), length.as_str()]);
        }
        (self.client.head(true, line, &headers) + body).into_bytes()
    }

    /// The bytes of a request to insert an entity of ten properties.
    fn insert(&self, row_key: &str) -> Vec<u8> {
        self.request("POST /people", &entity(row_key))
    }

    /// How often the server allocates for these requests, on one connection.
    fn count(&self, requests: Vec<Vec<u8>>, status: u16) -> u64 {
        let address = self.server.local_addr().unwrap();
        let (done, is_done) = oneshot::channel();
        let client = thread::spawn(move || {
            send(address, &requests, status);
            let _ = done.send(());
        });
        let counted = allocation_counter::measure(|| {
            let _ = self.runtime.block_on(is_done);
        });
        client.join().unwrap();
        counted.count_total
    }

    /// How often the server allocates for each of these requests: so many, after as many that are
    /// not counted.
    fn count_each(
        &self,
        status: u16,
        count: usize,
        mut request: impl FnMut(usize) -> Vec<u8>,
    ) -> u64 {
        let mut requests = |from, count| (from..from + count).map(&mut request).collect();
        self.count(requests(0, count), status);
        let fewer = self.count(requests(count, count), status);
        let more = self.count(requests(2 * count, 2 * count), status);
        let count = u64::try_from(count).unwrap();
        // Rounded, because some structures grow now and then.
        (more - fewer + count / 2) / count
    }
}

/// Sends requests one after another, and reads the response to each.
fn send(address: SocketAddr, requests: &[Vec<u8>], status: u16) {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut buffer = Vec::new();
    for request in requests {
        stream.write_all(request).unwrap();
        buffer.clear();
        while !is_complete(&buffer) {
            let mut part = [0; 8 * 1024];
            let bytes = stream.read(&mut part).unwrap();
            assert!(bytes > 0, "{}", String::from_utf8_lossy(&buffer));
            buffer.extend_from_slice(&part[..bytes]);
        }
        let text = String::from_utf8_lossy(&buffer);
        let expected = format!("HTTP/1.1 {status} ");
        assert!(text.starts_with(&expected), "{text}");
        assert!(!text.contains("odata.error"), "{text}");
    }
}

fn is_complete(response: &[u8]) -> bool {
    let text = String::from_utf8_lossy(response);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.map_or(0, |(_, length)| length.parse().unwrap());
    body.len() >= length
}

fn key(row_key: &str) -> String {
    format!("(PartitionKey='p',RowKey='{row_key}')")
}

fn entity(row_key: &str) -> String {
    format!(
        r#"{{"PartitionKey":"p","RowKey":"{row_key}","FirstName":"Firstname","LastName":"Lastname","Email":"name@contoso.example","Department":"Research","Age":39,"Badge@odata.type":"Edm.Int64","Badge":"8589934592","Salary":101.25,"Remote":true,"Hired@odata.type":"Edm.DateTime","Hired":"2024-03-15T10:20:30Z","Office@odata.type":"Edm.Guid","Office":"c9da6455-213d-42c9-9a79-3e9149a57833"}}"#
    )
}

/// A batch that inserts so many entities.
fn batch(name: &str, changes: usize) -> String {
    let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
    for number in 0..changes {
        let entity = entity(&format!("{name}-{number:04}"));
        body +=
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
        body += "POST /people HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n";
        body += &format!("Content-Length: {}\r\n\r\n{entity}\r\n", entity.len());
    }
    body + "--c--\r\n--b--\r\n"
}

fn assert_within(name: &str, counted: u64, budget: u64) {
    println!("{name}: {counted} allocations");
    assert!(
        counted <= budget,
        "{name}: {counted} allocations, and not at most {budget}"
    );
}

#[test]
fn a_point_read_has_a_budget() {
    let subject = Subject::new();
    subject.count(vec![subject.insert("r")], 204);
    let line = format!("GET /people{}", key("r"));
    let counted = subject.count_each(200, 200, |_| subject.request(&line, ""));
    assert_within("point read", counted, POINT_READ);
}

#[test]
fn an_insert_has_a_budget() {
    let subject = Subject::new();
    let counted = subject.count_each(204, 200, |number| subject.insert(&format!("{number:08}")));
    assert_within("insert", counted, INSERT);
}

#[test]
fn an_upsert_and_a_delete_have_budgets() {
    let subject = Subject::new();
    let line =
        |verb: &str, number: usize| format!("{verb} /people{}", key(&format!("{number:08}")));
    let upsert = |number| subject.request(&line("PUT", number), &entity(""));
    assert_within("upsert", subject.count_each(204, 200, upsert), UPSERT);
    let delete = |number| {
        let line = line("DELETE", number);
        let any = [subject
            .client
            .head(true, &line, &["If-Match: *", "x-ms-version: 2019-02-02"])];
        any.concat().into_bytes()
    };
    assert_within("delete", subject.count_each(204, 200, delete), DELETE);
}

#[test]
fn an_entity_of_a_page_is_copied_without_an_allocation() {
    let subject = Subject::new();
    for name in 0..10 {
        let batch = batch(&format!("{name:02}"), 100);
        let batch = subject.request_of("multipart/mixed; boundary=b", "POST /$batch", &batch);
        subject.count(vec![batch], 202);
    }
    let count = |top: usize, filter: &str| {
        let line = format!("GET /people()?$top={top}&$filter={filter}");
        subject.count_each(200, 20, |_| subject.request(&line, ""))
    };
    for filter in [
        "PartitionKey%20eq%20'p'",
        "PartitionKey%20eq%20'p'%20and%20Age%20gt%205",
    ] {
        let (few, many) = (count(500, filter), count(1000, filter));
        println!("pages of 500 and 1,000 entities, {filter}: {few} and {many} allocations");
        // The buffer of the response grows.
        assert!(
            many <= few + 4,
            "{few} allocations for 500 entities, {many} for 1,000"
        );
        assert!(many < 150, "{many}");
    }
}

#[test]
fn a_change_of_a_batch_has_a_budget() {
    let subject = Subject::new();
    let mut names = 0..;
    let mut count = |changes| {
        subject.count_each(202, 10, |_| {
            let batch = batch(&format!("{:06}", names.next().unwrap()), changes);
            subject.request_of("multipart/mixed; boundary=b", "POST /$batch", &batch)
        })
    };
    let (few, many) = (count(20), count(60));
    assert_within("change of a batch", (many - few) / 40, CHANGE);
}

const POINT_READ: u64 = 21;
const INSERT: u64 = 27;
const UPSERT: u64 = 25;
const DELETE: u64 = 14;
const CHANGE: u64 = 4;
