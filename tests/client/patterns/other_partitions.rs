//! An index with entries in other partitions: what its entries are at any time, and after a repair,
//! whatever clients and other programs do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use harness::Subject;
use tablesdk::{DynamicEntity, ErrorCode, RetryPolicy, TableClient, TableEntity, Value};
use tablesdk_server::testing::{Fault, Faults, Op};
use tokio::time::sleep;

use super::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(ByEmail, row_key = "email_{email}", unique))]
#[table(index(
    ByName,
    partition_key = "name_{last_name}",
    row_key = "in_{department}_{id:06}"
))]
pub(crate) struct Employee {
    pub(crate) department: String,
    pub(crate) id: u32,
    pub(crate) last_name: Option<String>,
    pub(crate) email: Option<String>,
    pub(crate) age: i32,
}

pub(crate) fn employee(department: &str, id: u32, last_name: &str) -> Employee {
    Employee {
        department: department.to_owned(),
        id,
        last_name: Some(last_name.to_owned()),
        email: Some(format!("{id}@contoso.com")),
        age: 36,
    }
}

type Rows = BTreeMap<(String, String), BTreeMap<String, Value>>;

/// All of the table, read by one request.
async fn rows(table: &TableClient) -> Rows {
    let rows = table.query::<DynamicEntity>().values();
    let rows = rows.collect().await.expect("the table can be read");
    let rows = rows.into_iter().map(|row| {
        let key = (row.partition_key().to_owned(), row.row_key().to_owned());
        let properties = row.properties().iter();
        let properties = properties.map(|(name, value)| (name.to_owned(), value.clone()));
        // The id of a write is left by one that met a fault.
        let properties = properties.filter(|(name, _)| name != "TablesdkWriteId");
        (key, properties.collect())
    });
    rows.collect()
}

/// The keys and properties of the entries that belong to the employees among the rows, written down
/// here a second time.
fn expected_entries(rows: &Rows) -> Rows {
    let entries = rows.iter().filter_map(|((department, row), properties)| {
        let id: i64 = row.strip_prefix("empid_")?.parse().ok()?;
        let Value::String(name) = properties.get("LastName")? else {
            return None;
        };
        let key = (format!("name_{name}"), format!("in_{department}_{id:06}"));
        let mut entry = properties.clone();
        entry.insert("TablesdkIndex".into(), "Employee.ByName".into());
        Some((key, entry))
    });
    entries.collect()
}

/// The entries that employees should have and do not.
pub(crate) async fn missing(table: &TableClient) -> BTreeSet<(String, String)> {
    let rows = rows(table).await;
    let expected = expected_entries(&rows).into_keys();
    expected.filter(|key| !rows.contains_key(key)).collect()
}

/// Each employee has its entry. Holds at any time, but for an entity between its insert and the
/// confirmation of its entries.
pub(crate) async fn none_missing(table: &TableClient) {
    assert_eq!(missing(table).await, BTreeSet::new());
}

/// The entries are those of the employees and no others, with the same properties. Holds after a
/// repair.
pub(crate) async fn exact(table: &TableClient) {
    let mut entries = rows(table).await;
    let expected = expected_entries(&entries);
    entries.retain(|(_, row), _| row.starts_with("in_"));
    assert_eq!(entries, expected);
}

on_both_transports! {
    async fn an_entity_is_found_in_every_partition(subject: Subject) {
        let table = subject.table().await;
        for (department, id, name) in [("Sales", 1, "Jones"), ("Legal", 2, "Jones"), ("Sales", 3, "Smith")] {
            table.insert(&employee(department, id, name)).await.unwrap();
        }
        exact(&table).await;
        let jones = || table.query::<ByName>().partition(ByName::partition("Jones"));
        let found = jones().follow().collect().await.unwrap();
        let ids: Vec<_> = found.iter().map(|e| (e.department.as_str(), e.id)).collect();
        assert_eq!(ids, [("Legal", 2), ("Sales", 1)]);
        let in_sales = jones().rows(ByName::rows().department("Sales"));
        assert_eq!(in_sales.follow().collect().await.unwrap().len(), 1);
        assert_eq!(jones().unverified().count().await.unwrap(), 2);
        assert_eq!(jones().select(|e| e.age).unverified().collect().await.unwrap(), [36, 36]);
        let entry = || table.get(ByName::key("Jones", "Legal", 2));
        assert_eq!(entry().unverified().await.unwrap().unwrap().email.as_deref(), Some("2@contoso.com"));
        let followed = entry().follow().await.unwrap().unwrap();
        assert_eq!(*followed, employee("Legal", 2, "Jones"));
        // Queries of the entity do not return its entries.
        assert_eq!(table.query::<Employee>().count().await.unwrap(), 3);
    }

    async fn each_verb_keeps_the_entries(subject: Subject) {
        let table = subject.table().await;
        let mut jones = table.insert(&employee("Sales", 1, "Jones")).await.unwrap();
        jones.age = 37;
        table.replace(&mut jones).await.unwrap();
        exact(&table).await;
        jones.last_name = Some("Smith".into());
        table.replace(&mut jones).await.unwrap();
        exact(&table).await;
        jones.last_name = None;
        table.replace(&mut jones).await.unwrap();
        exact(&table).await;
        assert_eq!(rows(&table).await.len(), 2, "an employee without a name has the entry of its email alone");
        let key = || Employee::key("Sales", 1);
        table.modify(key(), |e| { e.last_name = Some("King".into()); Ok(()) }).await.unwrap();
        exact(&table).await;
        let mut king = table.get(key()).await.unwrap().unwrap();
        king.last_name = Some("Jones".into());
        let batch = table.batch("Sales").replace(&mut king).insert(&employee("Sales", 2, "Jones"));
        batch.await.unwrap();
        exact(&table).await;
        let passed = table.transaction("Sales", async |tx| {
            let one = tx.get(key()).await?.ok_or("inserted")?;
            let mut two = tx.get(Employee::key("Sales", 2)).await?.ok_or("inserted")?;
            two.last_name = Some("Smith".into());
            tx.delete_stored(&one).replace(two);
            Ok(())
        });
        passed.await.unwrap();
        exact(&table).await;
        table.insert(&employee("Sales", 4, "Jones")).exactly_once().await.unwrap();
        exact(&table).await;
        for employee in table.query::<Employee>().collect().await.unwrap() {
            assert!(table.delete_stored(&employee).await.unwrap());
        }
        assert!(rows(&table).await.is_empty());
    }

    async fn a_refused_write_leaves_the_entries_as_they_were(subject: Subject) {
        let table = subject.table().await;
        let stale = table.insert(&employee("Sales", 1, "Jones")).await.unwrap();
        table.modify(Employee::key("Sales", 1), |e| { e.age += 1; Ok(()) }).await.unwrap();
        let before = rows(&table).await;
        assert!(table.insert(&employee("Sales", 1, "Smith")).await.unwrap_err().is_conflict());
        assert_eq!(rows(&table).await, before, "the entry of Smith is withdrawn");
        assert!(table.insert(&employee("Sales", 1, "Jones")).await.unwrap_err().is_conflict());
        assert_eq!(rows(&table).await, before);
        let mut other = stale.clone();
        other.last_name = Some("Smith".into());
        assert!(table.replace(&mut other).await.unwrap_err().is_precondition_failed());
        assert!(table.delete_stored(&stale).await.unwrap_err().is_precondition_failed());
        let taken = Employee { email: Some("1@contoso.com".into()), ..employee("Sales", 2, "King") };
        assert_eq!(table.insert(&taken).await.unwrap_err().index(), Some("ByEmail"));
        assert_eq!(rows(&table).await, before);
    }

    async fn an_entity_of_another_type_under_the_key_of_an_entry_is_left_alone(subject: Subject) {
        let table = subject.table().await;
        let office = DynamicEntity::new("name_Jones", "in_Sales_000001").with("Street", "Main Street");
        table.insert(&office).await.unwrap();
        let before = rows(&table).await;
        let error = table.insert(&employee("Sales", 1, "Jones")).await.unwrap_err();
        assert!(error.is_conflict() && error.index() == Some("ByName"), "{error}");
        assert_eq!(rows(&table).await, before);

        let mut stored = table.insert(&employee("Sales", 1, "King")).await.unwrap();
        table.delete(("name_King", "in_Sales_000001")).await.unwrap();
        table.insert(&DynamicEntity::new("name_King", "in_Sales_000001")).await.unwrap();
        stored.age += 1;
        table.replace(&mut stored).await.unwrap();
        assert!(table.delete_stored(&stored).await.unwrap());
        assert_eq!(rows(&table).await.len(), 2, "the two entities of another type");
    }

    async fn a_repair_adds_an_index_to_stored_entities(subject: Subject) {
        let table = subject.table().await;
        for id in 1..=3 {
            let old = DynamicEntity::new("Sales", format!("empid_{id:06}")).with("LastName", "Jones").with("Age", 36);
            table.insert(&old).await.unwrap();
        }
        let stray = DynamicEntity::new("name_King", "in_Sales_000003")
            .with("LastName", "King").with("Age", 1).with("TablesdkIndex", "Employee.ByName");
        table.insert(&stray).await.unwrap();
        let dry = table.repair::<Employee>().dry_run().await.unwrap();
        assert_eq!((dry.missing, dry.orphaned, dry.recent), (3, 0, 1));
        let report = table.repair::<Employee>().partition("Sales").await.unwrap();
        assert_eq!((report.missing, report.orphaned, report.recent), (3, 0, 0), "entries elsewhere are not looked for");
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!((report.missing, report.orphaned, report.recent), (0, 0, 1), "it may belong to a write under way");
        assert!(!report.is_right());
        let found = table.query::<ByName>().partition(ByName::partition("King")).follow().collect().await.unwrap();
        assert!(found.is_empty(), "{found:?}");
        table.delete(("name_King", "in_Sales_000003")).await.unwrap();
        exact(&table).await;
    }
}

/// A server with two employees, and a client with that policy.
async fn company(retry: RetryPolicy) -> (Subject, TableClient, Faults) {
    let (subject, table, faults) = Subject::with_table(retry).await;
    for id in [1, 2] {
        table.insert(&employee("Sales", id, "Jones")).await.unwrap();
    }
    (subject, table, faults)
}

/// Gives the first employee another name.
async fn rename(table: &TableClient, name: &str) {
    let renamed = table.modify(Employee::key("Sales", 1), |e| {
        e.last_name = Some(name.to_owned());
        Ok(())
    });
    renamed.await.unwrap();
}

async fn set_age(table: &TableClient, age: i32) {
    let found = table.get(Employee::key("Sales", 1)).await.unwrap();
    let mut jones = found.unwrap();
    jones.age = age;
    table.replace(&mut jones).await.unwrap();
}

/// A late insert finds the entry that existed before it.
#[tokio::test(start_paused = true)]
async fn an_entry_that_existed_stays_for_an_insert_of_unknown_outcome() {
    let (_subject, table, faults) = company(RetryPolicy::none()).await;
    let left_behind = DynamicEntity::new("name_King", "in_Sales_000003")
        .with("LastName", "King")
        .with("Age", 1)
        .with("TablesdkIndex", "Employee.ByName");
    table.insert(&left_behind).await.unwrap();
    let late = Fault::reset().applied_after(Duration::from_secs(30));
    let late = faults.next(Op::Batch, late);
    let insert = table.insert(&employee("Sales", 3, "King")).await;
    assert!(insert.unwrap_err().is_outcome_unknown());
    assert_eq!(late.hits(), 1);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 3);
    none_missing(&table).await;
}

/// One write changes a property, a later one changes it back before the first has replaced the
/// entry.
#[tokio::test(start_paused = true)]
async fn a_slow_write_does_not_replace_the_entry_of_a_later_one() {
    let (_subject, table, faults) = company(RetryPolicy::exponential()).await;
    let slow = faults.next(Op::UpdateEntity, Fault::delay(Duration::from_secs(10)));
    let back = async {
        sleep(Duration::from_secs(1)).await;
        set_age(&table, 36).await;
    };
    tokio::join!(set_age(&table, 37), back);
    assert_eq!(slow.hits(), 1);
    exact(&table).await;
}

/// The client of the last write stops after its commit. The first write finds the entry of the
/// second one.
#[tokio::test(start_paused = true)]
async fn a_slow_write_finishes_the_entry_of_a_later_one() {
    let (_subject, table, faults) = company(RetryPolicy::none()).await;
    let slow = faults.next(Op::UpdateEntity, Fault::delay(Duration::from_secs(10)));
    let later = async {
        sleep(Duration::from_secs(1)).await;
        set_age(&table, 38).await;
        let stopped = faults.next(Op::UpdateEntity, Fault::reset());
        set_age(&table, 39).await;
        assert_eq!(stopped.hits(), 1);
    };
    tokio::join!(set_age(&table, 37), later);
    assert_eq!(slow.hits(), 1);
    exact(&table).await;
}

/// A write of an older version, which is refused without a response, sees an entry that another
/// write has just inserted.
#[tokio::test(start_paused = true)]
async fn a_refused_write_of_unknown_outcome_leaves_the_entry_of_a_write_under_way() {
    let (_subject, table, faults) = company(RetryPolicy::none()).await;
    let mut older = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
    rename(&table, "King").await;
    let slow = faults.next(Op::Batch, Fault::delay(Duration::from_secs(10)));
    let lost = faults.next(Op::Batch, Fault::lost_response());
    let refused = async {
        sleep(Duration::from_secs(1)).await;
        older.age += 1;
        table.replace(&mut older).await
    };
    let ((), refused) = tokio::join!(rename(&table, "Jones"), refused);
    assert!(refused.unwrap_err().is_outcome_unknown());
    assert_eq!((slow.hits(), lost.hits()), (1, 1));
    none_missing(&table).await;
    exact(&table).await;
}

/// A computer sleeps while the entries of an insert are prepared. A repair may have deleted them by
/// then.
#[tokio::test(start_paused = true)]
async fn an_insert_that_was_interrupted_for_an_hour_stores_nothing() {
    let (subject, table, faults) = company(RetryPolicy::none()).await;
    let slow = Fault::delayed_response(Duration::from_secs(2));
    let slow = faults.next(Op::InsertEntity, slow);
    let king = employee("Sales", 3, "King");
    let asleep = async {
        sleep(Duration::from_secs(1)).await;
        subject.server().clock().advance(Duration::from_secs(3600));
    };
    let (inserted, ()) = tokio::join!(table.insert(&king), asleep);
    let error = inserted.unwrap_err();
    assert!(error.is_timeout() && !error.is_outcome_unknown(), "{error}");
    assert_eq!(slow.hits(), 1);
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 2);
    exact(&table).await;
}

/// No version of an entity shows that it was inserted and deleted between the two requests of an
/// insert.
#[tokio::test(start_paused = true)]
async fn an_insert_writes_the_entry_again_that_a_delete_of_the_same_entity_removed() {
    let (_subject, table, faults) = company(RetryPolicy::exponential()).await;
    let slow = faults.next(Op::Batch, Fault::delay(Duration::from_secs(10)));
    let king = employee("Sales", 3, "King");
    let inserted_and_deleted = async {
        sleep(Duration::from_secs(1)).await;
        let stored = table.insert(&king).await.unwrap();
        assert!(table.delete_stored(&stored).await.unwrap());
    };
    let (inserted, ()) = tokio::join!(table.insert(&king), inserted_and_deleted);
    inserted.unwrap();
    assert_eq!(slow.hits(), 1);
    exact(&table).await;
}

/// The service fails to write an entry again, which an earlier write is about to delete, and then
/// the client stops after the commit.
#[tokio::test(start_paused = true)]
async fn an_entry_that_may_not_have_been_written_again_is_not_relied_on() {
    let (_subject, table, faults) = company(RetryPolicy::none()).await;
    let slow = faults.next(Op::DeleteEntity, Fault::delay(Duration::from_secs(10)));
    let back = async {
        sleep(Duration::from_secs(1)).await;
        let slow = faults.next(Op::Batch, Fault::delay(Duration::from_secs(20)));
        let failed = Fault::error(ErrorCode::InternalError);
        let failed = faults.next(Op::MergeEntity, failed);
        let stopped = faults.next(Op::UpdateEntity, Fault::reset());
        rename(&table, "Jones").await;
        assert_eq!((slow.hits(), failed.hits(), stopped.hits()), (1, 1, 1));
    };
    tokio::join!(rename(&table, "King"), back);
    assert_eq!(slow.hits(), 1);
    none_missing(&table).await;
}
