//! Enums of entities whose variants have patterns of their own, and generic entities with patterns.

use tablesdk::encryption::{Keyring, LocalKey};
use tablesdk::{DynamicEntity, ErrorKind, TableClient, TableEntity, Timestamp};

use super::expiry::hours;
use super::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Employee")]
#[table(partition_key = "{department}", row_key = "row_{id}")]
#[table(index(ByEmail, row_key = "email_{email}", unique))]
struct Employee {
    department: String,
    id: String,
    email: Option<String>,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Visitor")]
#[table(partition_key = "{department}", row_key = "row_{id}")]
#[table(index(ByBadge, row_key = "badge_{badge}_{id}"))]
struct Visitor {
    department: String,
    id: String,
    badge: String,
    #[table(expires)]
    until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Patient")]
#[table(partition_key = "{department}", row_key = "row_{id}")]
struct Patient {
    department: String,
    id: String,
    #[table(encrypt(eq))]
    name: String,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Room")]
#[table(partition_key = "{department}", row_key = "row_{id}")]
struct Room {
    department: String,
    id: String,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
enum Row {
    Employee(Employee),
    Visitor(Visitor),
    Patient(Patient),
    Room(Room),
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Ticket")]
#[table(partition_key = "{queue}", row_key = "row_{id}")]
struct Ticket<T>
where
    T: tablesdk::PropertyValue + Clone + PartialEq + std::fmt::Debug + Send + 'static,
{
    queue: String,
    id: String,
    subject: T,
    #[table(encrypt(eq))]
    caller: String,
    #[table(expires)]
    until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
enum Desk<T>
where
    T: tablesdk::PropertyValue + Clone + PartialEq + std::fmt::Debug + Send + 'static,
{
    Ticket(Ticket<T>),
    Room(Room),
}

fn employee(id: &str, email: Option<&str>) -> Row {
    Row::Employee(Employee {
        department: "Sales".to_owned(),
        id: id.to_owned(),
        email: email.map(str::to_owned),
    })
}

fn visitor(badge: &str, until: Option<Timestamp>) -> Row {
    Row::Visitor(Visitor {
        department: "Sales".to_owned(),
        id: "2".to_owned(),
        badge: badge.to_owned(),
        until,
    })
}

fn patient() -> Row {
    Row::Patient(Patient {
        department: "Sales".to_owned(),
        id: "3".to_owned(),
        name: "Ada".to_owned(),
    })
}

fn room(id: &str) -> Row {
    Row::Room(Room {
        department: "Sales".to_owned(),
        id: id.to_owned(),
    })
}

fn with_keys(table: &TableClient) -> TableClient {
    table.with_encryption(Keyring::new(LocalKey::new("2024", [7; 32])))
}

async fn row_keys(table: &TableClient) -> Vec<String> {
    let rows = table.query::<DynamicEntity>().collect().await.unwrap();
    let keys = rows
        .iter()
        .map(|row| row.key().row_key().as_str().to_owned());
    keys.collect()
}

on_both_transports! {
    async fn a_variant_with_an_index_is_written_with_its_entries(subject: Subject) {
        let table = with_keys(&subject.table().await);
        table.insert(&employee("1", Some("ada@contoso.com"))).await.unwrap();
        assert_eq!(row_keys(&table).await, ["email_ada@contoso.com", "row_1"]);

        let error = table.insert(&employee("9", Some("ada@contoso.com"))).await.unwrap_err();
        assert_eq!(error.index(), Some("ByEmail"));

        let mut read = table.get::<Row>(("Sales", "row_1")).await.unwrap().unwrap();
        *read = employee("1", Some("grace@contoso.com"));
        table.replace(&mut read).await.unwrap();
        *read = employee("1", Some("alan@contoso.com"));
        table.replace(&mut read).await.unwrap();
        assert_eq!(row_keys(&table).await, ["email_alan@contoso.com", "row_1"]);

        let modified = table.modify(Employee::key("Sales", "1").of::<Row>(), |row| {
            *row = employee("1", None);
            Ok(())
        });
        let read = modified.await.unwrap().into_stored();
        assert_eq!(row_keys(&table).await, ["row_1"]);
        assert!(table.delete_stored(&read).await.unwrap());
        assert!(row_keys(&table).await.is_empty());
    }

    async fn batches_and_transactions_write_the_entries_of_variants(subject: Subject) {
        let table = with_keys(&subject.table().await);
        let batch = table.batch("Sales").insert(&employee("1", Some("ada@contoso.com")));
        batch.insert(&visitor("17", None)).insert(&room("4")).insert(&patient()).await.unwrap();
        let all = ["badge_17_2", "email_ada@contoso.com", "row_1", "row_2", "row_3", "row_4"];
        assert_eq!(row_keys(&table).await, all);

        let leave = table.transaction("Sales", async |tx| {
            for id in ["1", "2", "4"] {
                let row = tx.get::<Row>(("Sales", format!("row_{id}"))).await?.ok_or("not here")?;
                tx.delete_stored(&row);
            }
            Ok(())
        });
        leave.await.unwrap();
        assert_eq!(row_keys(&table).await, ["row_3"]);
    }

    async fn a_repair_mends_the_entries_of_all_variants(subject: Subject) {
        let table = with_keys(&subject.table().await);
        for row in [employee("1", Some("ada@contoso.com")), visitor("17", None), room("4")] {
            table.insert(&row).await.unwrap();
        }
        for entry in ["badge_17_2", "email_ada@contoso.com"] {
            table.delete(("Sales", entry)).await.unwrap();
        }
        let report = table.repair::<Row>().dry_run().await.unwrap();
        assert_eq!((report.missing, report.stale, report.orphaned), (2, 0, 0), "{report:?}");
        assert_eq!(table.repair::<Row>().await.unwrap().mended(), 2);
        assert_eq!(row_keys(&table).await, ["badge_17_2", "email_ada@contoso.com", "row_1", "row_2", "row_4"]);
        assert!(table.repair::<Row>().await.unwrap().is_right());
        // The entries are of no variant.
        assert_eq!(table.query::<Row>().collect().await.unwrap().len(), 3);
    }

    async fn an_expired_variant_is_hidden_and_replaced(subject: Subject) {
        let table = with_keys(&subject.table().await);
        table.insert(&visitor("17", Some(hours(-1)))).await.unwrap();
        table.insert(&room("4")).await.unwrap();
        assert!(table.get::<Row>(("Sales", "row_2")).await.unwrap().is_none());
        let get = table.get::<Row>(("Sales", "row_2")).including_expired();
        assert!(get.await.unwrap().is_some());
        let rooms = table.query::<Row>().filter(|row| row.is_visitor() | row.is_room());
        assert_eq!(rooms.values().collect().await.unwrap(), [room("4")]);

        table.insert(&visitor("18", Some(hours(1)))).await.unwrap();
        assert_eq!(row_keys(&table).await, ["badge_18_2", "row_2", "row_4"], "the entry of the expired one is gone");

        // Another variant takes the place of an expired one, too.
        let mut read = table.get::<Row>(("Sales", "row_2")).await.unwrap().unwrap();
        *read = visitor("18", Some(hours(-1)));
        table.replace(&mut read).await.unwrap();
        table.insert(&room("2")).await.unwrap();
        assert_eq!(row_keys(&table).await, ["row_2", "row_4"]);
    }

    async fn an_encrypted_variant_is_encrypted(subject: Subject) {
        let table = with_keys(&subject.table().await);
        table.insert(&patient()).await.unwrap();
        let stored = table.get::<DynamicEntity>(("Sales", "row_3")).await.unwrap().unwrap();
        assert!(stored.properties().read::<String>("name").is_err(), "{stored:?}");

        let mut read = table.get::<Row>(("Sales", "row_3")).await.unwrap().unwrap();
        assert_eq!(*read, patient());
        table.replace(&mut read).await.unwrap();
        let found = table.query::<Row>().filter(|row| row.patient.name.eq("Ada"));
        assert_eq!(found.values().collect().await.unwrap(), [patient()]);
    }

    async fn a_value_that_has_become_another_variant_is_refused(subject: Subject) {
        let table = with_keys(&subject.table().await);
        for row in [employee("1", Some("ada@contoso.com")), room("4")] {
            table.insert(&row).await.unwrap();
        }
        let before = row_keys(&table).await;
        // What is stored with an employee is not known to a room, and what is stored with a room
        // not to an employee.
        for (id, row) in [("1", room("1")), ("4", employee("4", None))] {
            let mut read = table.get::<Row>(("Sales", format!("row_{id}"))).await.unwrap().unwrap();
            *read = row;
            let error = table.replace(&mut read).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input, "{error}");
            assert!(error.to_string().contains("the stored entity is of the variant"), "{error}");
            let error = table.delete_stored(&read).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        }
        assert_eq!(row_keys(&table).await, before);

        // Variants with which nothing is stored may take turns.
        let mut read = table.get::<Row>(("Sales", "row_4")).await.unwrap().unwrap();
        let Row::Patient(patient) = patient() else { unreachable!() };
        *read = Row::Patient(Patient { id: "4".to_owned(), ..patient });
        table.replace(&mut read).await.unwrap();
    }

    async fn a_generic_entity_is_hidden_and_encrypted(subject: Subject) {
        let table = with_keys(&subject.table().await);
        let ticket = |id: &str, until| Ticket {
            queue: "Sales".to_owned(),
            id: id.to_owned(),
            subject: 7_i64,
            caller: "Ada".to_owned(),
            until: Some(until),
        };
        let valid = ticket("1", hours(1));
        table.insert(&valid).await.unwrap();
        table.insert(&ticket("2", hours(-1))).await.unwrap();
        let found = table.query::<Ticket<i64>>().filter(|t| t.caller.eq("Ada")).values();
        assert_eq!(found.collect().await.unwrap(), [valid]);
        let stored = table.get::<DynamicEntity>(("Sales", "row_1")).await.unwrap().unwrap();
        assert!(stored.properties().read::<String>("caller").is_err(), "{stored:?}");

        // In an enum that is generic, too.
        let rows = table.query::<Desk<i64>>().including_expired().collect().await.unwrap();
        assert_eq!(rows.len(), 2);
        assert!(table.get::<Desk<i64>>(("Sales", "row_2")).await.unwrap().is_none());
    }
}
