//! An index with entries in other partitions: what its entries are at any time, and after a repair, whatever clients, other programs and
//! faults do.
//!
//! A failure of the random test prints its seed; `TABLESDK_INDEX_SEED` runs that seed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use harness::{client_with, seeds};
use tablesdk::{
    DynamicEntity, Error, ErrorCode, ErrorKind, RetryPolicy, TableClient, TableEntity, Value,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, InjectedFault, Op};
use tokio::time::sleep;

use super::faults::random_writes;
use super::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "empid_{id:06}"
)]
#[table(index(ByEmail, row_key = "email_{email}", unique))]
#[table(index(
    ByName,
    partition_key = "name_{last_name}",
    row_key = "in_{department}_{id:06}"
))]
struct Employee {
    department: String,
    id: u32,
    last_name: Option<String>,
    email: Option<String>,
    age: i32,
}

fn employee(department: &str, id: u32, last_name: &str) -> Employee {
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

/// The keys and properties of the entries that belong to the employees among the rows, written down here a second time.
fn expected_entries(rows: &Rows) -> Rows {
    let employees = rows
        .iter()
        .filter(|((_, row), _)| row.starts_with("empid_"));
    let entries = employees.filter_map(|((department, row), properties)| {
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

fn is_entry(key: &(String, String)) -> bool {
    key.1.starts_with("in_")
}

/// The entries that employees should have and do not.
async fn missing(table: &TableClient) -> BTreeSet<(String, String)> {
    let rows = rows(table).await;
    let expected = expected_entries(&rows).into_keys();
    expected.filter(|key| !rows.contains_key(key)).collect()
}

/// Each employee has its entry. Holds at any time, but for an entity between its insert and the confirmation of its entries.
async fn none_missing(table: &TableClient) {
    assert_eq!(missing(table).await, BTreeSet::new());
}

/// The entries are those of the employees and no others, with the same properties. Holds after a repair.
async fn exact(table: &TableClient) {
    let rows = rows(table).await;
    let entries: Rows = rows
        .iter()
        .filter(|(key, _)| is_entry(key))
        .map(|(key, row)| (key.clone(), row.clone()))
        .collect();
    assert_eq!(entries, expected_entries(&rows));
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
async fn company(retry: RetryPolicy) -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let table = client_with(&server, |builder| builder.retry(retry)).table("Company");
    table.create_table().await.unwrap();
    for id in [1, 2] {
        table.insert(&employee("Sales", id, "Jones")).await.unwrap();
    }
    (server, table)
}

/// Lets the time pass in which an entry may belong to a write under way, and repairs.
async fn repaired(server: &TableServer, table: &TableClient) {
    server.clock().advance(Duration::from_secs(2 * 3600));
    let report = table.repair::<Employee>().await.unwrap();
    assert!(report.is_right(), "{report:?}");
    exact(table).await;
}

const WRITES: [&str; 8] = [
    "insert",
    "insert of an existing entity",
    "replace that moves",
    "replace that keeps",
    "modify that moves",
    "delete",
    "batch",
    "exactly once",
];

async fn write(table: &TableClient, name: &str) -> Result<(), Error> {
    let get = async |id: u32| {
        let found = table.get(Employee::key("Sales", id)).await;
        found.map(|found| found.expect("inserted"))
    };
    match name {
        "insert" => drop(table.insert(&employee("Sales", 3, "King")).await?),
        "insert of an existing entity" => {
            drop(table.insert(&employee("Sales", 1, "King")).await?);
        }
        "replace that moves" => {
            let mut jones = get(1).await?;
            jones.last_name = Some("King".into());
            table.replace(&mut jones).await?;
        }
        "replace that keeps" => {
            let mut jones = get(1).await?;
            jones.age += 1;
            table.replace(&mut jones).await?;
        }
        "modify that moves" => {
            let moved = table.modify(Employee::key("Sales", 2), |e| {
                e.last_name = Some("King".into());
                Ok(())
            });
            moved.await?;
        }
        "delete" => drop(table.delete_stored(&get(1).await?).await?),
        "batch" => {
            let (mut one, two) = (get(1).await?, get(2).await?);
            one.last_name = None;
            let batch = table.batch("Sales").replace(&mut one).delete_stored(&two);
            batch.insert(&employee("Sales", 3, "Jones")).await?;
        }
        "exactly once" => {
            let king = employee("Sales", 3, "King");
            drop(table.insert(&king).exactly_once().await?);
        }
        _ => unreachable!("{name}"),
    }
    Ok(())
}

/// Runs each write with the fault at its first request, then at its second, and so on, until no request is hit. The client stops after
/// the write, whatever its outcome.
async fn at_each_request(retry: fn() -> RetryPolicy, fault: fn() -> Fault) {
    for name in WRITES {
        for nth in 1.. {
            let (server, table) = company(retry()).await;
            let injected = server.faults().on_any().nth(nth).inject(fault());
            let result = write(&table, name).await;
            let hits = injected.hits();
            server.faults().clear();
            none_missing(&table).await;
            sleep(Duration::from_secs(60)).await;
            none_missing(&table).await;
            if hits == 0 {
                assert!(nth > 2, "{name}");
                assert_eq!(
                    result.is_err(),
                    name == "insert of an existing entity",
                    "{name}"
                );
                exact(&table).await;
                break;
            }
            repaired(&server, &table).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_sent_leaves_no_entity_without_its_entry() {
    at_each_request(RetryPolicy::none, Fault::reset).await;
    at_each_request(RetryPolicy::exponential, Fault::reset).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_leaves_no_entity_without_its_entry() {
    at_each_request(RetryPolicy::none, Fault::lost_response).await;
    at_each_request(RetryPolicy::exponential, Fault::lost_response).await;
}

#[tokio::test(start_paused = true)]
async fn a_late_or_doubled_request_leaves_no_entity_without_its_entry() {
    at_each_request(RetryPolicy::exponential, Fault::duplicate).await;
    let late = || Fault::reset().applied_after(Duration::from_secs(30));
    at_each_request(RetryPolicy::none, late).await;
    at_each_request(RetryPolicy::exponential, late).await;
}

/// Every request after the first `n` fails, as those of a client that was stopped.
#[tokio::test(start_paused = true)]
async fn a_client_that_stops_leaves_no_entity_without_its_entry() {
    for name in WRITES {
        for sent in 0.. {
            let (server, table) = company(RetryPolicy::none()).await;
            let stopped = (sent + 1..sent + 40).map(|nth| {
                let request = server.faults().on_any().nth(nth);
                request.inject(Fault::reset())
            });
            let stopped: Vec<_> = stopped.collect();
            let result = write(&table, name).await;
            let hits: u64 = stopped.iter().map(InjectedFault::hits).sum();
            server.faults().clear();
            none_missing(&table).await;
            repaired(&server, &table).await;
            if hits == 0 {
                assert_eq!(
                    result.is_err(),
                    name == "insert of an existing entity",
                    "{name}"
                );
                break;
            }
        }
    }
}

/// A late insert finds the entry that existed before it.
#[tokio::test(start_paused = true)]
async fn an_entry_that_existed_stays_for_an_insert_of_unknown_outcome() {
    let (server, table) = company(RetryPolicy::none()).await;
    let left_behind = DynamicEntity::new("name_King", "in_Sales_000003")
        .with("LastName", "King")
        .with("Age", 1)
        .with("TablesdkIndex", "Employee.ByName");
    table.insert(&left_behind).await.unwrap();
    let late = Fault::reset().applied_after(Duration::from_secs(30));
    let late = server.faults().next(Op::Batch, late);
    let insert = table.insert(&employee("Sales", 3, "King")).await;
    assert!(insert.unwrap_err().is_outcome_unknown());
    assert_eq!(late.hits(), 1);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 3);
    none_missing(&table).await;
}

/// One write changes a property, a later one changes it back before the first has replaced the entry.
#[tokio::test(start_paused = true)]
async fn a_slow_write_does_not_replace_the_entry_of_a_later_one() {
    let (server, table) = company(RetryPolicy::exponential()).await;
    let slow = Fault::delay(Duration::from_secs(10));
    let slow = server.faults().next(Op::UpdateEntity, slow);
    let set_age = async |age: i32| {
        let mut jones = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
        jones.age = age;
        table.replace(&mut jones).await.unwrap();
    };
    let back = async {
        sleep(Duration::from_secs(1)).await;
        set_age(36).await;
    };
    tokio::join!(set_age(37), back);
    assert_eq!(slow.hits(), 1);
    exact(&table).await;
}

/// A write of an older version, which is refused without a response, sees an entry that another write has just inserted.
#[tokio::test(start_paused = true)]
async fn a_refused_write_of_unknown_outcome_leaves_the_entry_of_a_write_under_way() {
    let (server, table) = company(RetryPolicy::none()).await;
    let mut older = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
    let rename = async |name: &'static str| {
        let renamed = table.modify(Employee::key("Sales", 1), |e| {
            e.last_name = Some(name.to_owned());
            Ok(())
        });
        renamed.await.unwrap();
    };
    rename("King").await;
    let batch = Op::Batch;
    let slow = Fault::delay(Duration::from_secs(10));
    let slow = server.faults().next(batch, slow);
    let lost = server.faults().next(batch, Fault::lost_response());
    let refused = async {
        sleep(Duration::from_secs(1)).await;
        older.age += 1;
        table.replace(&mut older).await
    };
    let ((), refused) = tokio::join!(rename("Jones"), refused);
    assert!(refused.unwrap_err().is_outcome_unknown());
    assert_eq!((slow.hits(), lost.hits()), (1, 1));
    none_missing(&table).await;
    exact(&table).await;
}

/// No version of an entity shows that it was inserted and deleted between the two requests of an insert.
#[tokio::test(start_paused = true)]
async fn an_insert_writes_the_entry_again_that_a_delete_of_the_same_entity_removed() {
    let (server, table) = company(RetryPolicy::exponential()).await;
    let slow = Fault::delay(Duration::from_secs(10));
    let slow = server.faults().next(Op::Batch, slow);
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

/// The service fails to write an entry again, which an earlier write is about to delete, and then the client stops after the commit.
#[tokio::test(start_paused = true)]
async fn an_entry_that_may_not_have_been_written_again_is_not_relied_on() {
    let (server, table) = company(RetryPolicy::none()).await;
    let rename = async |name: &'static str| {
        let renamed = table.modify(Employee::key("Sales", 1), |e| {
            e.last_name = Some(name.to_owned());
            Ok(())
        });
        renamed.await.unwrap();
    };
    let faults = server.faults();
    let slow = faults.next(Op::DeleteEntity, Fault::delay(Duration::from_secs(10)));
    let back = async {
        sleep(Duration::from_secs(1)).await;
        let slow = Fault::delay(Duration::from_secs(20));
        let slow = faults.next(Op::Batch, slow);
        let failed = Fault::error(ErrorCode::InternalError);
        let failed = faults.next(Op::MergeEntity, failed);
        let stopped = faults.next(Op::UpdateEntity, Fault::reset());
        rename("Jones").await;
        assert_eq!((slow.hits(), failed.hits(), stopped.hits()), (1, 1, 1));
    };
    tokio::join!(rename("King"), back);
    assert_eq!(slow.hits(), 1);
    none_missing(&table).await;
}

fn patient() -> RetryPolicy {
    let retry = RetryPolicy::exponential().attempts(30).budget(1_000_000);
    retry.deadline(Duration::from_secs(900))
}

const WRITERS: u64 = 4;
const ROUNDS: u32 = 40;
const NAMES: [&str; 3] = ["Jones", "Smith", "King"];

/// One random write. Every error is one of a rival, or of a fault.
async fn random_write(table: &TableClient, rng: &mut Rng) -> Result<(), Error> {
    let id = rng.u32(1..4);
    let name = rng
        .choice(NAMES)
        .filter(|_| rng.u8(..) > 40)
        .map(str::to_owned);
    let key = || Employee::key("Sales", id);
    match rng.u8(0..5) {
        0 => {
            let employee = Employee {
                last_name: name,
                ..employee("Sales", id, "")
            };
            // A duplicate of the request that arrives after a delete is not carried out.
            let insert = table
                .insert(&employee)
                .exactly_once_for(Duration::from_secs(3600));
            drop(insert.await?);
        }
        1 => {
            if let Some(found) = table.get(key()).await? {
                table.delete_stored(&found).await?;
            }
        }
        2 => {
            if let Some(mut found) = table.get(key()).await? {
                found.last_name = name;
                found.age += 1;
                table.replace(&mut found).await?;
            }
        }
        3 => {
            let change = |e: &mut Employee| {
                e.last_name.clone_from(&name);
                Ok(())
            };
            drop(table.modify(key(), change).await?);
        }
        _ => {
            let other = Employee::key("Sales", rng.u32(1..4));
            let swapped = table.transaction("Sales", async |tx| {
                let one = tx.get(key()).await?;
                let two = tx.get(other.clone()).await?;
                if let (Some(mut one), Some(mut two)) = (one, two)
                    && one.key() != two.key()
                {
                    std::mem::swap(&mut one.last_name, &mut two.last_name);
                    tx.replace(one).replace(two);
                }
                Ok(())
            });
            swapped.await?;
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn random_histories_with_faults_leave_no_entity_without_its_entry() {
    for seed in seeds("TABLESDK_INDEX_SEED", 6) {
        println!("TABLESDK_INDEX_SEED={seed}");
        fastrand::seed(seed);
        // No client gives up: what it cannot complete is left to a repair.
        let (server, table) = company(patient()).await;
        for epoch in 0..3 {
            let faults = server.faults();
            let late = Fault::reset().applied_after(Duration::from_secs(5));
            let late = faults.on_any().probability(0.05).seed(seed).inject(late);
            let injected = faults.chaos(seed + epoch);
            let writers = (0..WRITERS).map(|writer| {
                let rng = Rng::with_seed(seed ^ (writer << 8) ^ (epoch << 16));
                let write = async |rng: &mut Rng| random_write(&table, rng).await;
                // Of a rival, or of a fault.
                let is_expected =
                    |error: &Error| !matches!(error.kind(), ErrorKind::Input | ErrorKind::Data);
                random_writes(rng, ROUNDS, write, is_expected)
            });
            let watch = async {
                loop {
                    let now = missing(&table).await;
                    if now.is_empty() {
                        sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                    // No insert takes longer.
                    sleep(Duration::from_secs(1_000)).await;
                    let later = missing(&table).await;
                    assert!(now.is_disjoint(&later), "{now:?} and {later:?}");
                }
            };
            let repair = async {
                loop {
                    drop(table.repair::<Employee>().concurrency(3).await);
                    sleep(Duration::from_millis(20)).await;
                }
            };
            let done: u32 = tokio::select! {
                done = join_all(writers) => done.into_iter().sum(),
                () = watch => unreachable!(),
                () = repair => unreachable!(),
            };
            faults.clear();
            sleep(Duration::from_secs(60)).await;
            none_missing(&table).await;
            assert!(done > 40, "{done} writes succeeded");
            assert!(
                injected.hits() > 20 && late.hits() > 0,
                "{} and {}",
                injected.hits(),
                late.hits()
            );
            // What is left of this epoch is old in the next one, whose writers run beside the repair that deletes it.
            server.clock().advance(Duration::from_secs(2 * 3600));
        }
        repaired(&server, &table).await;
    }
}
