//! Entries that are read from several partitions at a time.

use harness::company::indexed::{ByName, Employee};
use tablesdk::{Stored, TableClient, TableEntity, Timestamp};

use super::super::{on_both_transports, other_partitions};
use crate::expiry::hours;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{user}", row_key = "session_{id}")]
#[table(index(
    ByDevice,
    partition_key = "device_{device}",
    row_key = "of_{user}_{id}"
))]
struct Session {
    user: String,
    id: u32,
    device: String,
    #[table(expires)]
    until: Timestamp,
}

async fn insert(table: &TableClient) {
    for (id, name, department) in [
        (1, "King", "Sales"),
        (2, "Jones", "Legal"),
        (3, "Ames", "Sales"),
    ] {
        let department = department.to_owned();
        let employee = Employee {
            department,
            ..Employee::new(id, name, None)
        };
        table.insert(&employee).await.unwrap();
    }
}

fn ids(found: &[Stored<Employee>]) -> Vec<u32> {
    found.iter().map(|found| found.id).collect()
}

on_both_transports! {
    async fn entries_of_several_partitions_lead_to_entities(subject: Subject) {
        let table = subject.table().await;
        insert(&table).await;
        let entries = || table.query::<ByName>().partitions(["Sales", "Legal"]);
        assert_eq!(ids(&entries().in_order().follow().collect().await.unwrap()), [3, 1, 2]);
        // By the name, over both partitions.
        assert_eq!(ids(&entries().merged().follow().collect().await.unwrap()), [3, 2, 1]);
        let first = entries().merged().take(2).follow().page(None).await.unwrap();
        assert_eq!(ids(&first.items), [3, 2]);
        let rest = entries().merged().take(2).follow().page(first.next).await.unwrap();
        assert_eq!(ids(&rest.items), [1]);

        let mut employee = entries().follow().collect().await.unwrap().remove(0);
        employee.last_name = "Smith".into();
        table.replace(&mut employee).await.unwrap();
    }

    async fn entries_in_other_partitions_are_followed_or_unverified(subject: Subject) {
        let table = subject.table().await;
        for (id, name) in [(1, "Jones"), (2, "King"), (3, "Jones")] {
            table.insert(&other_partitions::employee("Sales", id, name)).await.unwrap();
        }
        let names = ["Jones", "King"].map(other_partitions::ByName::partition);
        let entries = || table.query::<other_partitions::ByName>().partitions(names.clone());
        assert_eq!(entries().unverified().count().await.unwrap(), 3);
        let found = entries().merged().unverified().collect().await.unwrap();
        assert_eq!(found.iter().map(|entry| entry.id).collect::<Vec<_>>(), [1, 2, 3]);
        let found = entries().in_order().follow().collect().await.unwrap();
        assert_eq!(found.iter().map(|it| it.id).collect::<Vec<_>>(), [1, 3, 2]);

        // An entry without an entity is not followed.
        table.delete(("Sales", "empid_000003")).await.unwrap();
        assert_eq!(entries().unverified().count().await.unwrap(), 3);
        assert_eq!(entries().merged().follow().collect().await.unwrap().len(), 2);
    }

    async fn expired_entities_are_not_followed(subject: Subject) {
        let table = subject.table().await;
        for (id, device, until) in [(1, "phone", 1), (2, "desk", -1), (3, "desk", 1)] {
            let [user, device] = ["ann", device].map(str::to_owned);
            table.insert(&Session { user, id, device, until: hours(until) }).await.unwrap();
        }
        let devices = ["desk", "phone"].map(ByDevice::partition);
        let entries = || table.query::<ByDevice>().partitions(devices.clone());
        assert_eq!(entries().merged().follow().collect().await.unwrap().len(), 2);
        assert_eq!(entries().including_expired().follow().collect().await.unwrap().len(), 3);
    }
}
