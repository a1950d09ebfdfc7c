//! Reads for a write, and reads of the current state, go to the primary, also by a client that
//! reads the secondary.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use harness::{client, client_with, proxy};
use http::Request;
use tablesdk::counter::Counter;
use tablesdk::encryption::Keyring;
use tablesdk::objects::Objects;
use tablesdk::transport::{Transport, TransportError, TransportFuture};
use tablesdk::{DynamicEntity, RetryPolicy, TableServiceClient};
use tablesdk_server::TableServer;

use super::encryption::january;
use super::expiry_removal::{Session, Token};
use super::objects::Employee;
use super::test_store::TestStore;

/// Its secondary has no entity yet.
#[derive(Clone, Debug)]
struct Replicated {
    primary: Arc<dyn Transport>,
    /// True if the primary responds to no read.
    is_silent: Arc<AtomicBool>,
}

impl Transport for Replicated {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            if request.uri().path().contains("-secondary/") {
                let json = "application/json;odata=minimalmetadata";
                let page = proxy::service_response(200).header("content-type", json);
                Ok(page.body(Bytes::from_static(b"{\"value\":[]}")).unwrap())
            } else if self.is_silent.load(Ordering::Relaxed) && request.method() == "GET" {
                Err(TransportError::not_sent("connection refused"))
            } else {
                self.primary.send(request).await
            }
        })
    }
}

async fn start() -> (TableServer, TableServiceClient, Arc<AtomicBool>) {
    let server = TableServer::in_process();
    for table in ["Tests", "Keys"] {
        client(&server).table(table).create_table().await.unwrap();
    }
    let is_silent = Arc::<AtomicBool>::default();
    let replicated = Replicated {
        primary: server.transport(),
        is_silent: Arc::clone(&is_silent),
    };
    let retry = RetryPolicy::exponential().delay(Duration::ZERO);
    let service = client_with(&server, |builder| {
        builder.transport(replicated).retry(retry).secondary_reads()
    });
    (server, service, is_silent)
}

#[tokio::test(start_paused = true)]
async fn a_query_of_a_program_is_answered_by_the_secondary() {
    let (_server, service, is_silent) = start().await;
    let table = service.table("Tests");
    table.insert(&DynamicEntity::new("a", "1")).await.unwrap();
    is_silent.store(true, Ordering::Relaxed);
    let found = table.query::<DynamicEntity>().collect().await.unwrap();
    assert_eq!(found.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_counter_contains_what_was_added() {
    let (_server, service, is_silent) = start().await;
    let counter = Counter::new(&service.table("Tests"), ("home", "views"));
    counter.add(5).await.unwrap();
    is_silent.store(true, Ordering::Relaxed);
    counter.value().await.unwrap_err();
    is_silent.store(false, Ordering::Relaxed);
    assert_eq!(counter.value().await.unwrap(), 5);
}

#[tokio::test(start_paused = true)]
async fn objects_in_use_are_not_deleted() {
    let (_server, service, is_silent) = start().await;
    let table = service.table("Tests");
    let store = TestStore::new();
    let photos = Objects::new(store.clone(), "photos");
    let photo = photos.put("a photo").await.unwrap();
    store.advance(Duration::from_secs(48 * 3600));
    let ada = Employee::new(1, &photo);
    table.insert(&ada).await.unwrap();
    is_silent.store(true, Ordering::Relaxed);
    let named = table.query::<Employee>().select(|e| e.photo);
    photos.clean_up_objects(named).await.unwrap_err();
    assert_eq!(&*photos.get(&photo).await.unwrap(), b"a photo");
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_deleted_is_found_at_the_primary() {
    let (_server, service, is_silent) = start().await;
    let table = service.table("Tests");
    is_silent.store(true, Ordering::Relaxed);
    let query = || table.query::<DynamicEntity>();
    query().delete_all().await.unwrap_err();
    let to = service.table("Keys");
    query().move_to(&to).await.unwrap_err();
    table.clean_up_expired::<Token>().await.unwrap_err();
    table.clean_up_expired::<Session>().await.unwrap_err();
    table.repair::<Session>().await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn keys_are_loaded_from_the_primary() {
    let (_server, service, is_silent) = start().await;
    let keys = service.table("Keys");
    let keyring = Keyring::open(&keys, january()).await.unwrap();
    is_silent.store(true, Ordering::Relaxed);
    keyring.rotate().await.unwrap_err();
    Keyring::open(&keys, january()).await.unwrap_err();
}
