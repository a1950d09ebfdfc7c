//! A gateway that exchanges the responses of two requests under way: none of them is believed. What
//! each verb does with the response to another request is in `faults::http_level`.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use harness::{Subject, client_with};
use http::{Request, Response};
use tablesdk::transport::{Transport, TransportError, TransportFuture};
use tablesdk::{DynamicEntity, ErrorKind, RetryPolicy, TableClient, TableEntity};
use tablesdk_server::TableServer;
use tokio::join;
use tokio::sync::oneshot;

/// Exchanges the responses of pairs of requests, as many as a test sets.
#[derive(Clone, Debug)]
struct Gateway {
    server: Arc<dyn Transport>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// How many pairs are left.
    pairs: usize,
    /// Responses lose the header by which a client recognizes them, as those of Cosmos DB do.
    hides_ids: bool,
    waiting: Option<(Response<Bytes>, oneshot::Sender<Response<Bytes>>)>,
}

impl Gateway {
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Exchanges the responses of that many pairs of the requests that follow.
    fn exchange(&self, pairs: usize) {
        self.with(|state| state.pairs = pairs);
    }

    /// The response that this one is exchanged for.
    fn exchanged(&self, response: Response<Bytes>) -> Result<Response<Bytes>, Waiting> {
        self.with(|state| {
            if state.pairs == 0 {
                return Ok(response);
            }
            let Some((other, sender)) = mem::take(&mut state.waiting) else {
                let (sender, receiver) = oneshot::channel();
                state.waiting = Some((response, sender));
                return Err(receiver);
            };
            state.pairs -= 1;
            let _ = sender.send(response);
            Ok(other)
        })
    }
}

type Waiting = oneshot::Receiver<Response<Bytes>>;

impl Transport for Gateway {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let mut response = self.server.send(request).await?;
            if self.with(|state| state.hides_ids) {
                response.headers_mut().remove("x-ms-client-request-id");
            }
            match self.exchanged(response) {
                Ok(response) => Ok(response),
                Err(waiting) => waiting.await.map_err(TransportError::maybe_sent),
            }
        })
    }
}

/// Responds to the reads of entries of an index with an empty object, and loses the responses to
/// their inserts.
#[derive(Clone, Debug)]
struct Portal(Arc<dyn Transport>);

impl Transport for Portal {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let of_entry = |text: &str| text.contains("town_");
            let target = request.uri().to_string();
            let body = String::from_utf8_lossy(request.body()).into_owned();
            if request.method() == "GET" && of_entry(&target) {
                let response = Response::builder().header("ETag", "\"1\"");
                let response = response.header("Content-Type", "application/json");
                return Ok(response.body(Bytes::from_static(b"{}")).unwrap());
            }
            let response = self.0.send(request).await?;
            if response.status() == 204 && of_entry(&body) {
                return Err(TransportError::maybe_sent("the connection was lost"));
            }
            Ok(response)
        })
    }
}

/// Found by its town, in another partition.
#[derive(Debug, TableEntity)]
#[table(row_key = "person_{id}")]
#[table(index(ByTown, partition_key = "town_{town}", row_key = "in_{country}_{id}"))]
struct Person {
    #[table(partition_key)]
    country: String,
    id: String,
    town: String,
}

/// An entry is written before its entity. If it is not known whether it is there, the entity was
/// not written.
#[tokio::test(start_paused = true)]
async fn an_object_without_keys_is_no_entry_of_another_program() {
    let server = TableServer::in_process();
    let portal = Portal(server.transport());
    let subject = Subject::with_transport(server, portal);
    let table = subject.table().await;
    let ada = Person {
        country: "UK".to_owned(),
        id: "1".to_owned(),
        town: "London".to_owned(),
    };
    let inserts = [table.insert(&ada), table.insert(&ada).exactly_once()];
    for insert in inserts {
        let error = insert.await.unwrap_err();
        assert!(!error.is_outcome_unknown(), "{error}");
        assert!(!error.to_string().contains("another entity"), "{error}");
        let stored = subject
            .other()
            .table("Tests")
            .get(Person::key("UK", "1"))
            .await;
        assert!(stored.unwrap().is_none());
    }
}

/// A table with the entities `1` and `2` of the partition `Sales`, behind a gateway.
async fn start() -> (Subject, TableClient, Gateway) {
    let server = TableServer::in_process();
    let gateway = Gateway {
        server: server.transport(),
        state: Arc::default(),
    };
    let subject = Subject::with_transport(server, gateway.clone());
    let table = subject.table().await;
    for id in ["1", "2"] {
        table.insert(&entity("Sales", id)).await.unwrap();
    }
    (subject, table, gateway)
}

fn entity(partition_key: &str, row_key: &str) -> DynamicEntity {
    DynamicEntity::new(partition_key, row_key).with("Id", row_key)
}

fn id(entity: &DynamicEntity) -> String {
    entity.properties().read("Id").unwrap()
}

async fn read(table: &TableClient, row_key: &str) -> Option<String> {
    let read = table.get::<DynamicEntity>(("Sales", row_key)).await;
    read.unwrap().map(|entity| id(&entity))
}

#[tokio::test(start_paused = true)]
async fn a_read_returns_its_own_entity() {
    let (_subject, table, gateway) = start().await;
    for pairs in [1, 2, 3] {
        gateway.exchange(pairs);
        let both = join!(read(&table, "1"), read(&table, "2"));
        assert_eq!(both, (Some("1".to_owned()), Some("2".to_owned())));
        gateway.exchange(pairs);
        let both = join!(read(&table, "1"), read(&table, "9"));
        assert_eq!(both, (Some("1".to_owned()), None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_always_mixes_up_responses_is_reported() {
    let (subject, _, gateway) = start().await;
    let retry = RetryPolicy::exponential().attempts(2);
    let client = client_with(subject.server(), |builder| {
        builder.transport(gateway.clone()).retry(retry)
    });
    let table = client.table("Tests");
    let get = |id| table.get::<DynamicEntity>(("Sales", id)).into_future();
    gateway.exchange(10);
    let (one, two) = join!(get("1"), get("2"));
    assert!(two.is_err());
    let error = one.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert_eq!(error.attempts(), 2);
    assert_eq!(error.request_id(), None);
    let text = error.to_string();
    let words = "no response arrived: the response that came is that to another request";
    assert!(text.contains(words), "{text}");
}

// Responses of Cosmos DB do not say whose they are. The keys in them do.

#[tokio::test(start_paused = true)]
async fn a_read_compares_the_keys_of_what_it_reads() {
    let (_subject, table, gateway) = start().await;
    gateway.with(|state| state.hides_ids = true);
    gateway.exchange(1);
    let both = join!(read(&table, "1"), read(&table, "2"));
    assert_eq!(both, (Some("1".to_owned()), Some("2".to_owned())));

    gateway.exchange(1);
    let keys = [("Sales", "1"), ("Sales", "2")];
    let many = table.get_many::<DynamicEntity, _>(keys).await.unwrap();
    let many: Vec<_> = many.iter().flatten().map(|it| id(it)).collect();
    assert_eq!(many, ["1", "2"]);

    gateway.exchange(1);
    let one = |row_key| {
        let query = table.query::<DynamicEntity>().partition("Sales");
        query
            .filter(move |e| e.property("RowKey").eq(row_key))
            .one()
    };
    let (first, second) = join!(one("1"), one("2"));
    let [first, second] = [first, second].map(|it| id(&it.unwrap().unwrap()));
    assert_eq!((&*first, &*second), ("1", "2"));
}

#[tokio::test(start_paused = true)]
async fn a_read_before_a_write_compares_the_keys() {
    let (_subject, table, gateway) = start().await;
    gateway.with(|state| state.hides_ids = true);
    let raise = async |row_key| {
        let modify = table.modify(("Sales", row_key), |entity: &mut DynamicEntity| {
            assert_eq!(id(entity), row_key);
            entity.properties_mut().set("Salary", 5);
            Ok(())
        });
        modify.await.unwrap();
    };
    gateway.exchange(1);
    join!(raise("1"), raise("2"));

    let promote = async |row_key| {
        let transaction = table.transaction("Sales", async |t| {
            let entity = t.get::<DynamicEntity>(("Sales", row_key)).await?.unwrap();
            assert_eq!(id(&entity), row_key);
            Ok(())
        });
        transaction.await.unwrap();
    };
    gateway.exchange(1);
    join!(promote("1"), promote("2"));
    for row_key in ["1", "2"] {
        assert_eq!(read(&table, row_key).await.as_deref(), Some(row_key));
    }
}
