//! Enums of entities whose variants have patterns of their own, and generic entities with patterns.

use tablesdk::encryption::{Keyring, LocalKey};
use tablesdk::{DynamicEntity, TableClient, TableEntity, Timestamp};

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

/// With the same keys of entries as [`Guest`].
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Staff")]
#[table(partition_key = "{department}", row_key = "row_{id}")]
#[table(index(StaffByName, row_key = "name_{name}", unique))]
struct Staff {
    department: String,
    id: String,
    name: String,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Guest")]
#[table(partition_key = "{department}", row_key = "row_{id}")]
#[table(index(GuestByName, row_key = "name_{name}", unique))]
struct Guest {
    department: String,
    id: String,
    name: String,
}

impl Staff {
    fn new(id: &str, name: &str) -> Self {
        let [department, id, name] = ["Sales", id, name].map(str::to_owned);
        Self {
            department,
            id,
            name,
        }
    }
}

impl Guest {
    fn new(id: &str, name: &str) -> Self {
        let [department, id, name] = ["Sales", id, name].map(str::to_owned);
        Self {
            department,
            id,
            name,
        }
    }
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
enum Person {
    Staff(Staff),
    Guest(Guest),
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

    async fn a_value_becomes_another_variant_with_its_entries(subject: Subject) {
        let table = with_keys(&subject.table().await);
        let row = async || table.get::<Row>(("Sales", "row_2")).await.unwrap().unwrap();
        table.insert(&employee("2", Some("ada@contoso.com"))).await.unwrap();
        for (next, all) in [
            (visitor("17", None), &["badge_17_2", "row_2"][..]),
            (employee("2", Some("grace@contoso.com")), &["email_grace@contoso.com", "row_2"]),
            (room("2"), &["row_2"]),
            (visitor("18", Some(hours(1))), &["badge_18_2", "row_2"]),
        ] {
            let mut read = row().await;
            *read = next.clone();
            table.replace(&mut read).await.unwrap();
            assert_eq!((row_keys(&table).await, row().await.into_inner()), (all.iter().map(|&it| it.to_owned()).collect(), next));
        }

        // By the other verbs.
        let modified = table.modify(("Sales", "row_2"), |row: &mut Row| {
            *row = employee("2", Some("ada@contoso.com"));
            Ok(())
        });
        modified.await.unwrap();
        assert_eq!(row_keys(&table).await, ["email_ada@contoso.com", "row_2"]);
        let turned = table.transaction("Sales", async |tx| {
            let mut read = tx.get::<Row>(("Sales", "row_2")).await?.ok_or("not here")?;
            *read = visitor("19", None);
            tx.replace(read).insert(&employee("1", Some("ada@contoso.com")));
            Ok(())
        });
        turned.await.unwrap();
        assert_eq!(row_keys(&table).await, ["badge_19_2", "email_ada@contoso.com", "row_1", "row_2"]);

        // What is deleted is the entity that was read, with its entries, whatever the value is now.
        let mut read = row().await;
        *read = room("2");
        assert!(table.delete_stored(&read).await.unwrap());
        assert_eq!(row_keys(&table).await, ["email_ada@contoso.com", "row_1"]);
    }

    async fn a_variant_takes_over_the_entry_of_another_variant(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Person::Staff(Staff::new("1", "ada"))).await.unwrap();
        table.insert(&Person::Guest(Guest::new("2", "grace"))).await.unwrap();
        let mut read = table.get::<Person>(("Sales", "row_1")).await.unwrap().unwrap();
        *read = Person::Guest(Guest::new("1", "ada"));
        table.replace(&mut read).await.unwrap();
        let found = table.get(GuestByName::key("Sales", "ada")).follow().await.unwrap();
        assert_eq!(found.unwrap().into_inner(), Guest::new("1", "ada"));
        assert_eq!(row_keys(&table).await, ["name_ada", "name_grace", "row_1", "row_2"]);

        *read = Person::Staff(Staff::new("1", "grace"));
        let error = table.replace(&mut read).await.unwrap_err();
        assert!(error.is_conflict(), "{error}");
        assert_eq!(row_keys(&table).await, ["name_ada", "name_grace", "row_1", "row_2"]);
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
