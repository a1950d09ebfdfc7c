//! Moves beside other movers and writers, and of entities with entries in other partitions.

use std::cmp::max;
use std::time::Duration;

use harness::{client, client_with};
use tablesdk::{DynamicEntity, ETag, RetryPolicy};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

use super::moves::{Plain, tables, versions};
use super::other_partitions::{Employee, employee, exact, none_missing};

/// A fault at each request, and a repair after the move was run again.
#[tokio::test(start_paused = true)]
async fn entries_in_other_partitions_move_with_their_entity() {
    for fault in [Fault::reset, Fault::lost_response, Fault::duplicate] {
        for nth in 1.. {
            let server = TableServer::in_process();
            let (table, archive) = tables(&client(&server)).await;
            table.insert(&employee("Sales", 1, "Jones")).await.unwrap();
            archive.insert(&employee("Sales", 1, "King")).await.unwrap();
            let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
            let (mover, target) = (service.table("Company"), service.table("Archive"));
            let injected = server.faults().on_any().nth(nth).inject(fault());
            let get = async || table.get(Employee::key("Sales", 1)).await.unwrap();
            let first = get().await.unwrap();
            let result = mover.move_to(&target, first).overwrite().await;
            let hits = injected.hits();
            server.faults().clear();
            if let Some(again) = get().await {
                table.move_to(&archive, again).overwrite().await.unwrap();
            }
            let what = format!("request {nth}, {result:?}");
            none_missing(&archive).await;
            // The time passes in which an entry may belong to a write under way.
            server.clock().advance(Duration::from_secs(2 * 3600));
            for table in [&table, &archive] {
                let report = table.repair::<Employee>().await.unwrap();
                assert!(report.is_right(), "{what}: {report:?}");
                exact(table).await;
            }
            let all = table.query::<DynamicEntity>();
            assert_eq!(all.count().await.unwrap(), 0, "{what}");
            let there = archive.query::<Employee>().values().collect().await;
            assert_eq!(there.unwrap(), [employee("Sales", 1, "Jones")], "{what}");
            if hits == 0 {
                assert!(nth > 6 && result.is_ok(), "{what}");
                break;
            }
        }
    }
}

/// Another mover writes over the copy before this one removes it.
#[tokio::test(start_paused = true)]
async fn a_copy_that_another_mover_has_written_over_is_not_removed() {
    let server = TableServer::in_process();
    let (table, archive) = tables(&client(&server)).await;
    let first = table.insert(&Plain::new("1", 1)).await.unwrap();
    let slow = Fault::delay(Duration::from_secs(1));
    let deletes = |table| server.faults().on(Op::DeleteEntity).table(table).nth(1);
    let at_source = deletes("Company").inject(slow.clone());
    let of_copy = deletes("Archive").inject(slow);
    let rivals = async {
        sleep(Duration::from_millis(500)).await;
        let second = table.replace_if(&Plain::new("1", 2), ETag::ANY);
        second.await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let second = Plain::find(&table, "1").await.unwrap();
        table.move_to(&archive, second).overwrite().await
    };
    let (moved, rival) = tokio::join!(table.move_to(&archive, first), rivals);
    assert!(moved.unwrap_err().is_precondition_failed());
    assert_eq!(rival.unwrap().version, 2);
    assert_eq!((at_source.hits(), of_copy.hits()), (1, 1));
    assert_eq!(versions("1", [&table, &archive]).await, [None, Some(2)]);
}

/// The one inserts the copy, the other one finds it equal and writes it again, and then neither
/// finds the source as it was.
#[tokio::test(start_paused = true)]
async fn a_copy_that_two_movers_have_written_is_removed_by_one_of_them() {
    let server = TableServer::in_process();
    let (table, archive) = tables(&client(&server)).await;
    let first = table.insert(&Plain::new("1", 1)).await.unwrap();
    let slow = Fault::delay(Duration::from_secs(1));
    let deletes = server.faults().on(Op::DeleteEntity).table("Company");
    let injected = deletes.times(2).inject(slow);
    let rival = async {
        sleep(Duration::from_millis(100)).await;
        table.move_to(&archive, first.clone()).await
    };
    let writer = async {
        sleep(Duration::from_millis(500)).await;
        let second = table.replace_if(&Plain::new("1", 2), ETag::ANY);
        second.await.unwrap();
    };
    let moved = table.move_to(&archive, first.clone());
    let (moved, rival, ()) = tokio::join!(moved, rival, writer);
    assert!(moved.unwrap_err().is_precondition_failed());
    assert!(rival.unwrap_err().is_precondition_failed());
    assert_eq!(injected.hits(), 2);
    assert_eq!(versions("1", [&table, &archive]).await, [Some(2), None]);
    // The next move is no conflict.
    let second = Plain::find(&table, "1").await.unwrap();
    drop(table.move_to(&archive, second).await.unwrap());
}

/// The batch of deletes is carried out without a response, so each delete is sent alone. Before the
/// first one, another client inserts the entity anew.
#[tokio::test(start_paused = true)]
async fn a_copy_stays_whose_entity_may_have_been_deleted() {
    let server = TableServer::in_process();
    let service = client_with(&server, |builder| builder.retry(RetryPolicy::exponential()));
    let (table, archive) = tables(&service).await;
    for id in ["1", "2"] {
        table.insert(&Plain::new(id, 7)).await.unwrap();
    }
    let deletes = server.faults().on(Op::Batch).nth(2);
    deletes.inject(Fault::lost_response());
    let alone = server.faults().on(Op::DeleteEntity).times(1);
    let alone = alone.inject(Fault::delay(Duration::from_secs(10)));
    let inserted = async {
        sleep(Duration::from_secs(5)).await;
        table.insert(&Plain::new("1", 8)).await.unwrap();
    };
    let sales = table.query::<Plain>().partition("Sales");
    let (moved, ()) = tokio::join!(async { sales.move_to(&archive).await }, inserted);
    drop(moved);
    assert_eq!(alone.hits(), 1);
    let found = versions("1", [&table, &archive]).await;
    assert_eq!(found, [Some(8), Some(7)]);
}

/// Another client writes the entity before each of the requests of its move.
#[tokio::test(start_paused = true)]
async fn a_rival_write_stays_with_the_entity() {
    for of_all in [false, true] {
        for nth in 1.. {
            let server = TableServer::in_process();
            let (table, archive) = tables(&client(&server)).await;
            table.insert(&Plain::new("1", 7)).await.unwrap();
            table.insert(&Plain::new("2", 7)).await.unwrap();
            let slow = Fault::delay(Duration::from_secs(1));
            let injected = server.faults().on_any().nth(nth).inject(slow);
            let rival = async {
                sleep(Duration::from_millis(500)).await;
                let other = client(&server).table("Company");
                let change = |e: &mut Plain| {
                    e.version = 8;
                    Ok(())
                };
                other.modify(Plain::key("Sales", "1"), change).await
            };
            let moved = async {
                if of_all {
                    let sales = table.query::<Plain>().partition("Sales");
                    return drop(sales.move_to(&archive).await.unwrap());
                }
                let found = Plain::find(&table, "1").await.unwrap();
                drop(table.move_to(&archive, found).await);
            };
            let ((), written) = tokio::join!(moved, rival);
            if injected.hits() == 0 {
                break;
            }
            let [here, there] = versions("1", [&table, &archive]).await;
            match written {
                Ok(_) => assert_eq!(max(here, there), Some(8), "request {nth}"),
                Err(error) => {
                    assert!(error.is_not_found(), "{error}");
                    assert_eq!((here, there), (None, Some(7)), "request {nth}");
                }
            }
            // What this move has copied is removed again.
            assert!(here.is_none() || there.is_none(), "request {nth}");
            let mut expected = [Some(7), None];
            if of_all {
                expected.reverse();
            }
            let other = versions("2", [&table, &archive]).await;
            assert_eq!(other, expected, "request {nth}");
        }
    }
}
