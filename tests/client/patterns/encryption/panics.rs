//! A provider that panics once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use harness::client;
use tablesdk::encryption::{ContentKey, KeyProvider, Keyring, ProviderFuture, WrappedKey};
use tablesdk_server::TableServer;

use super::keys::get;
use super::{Patient, january, tables};

#[derive(Clone, Default)]
struct Panicking(Arc<AtomicBool>);

impl KeyProvider for Panicking {
    fn key_id(&self) -> String {
        january().key_id()
    }

    fn wrap<'a>(&'a self, key: &'a ContentKey) -> ProviderFuture<'a, Vec<u8>> {
        Box::pin(async { january().wrap(key).await })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> ProviderFuture<'a, ContentKey> {
        Box::pin(async {
            tokio::task::yield_now().await;
            assert!(!self.0.swap(false, Ordering::Relaxed), "once");
            january().unwrap(wrapped).await
        })
    }
}

#[tokio::test]
async fn a_panic_of_a_provider_is_that_of_one_caller() {
    let server = TableServer::in_process();
    let service = client(&server);
    let (_, raw) = tables(&service).await;
    let keys = service.table("TablesdkKeys");
    keys.create_table().await.unwrap();
    let provider = Panicking::default();
    let keyring = Keyring::open(&keys, provider.clone()).await.unwrap();
    let table = raw.with_encryption(keyring);
    table.insert(&Patient::ada()).await.unwrap();
    server.clock().advance(Duration::from_secs(3600));
    provider.0.store(true, Ordering::Relaxed);
    // It waits for the load as well, and is polled no more.
    let mut aside = Box::pin(get(&table, "1"));
    assert!(aside.as_mut().now_or_never().is_none());
    let callers = (0..3).map(|_| {
        let table = table.clone();
        tokio::spawn(async move { get(&table, "1").await })
    });
    let results = join_all(callers).await;
    let panics = results.iter().filter_map(|result| result.as_ref().err());
    assert_eq!(panics.filter(|error| error.is_panic()).count(), 1);
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2);
    assert_eq!(aside.await, Patient::ada());
}
