//! A network that delivers each request twice and returns the second response: entries in other partitions, and in the buckets of expiry.
//! The client recognises its own writes of entries by the ids that it stored with them.

use std::time::Duration;

use harness::client_with;
use tablesdk::{DynamicEntity, Error, Guid, RetryPolicy, TableClient, TableEntity, Timestamp};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use super::expiry::hours;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(
    ByTown,
    partition_key = "town_{town}",
    row_key = "in_{department}_{id:06}"
))]
struct Employee {
    department: String,
    id: u32,
    town: String,
    age: i32,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{user}", row_key = "{id:06}")]
struct Session {
    user: String,
    id: u32,
    #[table(expires(bucket = "1h"))]
    until: Timestamp,
}

fn ada() -> Employee {
    Employee {
        department: "Sales".into(),
        id: 1,
        town: "London".into(),
        age: 36,
    }
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

/// The ages of the employees that the index finds in a town.
async fn ages_in(table: &TableClient, town: &str) -> Vec<i32> {
    let found = table
        .query::<ByTown>()
        .partition(ByTown::partition(town))
        .follow();
    let found = found.collect().await.unwrap();
    found.into_iter().map(|employee| employee.age).collect()
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
    assert_eq!(ages_in(&table, "London").await, [36]);

    // The entry stays and is replaced; then another one is gained, and this one is lost.
    let older = table.modify(inserted.key(), grow_older).exactly_once();
    assert_eq!(older.await.unwrap().age, 37);
    assert_eq!(ages_in(&table, "London").await, [37]);
    let move_to_paris = |employee: &mut Employee| {
        employee.town = "Paris".into();
        Ok(())
    };
    let moved = table.modify(inserted.key(), move_to_paris).exactly_once();
    let moved = moved.await.unwrap();
    assert!(ages_in(&table, "London").await.is_empty());
    assert_eq!(ages_in(&table, "Paris").await, [37]);
    assert_eq!(server.dump().unwrap().matches("in_Sales_000001").count(), 1);

    assert!(table.delete_stored(&moved).exactly_once().await.unwrap());
    let left = table.query::<DynamicEntity>().count().await.unwrap();
    assert_eq!(left, 0, "neither the entity nor an entry");
}

#[tokio::test(start_paused = true)]
async fn a_batch_and_a_transaction_keep_an_index_over_partitions_where_each_request_comes_twice() {
    let (_server, table) = doubling().await;
    let grace = Employee { id: 2, ..ada() };
    let batch = table.batch("Sales").insert(&ada()).insert(&grace);
    batch.exactly_once().await.unwrap();
    assert_eq!(ages_in(&table, "London").await, [36, 36]);
    let retire = table.transaction("Sales", async |tx| {
        let ada = tx.get(Employee::key("Sales", 1)).await?.ok_or("inserted")?;
        let mut grace = tx.get(Employee::key("Sales", 2)).await?.ok_or("inserted")?;
        grace.town = "Paris".into();
        tx.delete_stored(&ada).replace(grace);
        Ok(())
    });
    retire.exactly_once().await.unwrap();
    assert!(ages_in(&table, "London").await.is_empty());
    assert_eq!(ages_in(&table, "Paris").await, [36]);
}

/// A copy of the request that inserts the entity arrives after the entity was deleted: it is stored without its entry.
#[tokio::test(start_paused = true)]
async fn a_late_duplicate_of_an_insert_is_stored_without_its_entry_until_a_repair() {
    for keeps_marker in [false, true] {
        let (server, table) = doubling().await;
        server.faults().clear();
        let late = Fault::late_duplicate(Duration::from_secs(30));
        server.faults().next(Op::Batch, late);
        let insert = table.insert(&ada());
        let inserted = if keeps_marker {
            insert
                .exactly_once_for(Duration::from_secs(600))
                .await
                .unwrap()
        } else {
            insert.await.unwrap()
        };
        assert!(table.delete_stored(&inserted).await.unwrap());
        tokio::time::sleep(Duration::from_secs(60)).await;
        let stored = table.query::<Employee>().count().await.unwrap();
        assert_eq!(
            stored,
            usize::from(!keeps_marker),
            "the marker refuses the copy"
        );
        assert!(ages_in(&table, "London").await.is_empty());
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!(report.missing, u64::from(!keeps_marker));
        assert_eq!(ages_in(&table, "London").await.len(), stored);
    }
}

/// Without `exactly_once`, the insert reports the conflict with its own copy. It is stored with its entry.
#[tokio::test(start_paused = true)]
async fn an_insert_that_is_reported_as_a_conflict_with_its_copy_has_its_entry() {
    let (_server, table) = doubling().await;
    let error = table.insert(&ada()).await.unwrap_err();
    assert!(error.is_conflict() && error.index().is_none(), "{error}");
    assert_eq!(ages_in(&table, "London").await, [36]);
}

#[tokio::test(start_paused = true)]
async fn buckets_are_kept_where_each_request_comes_twice() {
    let (server, table) = doubling().await;
    let session = Session {
        user: "ann".into(),
        id: 1,
        until: hours(1),
    };
    table.insert(&session).exactly_once().await.unwrap();
    let entries = || {
        let dump = server.dump().unwrap();
        dump.matches("PartitionKey='~tablesdk.expiry.").count()
    };
    assert_eq!(entries(), 1);
    // Prolonged into another bucket.
    let later = hours(3);
    let prolong = |session: &mut Session| {
        session.until = later;
        Ok(())
    };
    let key = Session::key("ann", 1);
    let prolonged = table.modify(key, prolong).exactly_once().await.unwrap();
    assert_eq!((prolonged.until, entries()), (later, 1));
    server.clock().advance(Duration::from_secs(4 * 3600));
    assert_eq!(
        table.clean_up_expired::<Session>().await.unwrap().removed,
        1
    );
    assert_eq!(entries(), 0);
}

/// An entry that a client wrote whose response was lost has an id; those of other programs, and of earlier times, have none.
#[tokio::test(start_paused = true)]
async fn an_entry_is_the_same_with_the_id_of_a_write_and_without() -> Result<(), Error> {
    let (server, table) = doubling().await;
    server.faults().clear();
    for id in [1, 2] {
        let employee = DynamicEntity::new("Sales", format!("empid_{id:06}"));
        let employee = employee
            .with("department", "Sales")
            .with("id", i64::from(id));
        table
            .insert(&employee.with("town", "London").with("age", 36))
            .await?;
        let mut entry = DynamicEntity::new("town_London", format!("in_Sales_{id:06}"))
            .with("TablesdkIndex", "Employee.ByTown")
            .with("town", "London")
            .with("age", 36);
        if id == 2 {
            entry = entry.with("TablesdkWriteId", Guid::from_bytes([7; 16]));
        }
        table.insert(&entry).await?;
    }
    assert_eq!(ages_in(&table, "London").await, [36, 36]);
    let dry = table.repair::<Employee>().dry_run().await?;
    assert_eq!((dry.mended(), dry.entries), (0, 2), "{dry:?}");
    for id in [1, 2] {
        table.modify(Employee::key("Sales", id), grow_older).await?;
    }
    assert_eq!(ages_in(&table, "London").await, [37, 37]);
    let dump = server.dump().unwrap();
    assert!(
        !dump.contains("TablesdkWriteId"),
        "a change leaves no id: {dump}"
    );
    server.clock().advance(Duration::from_secs(2 * 3600));
    assert!(table.repair::<Employee>().await?.is_right());
    Ok(())
}
