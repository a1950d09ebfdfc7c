//! An index with entries in another table: what its entries are at any time, and after a repair,
//! whatever clients do with either table.

#![expect(
    clippy::duplicated_attributes,
    reason = "two indexes of a struct have the same row keys"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::proxy::{Proxy, Reply, refusal};
use harness::{client, client_with};
use tablesdk::sas::Permissions;
use tablesdk::{DynamicEntity, ErrorKind, RetryPolicy, TableClient, TableEntity, Value};
use tablesdk_server::TableServer;

use super::on_both_transports;

/// The keys of the index are those of the design guide, without a text in front.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "{id:06}")]
#[table(index(
    ByName,
    table = "{table}ByName",
    partition_key = "{last_name}",
    row_key = "{department}_{id:06}"
))]
#[table(index(
    ByAge,
    table = "Age{table}",
    row_key = "{age:05}_{id:06}",
    only(last_name)
))]
pub(crate) struct Employee {
    pub(crate) department: String,
    pub(crate) id: u32,
    pub(crate) last_name: Option<String>,
    pub(crate) email: Option<String>,
    pub(crate) age: u16,
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

/// Creates the table of the entities, and those of the indexes.
pub(crate) async fn create(table: &TableClient) {
    let (by_name, by_age) = (table.index_table::<ByName>(), table.index_table::<ByAge>());
    for table in [table, &by_name, &by_age] {
        let created = table.create_table().if_missing().await;
        created.expect("the table can be created");
    }
}

type Rows = BTreeMap<(String, String), BTreeMap<String, Value>>;

/// All of a table, read by one request.
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

/// The entries of both indexes.
async fn entries(table: &TableClient) -> [Rows; 2] {
    let (by_name, by_age) = (table.index_table::<ByName>(), table.index_table::<ByAge>());
    [rows(&by_name).await, rows(&by_age).await]
}

/// The entries of the employees, written down here a second time.
fn expected(employees: &Rows) -> [Rows; 2] {
    let (mut by_name, mut by_age) = (Rows::new(), Rows::new());
    for ((department, id), properties) in employees {
        let mark = |index: &str| Value::from(format!("Employee.{index}"));
        if let Some(Value::String(name)) = properties.get("LastName") {
            let mut entry = properties.clone();
            entry.insert("TablesdkIndex".into(), mark("ByName"));
            by_name.insert((name.clone(), format!("{department}_{id}")), entry);
        }
        let Some(Value::Int32(age)) = properties.get("Age") else {
            panic!("{properties:?} has no age");
        };
        let name = properties.get("LastName").cloned();
        let mut entry = BTreeMap::from([("TablesdkIndex".into(), mark("ByAge"))]);
        entry.extend(name.map(|name| ("LastName".to_owned(), name)));
        by_age.insert((department.clone(), format!("{age:05}_{id}")), entry);
    }
    [by_name, by_age]
}

/// The entries that employees should have and do not.
pub(crate) async fn missing(table: &TableClient) -> BTreeSet<(String, String)> {
    let expected = expected(&rows(table).await);
    let found = entries(table).await;
    let missing = expected
        .into_iter()
        .zip(found)
        .flat_map(|(expected, found)| {
            let keys = expected.into_keys();
            keys.filter(move |key| !found.contains_key(key))
        });
    missing.collect()
}

/// The entries are those of the employees and no others. Holds after a repair.
pub(crate) async fn exact(table: &TableClient) {
    assert_eq!(entries(table).await, expected(&rows(table).await));
}

on_both_transports! {
    async fn an_entity_is_found_by_an_index_in_another_table(subject: Subject) {
        let table = subject.table().await;
        create(&table).await;
        for (department, id, name) in [("Sales", 1, "Jones"), ("Legal", 2, "Jones"), ("Sales", 3, "Smith")] {
            table.insert(&employee(department, id, name)).await.unwrap();
        }
        exact(&table).await;
        assert_eq!(rows(&table).await.len(), 3, "there are no entries in the table of the entities");
        let jones = || table.query::<ByName>().partition(ByName::partition("Jones"));
        let found = jones().follow().collect().await.unwrap();
        let ids: Vec<_> = found.iter().map(|e| (e.department.as_str(), e.id)).collect();
        assert_eq!(ids, [("Legal", 2), ("Sales", 1)]);
        assert_eq!(jones().select(|e| e.age).unverified().collect().await.unwrap(), [36, 36]);
        let entry = || table.get(ByName::key("Jones", "Legal", 2));
        assert_eq!(entry().unverified().await.unwrap().unwrap().email.as_deref(), Some("2@contoso.com"));
        let followed = entry().follow().await.unwrap().unwrap();
        assert_eq!(*followed, employee("Legal", 2, "Jones"));
        // An index without a partition key has that of the entity.
        let in_sales = table.query::<ByAge>().partition("Sales").rows(ByAge::rows().age(30..40));
        let names = in_sales.select(|e| e.last_name).unverified().collect().await.unwrap();
        assert_eq!(names, [Some("Jones".to_owned()), Some("Smith".to_owned())]);
        // A client of the index's table reads the same entries, and leads to the same entities.
        let index = table.index_table::<ByName>();
        assert_eq!(index.name(), format!("{}ByName", table.name()));
        let key = ByName::key("Jones", "Legal", 2);
        assert!(index.get(key.clone()).unverified().await.unwrap().is_some());
        assert_eq!(*index.get(key).follow().await.unwrap().unwrap(), employee("Legal", 2, "Jones"));
    }

    async fn each_verb_keeps_the_entries_in_another_table(subject: Subject) {
        let table = subject.table().await;
        create(&table).await;
        let mut jones = table.insert(&employee("Sales", 1, "Jones")).await.unwrap();
        jones.age = 37;
        table.replace(&mut jones).await.unwrap();
        exact(&table).await;
        jones.last_name = None;
        table.replace(&mut jones).await.unwrap();
        exact(&table).await;
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
        table.insert(&employee("Sales", 4, "Jones")).exactly_once().await.unwrap();
        exact(&table).await;
        for employee in table.query::<Employee>().collect().await.unwrap() {
            assert!(table.delete_stored(&employee).await.unwrap());
        }
        exact(&table).await;
        assert!(rows(&table).await.is_empty());
    }

    async fn a_refused_write_leaves_the_other_table_as_it_was(subject: Subject) {
        let table = subject.table().await;
        create(&table).await;
        let stale = table.insert(&employee("Sales", 1, "Jones")).await.unwrap();
        table.modify(Employee::key("Sales", 1), |e| { e.age += 1; Ok(()) }).await.unwrap();
        let before = entries(&table).await;
        assert!(table.insert(&employee("Sales", 1, "Smith")).await.unwrap_err().is_conflict());
        assert_eq!(entries(&table).await, before, "the entry of Smith is withdrawn");
        let mut other = stale.clone();
        other.last_name = Some("Smith".into());
        assert!(table.replace(&mut other).await.unwrap_err().is_precondition_failed());
        assert!(table.delete_stored(&stale).await.unwrap_err().is_precondition_failed());
        assert_eq!(entries(&table).await, before);
    }

    async fn a_missing_table_of_an_index_is_an_error_that_names_it(subject: Subject) {
        let table = subject.table().await;
        create(&table).await;
        table.insert(&employee("Sales", 1, "Jones")).await.unwrap();
        let index = table.index_table::<ByName>();
        assert!(index.delete_table().await.unwrap());
        let entry = || ByName::key("Jones", "Sales", 1);
        let mut stored = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
        let error = |error: tablesdk::Error| {
            assert!(error.is_table_not_found(), "{error}");
            assert_eq!(error.table(), Some(index.name()), "{error}");
        };
        error(table.insert(&employee("Sales", 2, "King")).await.unwrap_err());
        stored.age += 1;
        error(table.replace(&mut stored).await.unwrap_err());
        error(table.delete_stored(&stored).await.unwrap_err());
        error(table.get(entry()).unverified().await.unwrap_err());
        error(table.get(entry()).follow().await.unwrap_err());
        error(table.query::<ByName>().follow().collect().await.unwrap_err());
        error(table.repair::<Employee>().dry_run().await.unwrap_err());
        assert_eq!(rows(&table).await.len(), 1, "nothing was written without its entry");
        // Without the table of the entities, `follow` names that one.
        create(&table).await;
        table.repair::<Employee>().await.unwrap();
        table.delete_table().await.unwrap();
        let error = table.get(entry()).follow().await.unwrap_err();
        assert_eq!((error.is_table_not_found(), error.table()), (true, Some(table.name())), "{error}");
    }

    async fn a_repair_builds_the_table_of_an_index_anew(subject: Subject) {
        let table = subject.table().await;
        create(&table).await;
        for id in 1..=5 {
            table.insert(&employee("Sales", id, "Jones")).await.unwrap();
        }
        let index = table.index_table::<ByName>();
        index.delete_table().await.unwrap();
        // The service keeps the name of a deleted table for a while.
        index.create_table().wait(Duration::from_secs(120)).await.unwrap();
        assert!(table.query::<ByName>().follow().collect().await.unwrap().is_empty());
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!((report.missing, report.stale, report.orphaned), (5, 0, 0), "{report:?}");
        exact(&table).await;
        assert!(table.repair::<Employee>().dry_run().await.unwrap().is_right());
    }

    async fn entities_are_not_written_to_the_table_of_an_index(subject: Subject) {
        let table = subject.table().await;
        create(&table).await;
        let index = table.index_table::<ByName>();
        let error = index.insert(&employee("Sales", 1, "Jones")).await.unwrap_err();
        let rule = "is for entries of the index ByName";
        assert!(error.kind() == ErrorKind::Input && error.to_string().contains(rule), "{error}");
        assert!(rows(&index).await.is_empty());
    }
}

/// Each table of entities has an index of its own, so a repair of one does not remove the entries
/// of another.
#[tokio::test]
async fn tables_of_one_type_do_not_share_an_index() {
    let server = TableServer::in_process();
    let service = client(&server);
    let tables = ["Employees", "Former"].map(|name| service.table(name));
    for (table, id) in tables.iter().zip(1..) {
        create(table).await;
        table.insert(&employee("Sales", id, "Jones")).await.unwrap();
    }
    server.clock().advance(Duration::from_secs(7200));
    for (table, id) in tables.iter().zip(1..) {
        let report = table.repair::<Employee>().await.unwrap();
        assert!(report.is_right() && report.mended() == 0, "{report:?}");
        exact(table).await;
        let found = table.query::<ByName>().follow().collect().await.unwrap();
        let found: Vec<_> = found.iter().map(|employee| employee.id).collect();
        assert_eq!(found, [id]);
    }
}

#[tokio::test]
async fn a_reader_of_an_index_has_a_signature_for_its_table_alone() {
    let server = TableServer::in_process();
    let table = client(&server).table("Employees");
    create(&table).await;
    table.insert(&employee("Sales", 1, "Jones")).await.unwrap();
    let index = table.index_table::<ByName>();
    let hour = table.now().saturating_add(Duration::from_secs(3600));
    let signed = |table: &TableClient| {
        let sas = table.sas().allow(Permissions::READ | Permissions::ADD);
        let url = sas.expires_at(hour).sign().unwrap();
        client_with(&server, |builder| {
            let builder = builder.retry(RetryPolicy::none());
            builder.credential(url.sas().clone())
        })
    };
    let entry = || ByName::key("Jones", "Sales", 1);
    let reader = signed(&index).table(index.name());
    assert!(reader.get(entry()).unverified().await.unwrap().is_some());
    assert_eq!(
        reader.query::<ByName>().unverified().count().await.unwrap(),
        1
    );
    let denied = reader.get(entry()).follow().await.unwrap_err();
    assert_eq!(
        (denied.is_denied(), denied.table()),
        (true, Some("Employees")),
        "{denied}"
    );
    // A signature for the table of the entities does not write the entries.
    let writer = signed(&table).table("Employees");
    let denied = writer
        .insert(&employee("Sales", 2, "King"))
        .await
        .unwrap_err();
    assert!(denied.is_denied(), "{denied}");
    assert!(
        ["EmployeesByName", "AgeEmployees"].contains(&denied.table().unwrap()),
        "{denied}"
    );
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 1);
}

#[tokio::test]
async fn a_table_without_room_for_the_name_of_its_index_is_refused() {
    let server = TableServer::in_process();
    let table = client(&server).table("E".repeat(60));
    table.create_table().await.unwrap();
    let error = table
        .insert(&employee("Sales", 1, "Jones"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    assert!(error.to_string().contains("63"), "{error}");
    let error = table
        .query::<ByName>()
        .unverified()
        .count()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "{id:06}")]
#[table(index(
    ByManager,
    table = "{table}ByManager",
    partition_key = "{manager}",
    row_key = "{department}_{id:06}"
))]
#[table(index(
    ByMentor,
    table = "{table}ByMentor",
    partition_key = "{mentor}",
    row_key = "{department}_{id:06}"
))]
struct Mentored {
    department: String,
    id: u32,
    manager: String,
    mentor: String,
}

/// The entries of both indexes have the same keys, in two tables.
#[tokio::test]
async fn a_stale_entry_does_not_lead_to_an_entity_with_that_key_in_another_index() {
    let server = TableServer::in_process();
    let table = client(&server).table("Employees");
    let (managers, mentors) = (
        table.index_table::<ByManager>(),
        table.index_table::<ByMentor>(),
    );
    for table in [&table, &managers, &mentors] {
        table.create_table().await.unwrap();
    }
    let mentored = |manager: &str, mentor: &str| Mentored {
        department: "Sales".into(),
        id: 1,
        manager: manager.into(),
        mentor: mentor.into(),
    };
    table.insert(&mentored("bob", "ann")).await.unwrap();
    let stale = DynamicEntity::new("ann", "Sales_000001")
        .with("TablesdkIndex", "Mentored.ByManager")
        .with("manager", "ann")
        .with("mentor", "ann");
    managers.insert(&stale).await.unwrap();
    assert!(
        table
            .get(ByMentor::key("ann", "Sales", 1))
            .follow()
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        table
            .get(ByManager::key("ann", "Sales", 1))
            .follow()
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        table
            .get(ByManager::key("bob", "Sales", 1))
            .follow()
            .await
            .unwrap()
            .is_some()
    );
}

/// The keys are those of the sample in the design guide.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "{id:06}")]
#[table(index(
    ByEmail,
    table = "{table}ByEmail",
    partition_key = "email_{department}",
    row_key = "{email}",
    unique,
    only()
))]
struct WithEmail {
    department: String,
    id: u32,
    email: String,
}

fn with_email(id: u32, email: &str) -> WithEmail {
    WithEmail {
        department: "Sales".into(),
        id,
        email: email.into(),
    }
}

on_both_transports! {
    async fn a_value_is_unique_by_an_index_in_another_table(subject: Subject) {
        let table = subject.table().await;
        let index = table.index_table::<ByEmail>();
        index.create_table().await.unwrap();
        let email = "jonesj@contoso.com";
        let entry = || ByEmail::key("Sales", email);
        let mut jones = table.insert(&with_email(1, email)).await.unwrap();
        let taken = table.insert(&with_email(2, email)).await.unwrap_err();
        assert_eq!((taken.is_conflict(), taken.index()), (true, Some("ByEmail")), "{taken}");
        assert_eq!(rows(&table).await.len(), 1, "neither an entity nor a ticket is left");
        // One read of the entry, as it is stored.
        assert_eq!(table.get(entry()).await.unwrap().unwrap().id, 1);
        let key = |row: &str| ("email_Sales".to_owned(), row.to_owned());
        assert_eq!(rows(&index).await.into_keys().collect::<Vec<_>>(), [key(email)]);
        jones.email = "smith@contoso.com".into();
        table.replace(&mut jones).await.unwrap();
        assert_eq!(rows(&index).await.into_keys().collect::<Vec<_>>(), [key("smith@contoso.com")]);
        let other = table.insert(&with_email(2, email)).await.unwrap();
        assert_eq!(*table.get(entry()).follow().await.unwrap().unwrap(), *other);
        assert!(table.delete_stored(&other).await.unwrap());
        assert!(table.get(entry()).await.unwrap().is_none());
        assert!(table.repair::<WithEmail>().dry_run().await.unwrap().is_right());
        index.delete_table().await.unwrap();
        index.create_table().wait(Duration::from_secs(120)).await.unwrap();
        let report = table.repair::<WithEmail>().await.unwrap();
        assert_eq!((report.missing, report.mended()), (1, 1), "{report:?}");
        assert_eq!(rows(&index).await.into_keys().collect::<Vec<_>>(), [key("smith@contoso.com")]);
    }
}

/// A client ends at each request of an insert. Another entity can then have the value, and exactly
/// one has it.
#[tokio::test(start_paused = true)]
async fn a_value_in_another_table_has_one_owner_whatever_request_is_the_last() {
    const EMAIL: &str = "jonesj@contoso.com";
    for requests in 0..8 {
        let server = TableServer::in_process();
        let table = client(&server).table("Employees");
        let index = table.index_table::<ByEmail>();
        for table in [&table, &index] {
            table.create_table().await.unwrap();
        }
        let proxy = Proxy::new(server.transport());
        let behind = client_with(&server, |builder| {
            builder.transport(proxy.clone()).retry(RetryPolicy::none())
        });
        let behind = behind.table("Employees");
        let mut left = requests;
        proxy.choose(move |_| {
            if left == 0 {
                return Reply::Respond(refusal(503, "ServerBusy"));
            }
            left -= 1;
            Reply::Forward
        });
        let _ = behind.insert(&with_email(1, EMAIL)).await;
        let second = table.insert(&with_email(2, EMAIL)).await;
        let stored = table.query::<WithEmail>().collect().await.unwrap();
        assert_eq!(stored.len(), 1, "after {requests} requests: {second:?}");
        let found = table
            .get(ByEmail::key("Sales", EMAIL))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.id, stored[0].id, "after {requests} requests");
    }
}

/// Its entry has a key that an entity of the other table may have, too.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}")]
#[table(index(
    ByTitle,
    table = "{table}ByTitle",
    partition_key = "{department}",
    row_key = "{title}_{id}"
))]
struct Role {
    department: String,
    id: u32,
    title: String,
}

#[tokio::test]
async fn a_transaction_checks_what_it_has_read_under_the_key_of_an_entry_in_another_table() {
    let server = TableServer::in_process();
    let table = client(&server).table("Company");
    for table in [&table, &table.index_table::<ByTitle>()] {
        table.create_table().await.unwrap();
    }
    let plan = || DynamicEntity::new("Sales", "Lead_1");
    table.insert(&plan()).await.unwrap();
    let rounds = AtomicU32::new(0);
    let hire = table.transaction("Sales", async |tx| {
        let round = rounds.fetch_add(1, Ordering::Relaxed);
        let found = tx.get::<DynamicEntity>(("Sales", "Lead_1")).await?;
        found.ok_or("there is a plan")?;
        if round == 0 {
            let changed = plan().with("Is", "changed");
            table.upsert_replace(&changed).await?;
        }
        tx.insert(&Role {
            department: "Sales".to_owned(),
            id: 1,
            title: "Lead".to_owned(),
        });
        Ok(())
    });
    hire.await.unwrap();
    assert_eq!(rounds.into_inner(), 2, "it was changed in the first one");
}
