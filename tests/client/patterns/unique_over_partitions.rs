//! A unique index with entries in other partitions: the design guide's inter-partition secondary
//! index, with its own keys.

use std::collections::{BTreeMap, BTreeSet};

use harness::Subject;
use tablesdk::{DynamicEntity, ErrorCode, Guid, TableClient, TableEntity, Value};

use super::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "empid_{department}", row_key = "{id:06}")]
#[table(index(
    ByEmail,
    partition_key = "email_{department}",
    row_key = "{email}",
    unique
))]
pub(crate) struct Employee {
    pub(crate) department: String,
    pub(crate) id: u32,
    pub(crate) email: Option<String>,
    pub(crate) age: i32,
}

pub(crate) fn employee(id: u32, email: &str) -> Employee {
    Employee {
        department: "Sales".to_owned(),
        id,
        email: Some(email.to_owned()),
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
/// here a second time. No two employees have one email.
fn expected_entries(rows: &Rows) -> Rows {
    let mut entries = Rows::new();
    for ((partition, row), properties) in rows {
        let Some(department) = partition.strip_prefix("empid_") else {
            continue;
        };
        let (Some(Value::String(email)), Ok(id)) = (properties.get("Email"), row.parse()) else {
            continue;
        };
        let key = (format!("email_{department}"), email.clone());
        let mut entry = properties.clone();
        entry.insert("TablesdkIndex".into(), "Employee.ByEmail".into());
        entry.insert("Id".into(), Value::Int64(id));
        let other = entries.insert(key, entry);
        assert_eq!(other, None, "two employees have the email {email}");
    }
    entries
}

/// The emails of employees without an entry that names them. No two employees have one email.
pub(crate) async fn missing(table: &TableClient) -> BTreeSet<(String, String)> {
    let rows = rows(table).await;
    let expected = expected_entries(&rows).into_iter();
    let missing = expected.filter(|(key, entry)| {
        let found = rows.get(key).and_then(|found| found.get("Id"));
        found != entry.get("Id")
    });
    missing.map(|(key, _)| key).collect()
}

/// Each employee has its entry, which names it.
pub(crate) async fn none_missing(table: &TableClient) {
    assert_eq!(missing(table).await, BTreeSet::new());
}

/// The table has the employees and their entries, and nothing else. Holds after a repair.
pub(crate) async fn exact(table: &TableClient) {
    let mut entries = rows(table).await;
    let expected = expected_entries(&entries);
    entries.retain(|(partition, row), _| {
        !partition.starts_with("empid_") || row.starts_with("~tablesdk.ticket.")
    });
    assert_eq!(entries, expected);
}

/// Stores what a client leaves that has reserved an email and then stopped.
pub(crate) async fn leave_reservation(table: &TableClient, id: i64, email: &str) {
    let ticket = Guid::from_bytes([9; 16]);
    let row_key = format!("~tablesdk.ticket.{ticket}");
    let inserted = table
        .insert(&DynamicEntity::new("empid_Sales", row_key))
        .await;
    inserted.expect("there is no other ticket");
    let entry = DynamicEntity::new("email_Sales", email)
        .with("Id", id)
        .with("Email", email)
        .with("Age", 36)
        .with("TablesdkIndex", "Employee.ByEmail")
        .with("TablesdkTicket", ticket);
    table
        .insert(&entry)
        .await
        .expect("no other employee has it");
}

/// An index in the partition beside one in others: both keys begin with a text.
#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "dept_{department}", row_key = "empid_{id:06}")]
#[table(index(InDepartment, row_key = "name_{name}.{id:06}"))]
#[table(index(
    NameOfCompany,
    partition_key = "name_{department}",
    row_key = "{name}",
    unique
))]
struct Named {
    department: String,
    id: u32,
    name: String,
}

#[tokio::test]
async fn queries_tell_entities_and_entries_apart_by_the_beginnings_of_their_keys() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    let filter = |explanation: tablesdk::query::Explanation| {
        explanation.filter().map(str::to_owned).unwrap_or_default()
    };
    let of_all = table.query::<Employee>().explain().unwrap();
    assert_eq!(
        filter(of_all),
        "PartitionKey ge 'empid_' and PartitionKey lt 'empid`'"
    );
    let sales = table
        .query::<Employee>()
        .partition(Employee::partition("Sales"));
    assert_eq!(
        filter(sales.explain().unwrap()),
        "PartitionKey eq 'empid_Sales'"
    );
    let named = table.query::<Named>().explain().unwrap();
    let expected = "RowKey ge 'empid_' and RowKey lt 'empid`' and PartitionKey ge 'dept_' and PartitionKey lt 'dept`'";
    assert_eq!(filter(named), expected);
    let name = |id, name: &str| Named {
        department: "Sales".into(),
        id,
        name: name.to_owned(),
    };
    // Its row key is that of an employee.
    table.insert(&name(1, "empid_000002")).await.unwrap();
    assert_eq!(table.query::<Named>().count().await.unwrap(), 1);
    assert_eq!(table.query::<InDepartment>().count().await.unwrap(), 1);
    let entries = table.query::<NameOfCompany>().unverified();
    assert_eq!(entries.count().await.unwrap(), 1);
    let found = table
        .get(NameOfCompany::key("Sales", "empid_000002"))
        .await
        .unwrap();
    assert_eq!(found.unwrap().id, 1);
    assert!(table.repair::<Named>().await.unwrap().is_right());
    assert_eq!(table.query::<Named>().count().await.unwrap(), 1);
}

on_both_transports! {
    async fn inter_partition_secondary_index(subject: Subject) {
        let table = subject.table().await;
        table.insert(&employee(223, "jonesj@contoso.com")).await.unwrap();
        let keys: Vec<_> = rows(&table).await.into_keys().collect();
        let key = |partition: &str, row: &str| (partition.to_owned(), row.to_owned());
        assert_eq!(keys, [key("email_Sales", "jonesj@contoso.com"), key("empid_Sales", "000223")]);
        exact(&table).await;

        let jones = table.get(ByEmail::key("Sales", "jonesj@contoso.com")).await.unwrap().unwrap();
        assert_eq!((jones.id, jones.age), (223, 36));
        let jones = table.get(ByEmail::key("Sales", "jonesj@contoso.com")).follow().await.unwrap();
        assert_eq!(*jones.unwrap(), employee(223, "jonesj@contoso.com"));
        let queried = table.query::<Employee>().collect().await.unwrap();
        assert_eq!(queried.len(), 1, "an entry is no employee");
        let in_sales = table.query::<Employee>().partition(Employee::partition("Sales"));
        assert_eq!(in_sales.count().await.unwrap(), 1);
        let entries = table.query::<ByEmail>().unverified().collect().await.unwrap();
        assert_eq!(entries.len(), 1, "an employee is no entry");
    }

    async fn each_verb_keeps_the_entries(subject: Subject) {
        let table = subject.table().await;
        let mut jones = table.insert(&employee(1, "jones")).await.unwrap();
        jones.age = 37;
        table.replace(&mut jones).await.unwrap();
        exact(&table).await;
        jones.email = Some("smith".into());
        table.replace(&mut jones).await.unwrap();
        exact(&table).await;
        jones.email = None;
        table.replace(&mut jones).await.unwrap();
        exact(&table).await;
        assert_eq!(rows(&table).await.len(), 1, "an employee without an email has no entry");
        let key = || Employee::key("Sales", 1);
        table.modify(key(), |e| { e.email = Some("king".into()); Ok(()) }).await.unwrap();
        exact(&table).await;
        let mut king = table.get(key()).await.unwrap().unwrap();
        king.email = Some("jones".into());
        let batch = table.batch(Employee::partition("Sales"));
        batch.replace(&mut king).insert(&employee(2, "two")).insert(&employee(3, "three")).await.unwrap();
        exact(&table).await;
        let passed = table.transaction(Employee::partition("Sales"), async |tx| {
            let one = tx.get(key()).await?.ok_or("inserted")?;
            let mut two = tx.get(Employee::key("Sales", 2)).await?.ok_or("inserted")?;
            two.email = Some("second".into());
            tx.delete_stored(&one).replace(two);
            Ok(())
        });
        passed.await.unwrap();
        exact(&table).await;
        table.insert(&employee(4, "four")).exactly_once().await.unwrap();
        exact(&table).await;
        table.modify(Employee::key("Sales", 5), |_| Ok(())).or_insert(|| employee(5, "five")).await.unwrap();
        exact(&table).await;
        for stored in table.query::<Employee>().collect().await.unwrap() {
            table.delete_stored(&stored).await.unwrap();
        }
        assert_eq!(rows(&table).await, Rows::new());
    }

    async fn a_reservation_is_no_entry_until_its_entity_is_written(subject: Subject) {
        let table = subject.table().await;
        leave_reservation(&table, 1, "jones").await;
        let by_email = || table.get(ByEmail::key("Sales", "jones"));
        assert!(by_email().await.unwrap().is_none());
        assert!(by_email().follow().await.unwrap().is_none());
        assert_eq!(by_email().unverified().await.unwrap().unwrap().id, 1);
        // Its client has written the entity, and has stopped before it confirmed the entry.
        let entity = DynamicEntity::new("empid_Sales", "000001").with("Email", "jones").with("Age", 36);
        table.insert(&entity).await.unwrap();
        assert_eq!(by_email().await.unwrap().unwrap().id, 1);
        let error = table.insert(&employee(2, "jones")).await.unwrap_err();
        assert_eq!(error.index(), Some("ByEmail"), "{error}");
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!((report.stale, report.mended()), (1, 1));
        exact(&table).await;
    }

    async fn a_reservation_of_a_stopped_client_blocks_no_value(subject: Subject) {
        let table = subject.table().await;
        leave_reservation(&table, 1, "jones").await;
        table.insert(&employee(2, "jones")).await.unwrap();
        exact(&table).await;
        // An entry that its entity has given up, and one of an entity that was deleted.
        leave_reservation(&table, 3, "smith").await;
        let dry = table.repair::<Employee>().dry_run().await.unwrap();
        assert_eq!((dry.orphaned, dry.recent), (1, 0));
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!((report.orphaned, report.recent, report.is_right()), (1, 0, true));
        exact(&table).await;
    }

    async fn a_repair_writes_missing_entries_and_reports_conflicts(subject: Subject) {
        let table = subject.table().await;
        // A program that does not know the index.
        for (id, email) in [("000001", "jones"), ("000002", "smith"), ("000003", "smith")] {
            let entity = DynamicEntity::new("empid_Sales", id).with("Email", email).with("Age", 36);
            table.insert(&entity).await.unwrap();
        }
        let dry = table.repair::<Employee>().dry_run().await.unwrap();
        assert_eq!((dry.missing, dry.conflicts.len()), (3, 0));
        let report = table.repair::<Employee>().await.unwrap();
        // Both employees with one email may have been compared at the same time.
        assert_eq!(report.mended() + report.conflicts.len() as u64, 3, "{report:?}");
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!((report.mended(), report.conflicts.len()), (0, 1), "{report:?}");
        let conflict = &report.conflicts[0];
        assert_eq!(conflict.index, "ByEmail");
        let mut other = table.get::<Employee>(conflict.other.clone()).await.unwrap().unwrap();
        other.email = None;
        table.replace(&mut other).await.unwrap();
        exact(&table).await;
    }

    async fn one_of_many_clients_gets_a_value(subject: Subject) {
        let table = subject.table().await;
        let inserts = (1..=8).map(|id| {
            let table = table.clone();
            async move { table.insert(&employee(id, "jones")).await }
        });
        let results = futures::future::join_all(inserts).await;
        let inserted = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(inserted, 1, "{results:?}");
        exact(&table).await;
    }

    async fn two_entities_of_a_batch_cannot_have_one_entry(subject: Subject) {
        let table = subject.table().await;
        let batch = table.batch(Employee::partition("Sales"));
        let error = batch.insert(&employee(1, "jones")).insert(&employee(2, "jones")).await.unwrap_err();
        assert!(error.to_string().contains("two entities of the batch have one entry in the index ByEmail"), "{error}");
        assert_eq!(rows(&table).await, Rows::new());
    }

    async fn a_second_owner_is_refused(subject: Subject) {
        let table = subject.table().await;
        table.insert(&employee(1, "jones")).await.unwrap();
        let mut two = table.insert(&employee(2, "smith")).await.unwrap();
        let before = rows(&table).await;
        let error = table.insert(&employee(3, "jones")).await.unwrap_err();
        assert!(error.is_conflict(), "{error}");
        assert_eq!(error.code(), Some(&ErrorCode::EntityAlreadyExists));
        assert_eq!(error.index(), Some("ByEmail"));
        two.email = Some("jones".into());
        let error = table.replace(&mut two).await.unwrap_err();
        assert!(error.is_conflict() && error.index() == Some("ByEmail"), "{error}");
        let batch = table.batch(Employee::partition("Sales"));
        let batch = batch.insert(&employee(4, "king")).insert(&employee(5, "jones"));
        let error = batch.await.unwrap_err();
        assert_eq!((error.index(), error.batch_index()), (Some("ByEmail"), Some(1)), "{error}");
        assert_eq!(rows(&table).await, before, "nothing was written");
        // An insert of an existing entity is refused as one without an index.
        let error = table.insert(&employee(1, "jones")).await.unwrap_err();
        assert!(error.is_conflict() && error.index().is_none(), "{error}");
        let error = table.insert(&employee(1, "other")).await.unwrap_err();
        assert!(error.is_conflict() && error.index().is_none(), "{error}");
        assert_eq!(rows(&table).await, before, "nothing was written");
    }

    async fn bulk_runs_leave_room_for_the_ticket(subject: Subject) {
        let table = subject.table().await;
        let all = (0..150).map(|id| employee(id, &format!("{id}@contoso.com")));
        let report = table.bulk().insert(futures::stream::iter(all)).await.unwrap();
        assert_eq!((report.progress().written, report.progress().requests), (150, 2), "{report:?}");
        exact(&table).await;

        // What keeps its entry needs none.
        let stored = table.query::<Employee>().collect().await.unwrap();
        let kept = stored.into_iter().map(|mut it| { it.age += 1; it });
        let report = table.bulk().replace(futures::stream::iter(kept)).await.unwrap();
        assert_eq!((report.progress().written, report.progress().requests), (150, 2), "{report:?}");
        exact(&table).await;
    }
}
