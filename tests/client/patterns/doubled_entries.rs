//! A network that delivers each request twice and returns the second response: entries in other
//! partitions, and in the buckets of expiry. The client recognises its own writes of entries by the
//! ids that it stored with them.

use std::time::Duration;

use harness::client_with;
use tablesdk::{DynamicEntity, Error, Guid, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use super::expiry::hours;
use super::expiry_removal::{Session, buckets, session};
use super::other_partitions::{ByName, Employee, employee};

fn ada() -> Employee {
    employee("Sales", 1, "Byron")
}

/// A server that carries out each request twice, and a client.
async fn doubling() -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let table = client_with(&server, |builder| builder.retry(RetryPolicy::exponential()));
    let table = table.table("Company");
    table.create_table().await.unwrap();
    server.faults().on_any().inject(Fault::duplicate());
    (server, table)
}

/// The ages of the employees that the index finds by a name.
async fn ages_of(table: &TableClient, name: &str) -> Vec<i32> {
    let found = table.query::<ByName>().partition(ByName::partition(name));
    let found = found.follow().collect().await.unwrap().into_iter();
    found.map(|employee| employee.age).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "what `modify` takes")]
fn grow_older(employee: &mut Employee) -> Result<(), tablesdk::action::ClosureError> {
    employee.age += 1;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_index_over_partitions_is_kept_where_each_request_comes_twice() {
    let (server, table) = doubling().await;
    let inserted = table.insert(&ada()).exactly_once().await.unwrap();
    assert_eq!(ages_of(&table, "Byron").await, [36]);

    // The entry stays and is replaced; then another one is gained, and this one is lost.
    let older = table.modify(inserted.key(), grow_older).exactly_once();
    assert_eq!(older.await.unwrap().age, 37);
    assert_eq!(ages_of(&table, "Byron").await, [37]);
    let rename = |employee: &mut Employee| {
        employee.last_name = Some("King".into());
        Ok(())
    };
    let renamed = table.modify(inserted.key(), rename).exactly_once();
    let renamed = renamed.await.unwrap();
    assert!(ages_of(&table, "Byron").await.is_empty());
    assert_eq!(ages_of(&table, "King").await, [37]);
    assert_eq!(server.dump().unwrap().matches("in_Sales_000001").count(), 1);

    assert!(table.delete_stored(&renamed).exactly_once().await.unwrap());
    let left = table.query::<DynamicEntity>().count().await.unwrap();
    assert_eq!(left, 0, "neither the entity nor an entry");
}

#[tokio::test(start_paused = true)]
async fn a_batch_and_a_transaction_keep_an_index_over_partitions_where_each_request_comes_twice() {
    let (_server, table) = doubling().await;
    let grace = employee("Sales", 2, "Byron");
    let batch = table.batch("Sales").insert(&ada()).insert(&grace);
    batch.exactly_once().await.unwrap();
    assert_eq!(ages_of(&table, "Byron").await, [36, 36]);
    let retire = table.transaction("Sales", async |tx| {
        let ada = tx.get(Employee::key("Sales", 1)).await?.ok_or("inserted")?;
        let mut grace = tx.get(Employee::key("Sales", 2)).await?.ok_or("inserted")?;
        grace.last_name = Some("King".into());
        tx.delete_stored(&ada).replace(grace);
        Ok(())
    });
    retire.exactly_once().await.unwrap();
    assert!(ages_of(&table, "Byron").await.is_empty());
    assert_eq!(ages_of(&table, "King").await, [36]);
}

/// A copy of the request that inserts the entity arrives after the entity was deleted: it is stored
/// without its entry.
#[tokio::test(start_paused = true)]
async fn a_late_duplicate_of_an_insert_is_stored_without_its_entry_until_a_repair() {
    for keeps_marker in [false, true] {
        let (server, table) = doubling().await;
        server.faults().clear();
        let late = Fault::late_duplicate(Duration::from_secs(30));
        server.faults().next(Op::Batch, late);
        let insert = table.insert(&ada());
        let inserted = if keeps_marker {
            insert.exactly_once_for(Duration::from_secs(600)).await
        } else {
            insert.await
        };
        assert!(table.delete_stored(&inserted.unwrap()).await.unwrap());
        tokio::time::sleep(Duration::from_secs(60)).await;
        let stored = table.query::<Employee>().count().await.unwrap();
        // The marker refuses the copy.
        assert_eq!(stored, usize::from(!keeps_marker));
        assert!(ages_of(&table, "Byron").await.is_empty());
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!(report.missing, u64::from(!keeps_marker));
        assert_eq!(ages_of(&table, "Byron").await.len(), stored);
    }
}

/// Without `exactly_once`, the insert reports the conflict with its own copy. It is stored with its
/// entry.
#[tokio::test(start_paused = true)]
async fn an_insert_that_is_reported_as_a_conflict_with_its_copy_has_its_entry() {
    let (_server, table) = doubling().await;
    let error = table.insert(&ada()).await.unwrap_err();
    assert!(error.is_conflict() && error.index().is_none(), "{error}");
    assert_eq!(ages_of(&table, "Byron").await, [36]);
}

#[tokio::test(start_paused = true)]
async fn buckets_are_kept_where_each_request_comes_twice() {
    let (server, table) = doubling().await;
    let session = session("ann", 1, hours(1));
    table.insert(&session).exactly_once().await.unwrap();
    assert_eq!(buckets(&server).len(), 1);
    // Prolonged into another bucket.
    let later = Some(hours(3));
    let prolong = |session: &mut Session| {
        session.until = later;
        Ok(())
    };
    let key = Session::key("ann", 1);
    let prolonged = table.modify(key, prolong).exactly_once().await.unwrap();
    assert_eq!((prolonged.until, buckets(&server).len()), (later, 1));
    server.clock().advance(Duration::from_secs(4 * 3600));
    let report = table.clean_up_expired::<Session>().await.unwrap();
    assert_eq!((report.removed, buckets(&server).len()), (1, 0));
}

/// An entry that a client wrote whose response was lost has an id; those of other programs, and of
/// earlier times, have none.
#[tokio::test(start_paused = true)]
async fn an_entry_is_the_same_with_the_id_of_a_write_and_without() -> Result<(), Error> {
    let (server, table) = doubling().await;
    server.faults().clear();
    for id in [1, 2] {
        let with_properties = |partition: &str, row: &str| {
            let entity = DynamicEntity::new(partition, format!("{row}_{id:06}"));
            entity.with("LastName", "Byron").with("Age", 36)
        };
        table.insert(&with_properties("Sales", "empid")).await?;
        let mut entry = with_properties("name_Byron", "in_Sales");
        entry = entry.with("TablesdkIndex", "Employee.ByName");
        if id == 2 {
            entry = entry.with("TablesdkWriteId", Guid::from_bytes([7; 16]));
        }
        table.insert(&entry).await?;
    }
    assert_eq!(ages_of(&table, "Byron").await, [36, 36]);
    let dry = table.repair::<Employee>().dry_run().await?;
    assert_eq!((dry.mended(), dry.entries), (0, 2), "{dry:?}");
    for id in [1, 2] {
        table.modify(Employee::key("Sales", id), grow_older).await?;
    }
    assert_eq!(ages_of(&table, "Byron").await, [37, 37]);
    let dump = server.dump().unwrap();
    // A change leaves no id.
    assert!(!dump.contains("TablesdkWriteId"), "{dump}");
    server.clock().advance(Duration::from_secs(2 * 3600));
    assert!(table.repair::<Employee>().await?.is_right());
    Ok(())
}
