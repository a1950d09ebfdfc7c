//! Rules of the protocol, each on its own: what a write, a clean-up and a read do at one moment,
//! and must not do.

use std::time::Duration;

use futures::TryStreamExt as _;
use harness::proxy::{Reply, batch_refusal};
use harness::{Subject, client_with};
use tablesdk::wide::{StoredWide, WideTable};
use tablesdk::{DynamicEntity, ErrorCode, RetryPolicy, Value};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

use super::super::scenarios::wide::{huge, large, number, small};
use super::{is_second_part_missing, messages, numbers, rows};

type Maps = WideTable<DynamicEntity>;

/// Two clients of one table, which retry nothing.
async fn two() -> (TableServer, Maps, Maps) {
    let (server, _) = messages().await;
    let maps = || {
        let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
        service.table("Messages").wide()
    };
    let (one, other) = (maps(), maps());
    (server, one, other)
}

async fn read(maps: &Maps) -> Option<StoredWide<DynamicEntity>> {
    maps.get(("ann", "report")).await.unwrap()
}

/// The next writes take so many seconds each until they are carried out.
fn delay(server: &TableServer, seconds: &[u64]) {
    for seconds in seconds {
        let delay = Fault::delay(Duration::from_secs(*seconds));
        server.faults().on_writes().times(1).inject(delay);
    }
}

async fn after<T>(seconds: u64, action: impl IntoFuture<Output = T>) -> T {
    sleep(Duration::from_secs(seconds)).await;
    action.await
}

#[tokio::test]
async fn a_write_takes_no_more_transactions_than_it_needs() {
    let (server, maps, _) = two().await;
    let journal = server.journal();
    for (entity, transactions) in [(small(1), 1), (large(1), 2), (huge(1), 3)] {
        maps.insert(&entity).await.unwrap();
        assert_eq!(journal.requests().count(), transactions);
        assert!(maps.delete(("ann", "report")).await.unwrap());
        journal.clear();
    }
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_leaves_a_write_that_is_younger_than_its_age() {
    let (server, maps, other) = two().await;
    delay(&server, &[0, 10]);
    let entity = large(1);
    let clean_up = other.clean_up_siblings("ann", Duration::from_secs(60));
    let (inserted, cleaned) = tokio::join!(maps.insert(&entity), after(5, clean_up));
    assert_eq!(cleaned.unwrap(), 0);
    inserted.unwrap();
    assert_eq!(number(&read(&other).await.unwrap()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_older_than_the_age_of_a_clean_up_fails_and_leaves_nothing() {
    let (server, maps, other) = two().await;
    let mut found = maps.insert(&small(1)).await.unwrap();
    delay(&server, &[0, 10]);
    *found = large(2);
    let clean_up = other.clean_up_siblings("ann", Duration::from_secs(1));
    let (replaced, cleaned) = tokio::join!(maps.replace(&mut found), after(5, clean_up));
    assert_eq!(cleaned.unwrap(), 1);
    let error = replaced.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(number(&read(&maps).await.unwrap()), 1);
    assert_eq!(rows(&server).len(), 2);
}

/// The second transaction is between the reads of the clean-up and its transaction.
#[tokio::test(start_paused = true)]
async fn a_clean_up_beside_the_next_transaction_of_a_write_deletes_nothing() {
    let (server, maps, other) = two().await;
    delay(&server, &[0, 5, 10, 15]);
    let entity = huge(1);
    let clean_up = other.clean_up_siblings("ann", Duration::ZERO);
    let (inserted, cleaned) = tokio::join!(maps.insert(&entity), after(1, clean_up));
    assert_eq!(cleaned.unwrap(), 0);
    inserted.unwrap();
    assert_eq!(number(&read(&other).await.unwrap()), 1);
    assert_eq!(rows(&server).len(), 8);
}

#[tokio::test]
async fn a_write_that_is_refused_leaves_nothing() {
    let (server, maps, other) = two().await;
    // The second error leaves open whether the transaction was carried out. The intent shows that
    // it was not.
    for code in [ErrorCode::ServerBusy, ErrorCode::OperationTimedOut] {
        for nth in 1..=3 {
            let refused = Fault::error(code.clone());
            server.faults().on_writes().nth(nth).inject(refused);
            let error = maps.insert(&huge(1)).await.unwrap_err();
            assert!(!error.is_outcome_unknown(), "{nth}: {error}");
            assert_eq!(error.code(), Some(&code), "{nth}: {error}");
            assert_eq!(rows(&server), Vec::<String>::new(), "{nth}");
            server.faults().clear();
        }
    }
    // Its last transaction meets the version of another client.
    let mut stale = maps.insert(&small(1)).await.unwrap();
    other.upsert_replace(&small(2)).await.unwrap();
    *stale = large(3);
    let error = maps.replace(&mut stale).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error}");
    // It is not taken for the version that was sent if the last transaction has no response.
    let timed_out = Fault::error(ErrorCode::OperationTimedOut);
    server.faults().on_writes().nth(2).inject(timed_out);
    let error = maps.upsert_replace(&large(4)).await.unwrap_err();
    assert_eq!(error.code(), Some(&ErrorCode::OperationTimedOut), "{error}");
    assert_eq!(number(&read(&maps).await.unwrap()), 2);
    assert_eq!(rows(&server).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_modification_beside_another_one_starts_over() {
    let (server, maps, other) = two().await;
    maps.insert(&small(1)).await.unwrap();
    delay(&server, &[10]);
    let add = |entity: &mut DynamicEntity| {
        *entity = small(number(entity) + 1);
        Ok(())
    };
    let key = ("ann", "report");
    let (slow, fast) = tokio::join!(maps.modify(key, add), after(1, other.modify(key, add)));
    assert_eq!((number(&slow.unwrap()), number(&fast.unwrap())), (3, 2));
    // So does an upsert, and a delete.
    delay(&server, &[10]);
    let upsert = async { maps.upsert_replace(&small(7)).await };
    let (slow, fast) = tokio::join!(upsert, after(1, other.modify(key, add)));
    slow.unwrap();
    fast.unwrap();
    assert_eq!(number(&read(&maps).await.unwrap()), 7);
    delay(&server, &[10]);
    let (slow, fast) = tokio::join!(maps.delete(key), after(1, other.modify(key, add)));
    assert!(slow.unwrap());
    fast.unwrap();
    assert_eq!(rows(&server), Vec::<String>::new());
}

#[tokio::test]
async fn a_sibling_of_another_version_does_not_stand_in_for_one_that_is_missing() {
    let (server, maps, _) = two().await;
    let table = harness::client(&server).table("Messages");
    maps.insert(&small(1)).await.unwrap();
    let sibling = rows(&server).pop().unwrap();
    let found = table.get::<DynamicEntity>(("ann", &sibling)).await;
    let found = found.unwrap().unwrap();
    assert!(table.delete(("ann", sibling.as_str())).await.unwrap());
    let version = "0123456789abcdef";
    let other = DynamicEntity::new("ann", format!("report!{version}!01"));
    let other = other
        .with_properties(found.properties().clone())
        .with("TablesdkVersion", version);
    table.insert(&other).await.unwrap();
    let error = maps.get(("ann", "report")).await.unwrap_err();
    assert!(is_second_part_missing(&error), "{error}");
    let all: Result<Vec<_>, _> = maps.stream("ann").try_collect().await;
    assert!(is_second_part_missing(&all.unwrap_err()));
}

#[tokio::test]
async fn a_property_at_either_end_of_a_part_is_selected_from_that_part() {
    let (_server, maps, _) = two().await;
    maps.insert(&small(1)).await.unwrap();
    // The head has 250 properties of the entity.
    for name in ["P000", "P249", "P250", "P299"] {
        let found = maps.select(("ann", "report"), |e| e.properties([name]));
        let found = found.await.unwrap().unwrap();
        let found: Vec<_> = found.properties().iter().collect();
        assert_eq!(found, [(name, &Value::Int32(1))]);
    }
}

#[tokio::test]
async fn a_stream_reads_a_page_of_entities_by_one_request() {
    let (server, maps, _) = two().await;
    for row in 0..10 {
        maps.insert(&numbers(&row.to_string(), 300)).await.unwrap();
    }
    let journal = server.journal();
    let all: Vec<_> = maps.stream("ann").try_collect().await.unwrap();
    let found = all.iter().map(|found| found.row_key().to_owned());
    assert!(found.eq((0..10).map(|row| row.to_string())));
    assert_eq!(journal.requests().count(), 1);
}

#[tokio::test]
async fn an_upsert_between_an_insert_and_a_delete_of_others_starts_over() {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::none()).await;
    let exists = || Reply::Respond(batch_refusal(0, 409, "EntityAlreadyExists"));
    proxy.plan(Op::Batch, [exists()]);
    let maps = table.wide::<DynamicEntity>();
    maps.upsert_replace(&numbers("2024", 1)).await.unwrap();
    assert!(maps.get(("ann", "2024")).await.unwrap().is_some());
    // An insert does not start over.
    proxy.plan(Op::Batch, [exists()]);
    let other = maps.insert(&numbers("2025", 1)).await;
    assert!(other.unwrap_err().is_conflict());
}
