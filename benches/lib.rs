//! The parts that the benches share: an entity of ten properties, requests, and a transport that
//! always returns the same response.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{Guid, TableClient, TableEntity, TableServiceClient, Timestamp};
use tablesdk_server::TableServer;

/// Two keys and ten properties, of every type but Binary.
#[expect(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
pub struct Employee {
    #[table(partition_key)]
    pub partition_key: String,
    #[table(row_key)]
    pub row_key: String,
    pub first_name: String,
    pub last_name: String,
    pub email: String,
    pub department: String,
    pub age: i32,
    pub badge: i64,
    pub salary: f64,
    pub remote: bool,
    pub hired: Timestamp,
    pub office: Guid,
}

impl Employee {
    /// Another one for each number.
    pub fn new(number: u32) -> Self {
        let small = i64::from(number % 1000);
        let hired = Timestamp::from_unix_ticks(17_000_000_000_000_000 + small * 1_234_567);
        Self {
            partition_key: PARTITION.to_owned(),
            row_key: row_key(number),
            first_name: format!("Firstname{number:08}"),
            last_name: format!("Lastname{number:08}"),
            email: format!("employee{number:08}@contoso.example"),
            department: "Research and development".to_owned(),
            age: i32::try_from(small).unwrap_or_default(),
            badge: small << 33,
            salary: f64::from(number % 1000) * 101.25,
            remote: number.is_multiple_of(2),
            hired: hired.unwrap_or(Timestamp::UNIX_EPOCH),
            office: Guid::from_bytes(u128::from(number).to_be_bytes()),
        }
    }
}

/// The row key of an employee.
pub fn row_key(number: u32) -> String {
    format!("{number:010}")
}

/// The partition of all employees.
pub const PARTITION: &str = "sales";

/// A server in this process with a table of employees, and a client of it that records.
#[derive(Debug)]
pub struct Subject {
    /// Calls the server.
    pub server: Arc<dyn Transport>,
    /// Uses the server, and records.
    pub table: TableClient,
    recorded: Arc<Mutex<Option<Exchange>>>,
}

/// A request and its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The request, which is signed.
    pub request: Request<Bytes>,
    /// The response.
    pub response: Response<Bytes>,
}

impl Subject {
    /// With that many employees.
    pub async fn new(employees: u32) -> Self {
        let server = TableServer::in_process();
        let recorded = Arc::default();
        let client = TableServiceClient::builder(server.endpoint())
            .credential(server.credential())
            .transport(Recorder {
                server: server.transport(),
                recorded: Arc::clone(&recorded),
            })
            .build();
        let table = client.expect("the endpoint is valid").table("people");
        let subject = Self {
            server: server.transport(),
            table,
            recorded,
        };
        subject.table.create_table().await.expect("a new table");
        for first in (0..employees).step_by(100) {
            subject
                .insert_batch(first..employees.min(first + 100))
                .await;
        }
        subject
    }

    /// Inserts employees in one transaction.
    pub async fn insert_batch(&self, numbers: std::ops::Range<u32>) {
        insert_batch(&self.table, numbers.map(Employee::new)).await;
    }

    /// The last request of the table's client, with its response.
    pub fn last(&self) -> Exchange {
        let recorded = self.recorded.lock();
        let recorded = recorded.unwrap_or_else(PoisonError::into_inner).clone();
        recorded.expect("the client has sent a request")
    }

    /// A client whose transport returns this response to every request.
    pub fn client_of(&self, mut response: Response<Bytes>) -> TableClient {
        // It is the response to other requests.
        response.headers_mut().remove("x-ms-client-request-id");
        let client = TableServiceClient::builder("http://127.0.0.1/devstoreaccount1")
            .credential(TableServer::in_process().credential())
            .transport(Canned(response))
            .build();
        client.expect("the endpoint is valid").table("people")
    }
}

/// Inserts employees in one transaction.
pub async fn insert_batch(table: &TableClient, employees: impl IntoIterator<Item = Employee>) {
    let mut batch = table.batch(PARTITION);
    for employee in employees {
        batch = batch.insert(&employee);
    }
    batch.await.expect("new entities");
}

/// Sends requests to a server in this process, and keeps the last one.
#[derive(Debug)]
struct Recorder {
    server: Arc<dyn Transport>,
    recorded: Arc<Mutex<Option<Exchange>>>,
}

impl Transport for Recorder {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let response = self.server.send(request.clone()).await?;
            let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            *recorded = Some(Exchange {
                request,
                response: response.clone(),
            });
            Ok(response)
        })
    }
}

/// Returns the same response each time.
#[derive(Debug)]
struct Canned(Response<Bytes>);

impl Transport for Canned {
    fn send(&self, _: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}
