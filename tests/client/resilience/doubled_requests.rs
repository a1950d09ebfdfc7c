//! A network that delivers each request twice and returns the second response: a change is made at
//! most twice, and not reported as a success. And clients that make the same change in every order,
//! without a fault: no change is lost, and each succeeds.
//!
//! A failure of the randomised test prints its seed; `TABLESDK_DOUBLED_SEED` runs that seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use harness::outcome::{Found, found};
use harness::{Subject, client_with, seeds};
use http::Request;
use tablesdk::action::RunTransaction;
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{ErrorKind, Stored, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Faults, Op};
use tokio::sync::{mpsc, oneshot};

use crate::{Employee, start};

/// A table with Ada, behind a network that doubles each request.
async fn doubling() -> (Subject, TableClient, Faults) {
    let (subject, table, faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    faults.on_any().inject(Fault::duplicate());
    (subject, table, faults)
}

async fn ada(table: &TableClient) -> Stored<Employee> {
    Employee::find(table).await.expect("she was inserted")
}

/// Makes Ada a year older, as `modify` with [`Employee::grow_older`] does.
fn transaction(table: &TableClient) -> RunTransaction<'static, ()> {
    table.transaction("Sales", async |tx| {
        let ada = tx.get(Employee::key("Sales", "1")).await?;
        let mut ada = ada.ok_or("she was inserted")?;
        ada.age += 1;
        tx.replace(ada);
        Ok(())
    })
}

#[tokio::test(start_paused = true)]
async fn modify_changes_at_most_twice_and_reports_an_unknown_outcome() {
    let (_subject, table, _faults) = doubling().await;
    let mut calls = 0;
    let error = table.modify(("Sales", "1"), |e: &mut Employee| {
        calls += 1;
        e.grow_older()
    });
    let error = error.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert_eq!(found(&error), Found::Equal, "{error}");
    assert!(!error.is_precondition_failed(), "{error}");
    assert_eq!((calls, ada(&table).await.age), (2, 38));

    let made = || Employee::new("2", "Grace", 50);
    let count = table
        .modify(("Sales", "2"), Employee::grow_older)
        .or_insert(made);
    let error = count.await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error}");
    let grace = table.get(Employee::key("Sales", "2")).await.unwrap();
    assert_eq!(grace.unwrap().age, 52, "inserted with 51, and changed");
}

#[tokio::test(start_paused = true)]
async fn a_transaction_changes_at_most_twice_and_reports_an_unknown_outcome() {
    let (_subject, table, _faults) = doubling().await;
    let error = table.transaction("Sales", async |tx| {
        let ada = tx.get(Employee::key("Sales", "1")).await?;
        let mut ada = ada.ok_or("she was inserted")?;
        ada.age += 1;
        tx.upsert_merge(&Employee::new("2", "Grace", ada.age))
            .replace(ada);
        Ok(())
    });
    let error = error.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert_eq!(found(&error), Found::Equal, "{error}");
    assert_eq!((error.batch_index(), ada(&table).await.age), (Some(1), 38));

    // The closure takes the first number that is free.
    let error = table.transaction("Sales", async |tx| {
        tx.get::<Employee>(("Sales", "1")).await?;
        for id in 10..30 {
            let id = id.to_string();
            if tx.get(Employee::key("Sales", &id)).await?.is_none() {
                tx.insert(&Employee::new(&id, "Alan", 41));
                break;
            }
        }
        Ok(())
    });
    assert!(error.await.unwrap_err().is_outcome_unknown());
    let hired = table.query::<Employee>().filter(|e| e.name.eq("Alan"));
    assert_eq!(hired.count().await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn exactly_once_forms_succeed_once() {
    let (_subject, table, _faults) = doubling().await;
    let modified = table
        .modify(("Sales", "1"), Employee::grow_older)
        .exactly_once();
    assert_eq!(modified.await.unwrap().age, 37);
    transaction(&table).exactly_once().await.unwrap();
    assert_eq!(ada(&table).await.age, 38);
}

/// Two requests of a modify that were doubled among others: the next write shows that requests
/// arrive once.
#[tokio::test(start_paused = true)]
async fn modify_goes_on_where_not_each_request_is_doubled() {
    let (subject, table, faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    let journal = subject.server().journal();
    for _ in 0..2 {
        faults.next(Op::UpdateEntity, Fault::duplicate());
    }
    let modify = table.modify(("Sales", "1"), Employee::grow_older);
    assert_eq!(modify.await.unwrap().age, 39, "two changes by copies");
    // It changes nothing.
    assert_eq!(journal.requests().op(Op::MergeEntity).count(), 1);
    assert_eq!(ada(&table).await.age, 39);
}

/// A client without the right to write without properties: the outcome stays unknown.
#[tokio::test(start_paused = true)]
async fn a_write_of_no_properties_that_is_refused_proves_nothing() {
    let (_subject, table, faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    for _ in 0..2 {
        faults.next(Op::UpdateEntity, Fault::duplicate());
    }
    let denied = tablesdk::ErrorCode::AuthorizationPermissionMismatch;
    faults.on(Op::MergeEntity).inject(Fault::error(denied));
    let modify = table.modify(("Sales", "1"), Employee::grow_older);
    let error = modify.await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error}");
    assert_eq!(ada(&table).await.age, 38);
}

/// A transport that asks before it sends, and tells when the response is there.
#[derive(Debug)]
struct Gate(
    Arc<dyn Transport>,
    mpsc::UnboundedSender<oneshot::Sender<oneshot::Sender<()>>>,
);

impl Transport for Gate {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let (allow, allowed) = oneshot::channel();
            let _ = self.1.send(allow);
            let done = allowed.await;
            let response = self.0.send(request).await;
            drop(done);
            response
        })
    }
}

type Requests = mpsc::UnboundedReceiver<oneshot::Sender<oneshot::Sender<()>>>;

/// A client whose requests wait for [`let_through`].
fn gated(server: &TableServer) -> (TableClient, Requests) {
    let (asks, requests) = mpsc::unbounded_channel();
    let client = client_with(server, |builder| {
        builder.transport(Gate(server.transport(), asks))
    });
    (client.table("Tests"), requests)
}

/// Lets the next request of a client through, to its response. `false` if the client has ended.
async fn let_through(requests: &mut Requests) -> bool {
    let Some(allow) = requests.recv().await else {
        return false;
    };
    let (done, is_done) = oneshot::channel();
    let _ = allow.send(done);
    let _ = is_done.await;
    true
}

/// Each client increments once; their requests are sent in this order, and those that the order
/// does not name in turn afterwards.
async fn increments_in_order(clients: usize, order: &[usize], is_transaction: bool) {
    let (subject, table, _faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    let behind_gates = (0..clients).map(|_| gated(subject.server()));
    let (clients, mut gates): (Vec<_>, Vec<_>) = behind_gates.unzip();
    let increments = clients.into_iter().map(|table| {
        tokio::spawn(async move {
            if is_transaction {
                transaction(&table).rounds(100).await
            } else {
                let modified = table.modify(("Sales", "1"), Employee::grow_older);
                modified.rounds(100).await.map(drop)
            }
        })
    });
    let increments: Vec<_> = increments.collect();
    for &next in order {
        let_through(&mut gates[next]).await;
    }
    let rest = gates
        .iter_mut()
        .map(async |gate| while let_through(gate).await {});
    let (results, _) = tokio::join!(join_all(increments), join_all(rest));
    let count = i32::try_from(results.len()).unwrap();
    for result in results {
        let result = result.unwrap();
        result.unwrap_or_else(|error| panic!("in the order {order:?}: {error}"));
    }
    assert_eq!(ada(&table).await.age, 36 + count, "in the order {order:?}");
}

/// Each needs two requests, and two more after a refusal.
#[tokio::test(start_paused = true)]
async fn two_clients_that_increment_in_every_order_both_succeed() {
    let mut orders = 0;
    for bits in 0_u32..1 << 8 {
        if bits.count_ones() == 4 {
            let order: Vec<_> = (0..8).map(|nth| (bits >> nth & 1) as usize).collect();
            increments_in_order(2, &order, false).await;
            increments_in_order(2, &order, true).await;
            orders += 1;
        }
    }
    assert_eq!(orders, 70);
}

/// A client often finds the content that it has sent itself, because others have written the same.
#[tokio::test(start_paused = true)]
async fn many_clients_that_increment_in_random_orders_all_succeed() {
    for seed in seeds("TABLESDK_DOUBLED_SEED", 40) {
        println!("TABLESDK_DOUBLED_SEED={seed}");
        fastrand::seed(seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let order: Vec<_> = (0..60).map(|_| rng.usize(..6)).collect();
        increments_in_order(6, &order, seed % 2 == 1).await;
    }
}

/// Clients that increment without end meet each other's values again and again, and are told no
/// unknown outcome.
#[tokio::test(start_paused = true)]
async fn no_outcome_is_unknown_without_a_fault() {
    let (_subject, table, faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    faults
        .on_any()
        .inject(Fault::delay(Duration::from_millis(5)));
    let counted = AtomicU32::new(0);
    let clients = (0..8).map(async |_| {
        for _ in 0..20 {
            let modified = table.modify(("Sales", "1"), Employee::grow_older);
            let modified = modified.rounds(1_000).deadline(Duration::from_secs(36_000));
            modified.await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    join_all(clients).await;
    assert_eq!(counted.into_inner(), 160);
    assert_eq!(ada(&table).await.age, 36 + 160);
}
