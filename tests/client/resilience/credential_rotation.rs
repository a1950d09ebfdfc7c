//! Credentials that change while a client is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use harness::client;
use harness::proxy::{Proxy, Reply};
use http::Request;
use tablesdk::sas::Permissions;
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{RetryPolicy, SharedKey, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Op;

use crate::Employee;

fn key(secret: &str) -> SharedKey {
    SharedKey::new("acct", secret).unwrap()
}

/// Sends requests to the first server until `is_after` is set, and to the second one after that.
#[derive(Debug)]
struct Switch {
    before: Arc<dyn Transport>,
    after: Arc<dyn Transport>,
    is_after: Arc<AtomicBool>,
}

impl Transport for Switch {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        let is_after = self.is_after.load(Ordering::SeqCst);
        let server = if is_after { &self.after } else { &self.before };
        server.send(request)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_changes_under_load_without_errors() {
    // The account before and after its first key is regenerated.
    let both = TableServer::builder().account(key("b25l"));
    let both = both.account(key("dHdv")).in_process().unwrap();
    let second_only = TableServer::builder().account(key("dHdv"));
    let second_only = second_only.in_process().unwrap();
    let is_after = Arc::new(AtomicBool::new(false));
    let transport = Switch {
        before: both.transport(),
        after: second_only.transport(),
        is_after: Arc::clone(&is_after),
    };
    let builder = |server: &TableServer, secret| {
        TableServiceClient::builder(server.endpoint()).credential(key(secret))
    };
    let service = builder(&both, "b25l").transport(transport);
    let service = service.retry(RetryPolicy::none()).build().unwrap();
    // Each state of the account has the table.
    let table = service.table("Tests");
    table.create_table().await.unwrap();
    let other = builder(&second_only, "dHdv").transport(second_only.transport());
    let other = other.build().unwrap();
    other.table("Tests").create_table().await.unwrap();

    let done = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..16)
        .map(|worker| {
            let (table, done, stop) = (table.clone(), Arc::clone(&done), Arc::clone(&stop));
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    let entity = Employee::new(&worker.to_string(), "Ada", 36);
                    table.upsert_replace(&entity).await?;
                    done.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                }
                Ok::<_, tablesdk::Error>(())
            })
        })
        .collect();
    let more = |count: usize| {
        let done = Arc::clone(&done);
        async move {
            let target = done.load(Ordering::SeqCst) + count;
            while done.load(Ordering::SeqCst) < target {
                tokio::task::yield_now().await;
            }
        }
    };
    more(200).await;
    service.update_credential(key("dHdv")).unwrap();
    more(200).await;
    // The old key is no longer valid.
    is_after.store(true, Ordering::SeqCst);
    more(200).await;
    stop.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_request_signed_with_the_old_key_is_signed_again() {
    let server = TableServer::builder()
        .account(key("dHdv"))
        .in_process()
        .unwrap();
    let proxy = Proxy::new(server.transport());
    let service = TableServiceClient::builder(server.endpoint())
        .credential(key("b25l"))
        .transport(proxy.clone())
        .retry(RetryPolicy::none())
        .build()
        .unwrap();
    // Without another credential, the request is not sent again.
    let error = service.table("People").create_table().await.unwrap_err();
    assert!(error.is_denied());
    assert_eq!(proxy.count(Op::CreateTable), 1);

    // The credential changes while the request is in flight.
    let change_to = |secret: &'static str| {
        let service = service.clone();
        proxy.choose(move |_| {
            service.update_credential(key(secret)).unwrap();
            Reply::Forward
        });
    };
    change_to("dHdv");
    service.table("People").create_table().await.unwrap();
    assert_eq!(proxy.count(Op::CreateTable), 3);

    // A second invalid credential ends the operation.
    service.update_credential(key("dGhyZWU=")).unwrap();
    change_to("Zm91cg==");
    let error = service.table("Places").create_table().await.unwrap_err();
    assert!(error.is_denied());
    assert_eq!((error.attempts(), proxy.count(Op::CreateTable)), (2, 5));
}

#[tokio::test]
async fn an_expired_sas_can_be_replaced() {
    let server = TableServer::in_process();
    let clock = server.clock();
    clock.freeze();
    let owner = client(&server);
    let table = owner.table("Tests");
    table.create_table().await.unwrap();
    let sign = || {
        let sas = table.sas().allow(Permissions::READ);
        sas.expires_in(Duration::from_secs(60)).sign().unwrap()
    };
    let builder = sign().builder().transport(server.transport());
    let service = builder.clock(clock.clone()).build().unwrap();
    let guest = service.table("Tests");
    let count = || guest.query::<Employee>().count();
    assert_eq!(count().await.unwrap(), 0);
    clock.advance(Duration::from_secs(60));
    assert!(count().await.unwrap_err().is_denied());
    service.update_credential(sign().sas().clone()).unwrap();
    assert_eq!(count().await.unwrap(), 0);
    assert!(!format!("{service:?}").contains(&sign().sas().expose()[100..]));
}
