//! Indexes beside a program in Python: it reads entries that our client wrote, and writes employees
//! without their entries. A repair mends what it left, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use harness::Subject;
use harness::company::indexed::{ByEmail, Employee, checked};
use tablesdk::index::RepairReport;
use tablesdk::{DynamicEntity, ETag, TableClient, WritableEntity};

use crate::child::run_python;

/// The same employees, with entries in other partitions.
mod elsewhere {
    use tablesdk::TableEntity;

    #[derive(Clone, Debug, TableEntity)]
    #[table(
        rename_all = "PascalCase",
        partition_key = "{department}",
        row_key = "empid_{id:06}"
    )]
    #[table(index(
        CompanyByName,
        partition_key = "name_{last_name}",
        row_key = "in_{department}_{id:06}"
    ))]
    pub(super) struct Employee {
        pub(super) department: String,
        pub(super) id: u32,
        pub(super) last_name: String,
        pub(super) email: Option<String>,
        pub(super) age: i32,
    }
}

/// The same employees, with entries that are unique in other partitions.
mod unique {
    use tablesdk::TableEntity;

    #[derive(Clone, Debug, PartialEq, TableEntity)]
    #[table(
        rename_all = "PascalCase",
        partition_key = "empid_{department}",
        row_key = "{id:06}"
    )]
    #[table(index(
        UniqueEmail,
        partition_key = "email_{department}",
        row_key = "{email}",
        unique
    ))]
    pub(super) struct Employee {
        pub(super) department: String,
        pub(super) id: u32,
        pub(super) last_name: String,
        pub(super) email: Option<String>,
        pub(super) age: i32,
    }
}

/// The same employees, with entries in another table, which have some of the properties.
mod in_table {
    use tablesdk::TableEntity;

    #[derive(Clone, Debug, TableEntity)]
    #[table(
        rename_all = "PascalCase",
        partition_key = "{department}",
        row_key = "{id:06}"
    )]
    #[table(index(
        ByName,
        table = "{table}ByName",
        partition_key = "{last_name}",
        row_key = "{department}_{id:06}",
        only(email)
    ))]
    pub(super) struct Employee {
        pub(super) department: String,
        pub(super) id: u32,
        pub(super) last_name: String,
        pub(super) email: Option<String>,
        pub(super) age: i32,
    }
}

const EMPLOYEES: [(u32, &str, Option<&str>); 4] = [
    (1, "Lovelace", Some("ada@contoso.com")),
    (2, "Hopper", Some("grace@contoso.com")),
    (3, "Hopper", None),
    (4, "Turing", Some("alan@contoso.com")),
];

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_reads_entries_and_a_repair_mends_what_it_writes() {
    let subject = Subject::over_http().await;
    let table = subject.table().await;
    let elsewhere = subject.service.table("Elsewhere");
    elsewhere.create_table().await.unwrap();
    let unique = subject.service.table("Unique");
    unique.create_table().await.unwrap();
    let with_table = subject.service.table("InTable");
    with_table.create_table().await.unwrap();
    let index = with_table.index_table::<in_table::ByName>();
    index.create_table().await.unwrap();
    for (id, name, email) in EMPLOYEES {
        unique
            .insert(&with_unique_email(id, name, email))
            .await
            .unwrap();
        let employee = Employee::new(id, name, email);
        let of_table = in_table::Employee {
            department: employee.department.clone(),
            id,
            last_name: employee.last_name.clone(),
            email: employee.email.clone(),
            age: employee.age,
        };
        with_table.insert(&of_table).await.unwrap();
        table.insert(&employee).await.unwrap();
        let employee = elsewhere::Employee {
            department: employee.department,
            id,
            last_name: employee.last_name,
            email: employee.email,
            age: employee.age,
        };
        elsewhere.insert(&employee).await.unwrap();
    }
    let (before, before_elsewhere) = (versions(&table).await, versions(&elsewhere).await);
    run_python("indexes.py", &subject).await;
    in_the_partition(&table, &before).await;
    unique_in_other_partitions(&unique).await;
    // A repair leaves entries without an entity alone for an hour.
    let clock = subject.server().clock();
    clock.advance(Duration::from_secs(2 * 3600));
    in_other_partitions(&subject.other().table("Elsewhere"), &before_elsewhere).await;
}

fn with_unique_email(id: u32, name: &str, email: Option<&str>) -> unique::Employee {
    let Employee {
        department,
        id,
        last_name,
        email,
        age,
    } = Employee::new(id, name, email);
    unique::Employee {
        department,
        id,
        last_name,
        email,
        age,
    }
}

async fn unique_in_other_partitions(table: &TableClient) {
    let found = async |email| {
        let found = table.get(unique::UniqueEmail::key("Sales", email)).await;
        found.unwrap().map(|entry| entry.id)
    };
    // Python has written an employee, and has reserved the email of another one.
    assert_eq!(found("jones@contoso.com").await, Some(5));
    assert_eq!(found("smith@contoso.com").await, None);
    let second = |id, email| with_unique_email(id, "Jones", Some(email));
    let error = table
        .insert(&second(7, "jones@contoso.com"))
        .await
        .unwrap_err();
    assert_eq!(error.index(), Some("UniqueEmail"));
    table.insert(&second(7, "smith@contoso.com")).await.unwrap();
    assert_eq!(found("smith@contoso.com").await, Some(7));
    repair::<unique::Employee>(table, (0, 0, 0)).await;
}

async fn in_the_partition(table: &TableClient, before: &Versions) {
    let found = async |email| table.get(ByEmail::key("Sales", email)).await.unwrap();
    assert!(found("grace@contoso.com").await.is_some());
    assert!(found("jones@contoso.com").await.is_none());
    // Missing: the entry under the other email, and both of the new employee. Stale: the entry by
    // the name of the employee with the other email. Without an employee: the entry under the email
    // before, and both of the deleted employee.
    repair::<Employee>(table, (3, 1, 3)).await;
    checked(table).await;
    assert_eq!(found("hopper@contoso.com").await.unwrap().id, 2);
    assert_eq!(found("jones@contoso.com").await.unwrap().id, 5);
    let of_others = [
        ("Sales", "email_ada@contoso.com"),
        ("Sales", "empid_000001"),
        ("Sales", "empid_000003"),
        ("Sales", "name_Hopper_000003"),
        ("Sales", "name_Lovelace_000001"),
    ];
    assert_eq!(unchanged(table, before).await, owned(&of_others));
}

async fn in_other_partitions(table: &TableClient, before: &Versions) {
    repair::<elsewhere::Employee>(table, (1, 1, 1)).await;
    let by_name = |name| {
        let query = table.query::<elsewhere::CompanyByName>();
        query.partition(elsewhere::CompanyByName::partition(name))
    };
    let hopper = by_name("Hopper").follow().collect().await.unwrap();
    assert_eq!(hopper[0].email.as_deref(), Some("hopper@contoso.com"));
    assert_eq!(by_name("Jones").unverified().count().await.unwrap(), 1);
    assert_eq!(by_name("Turing").unverified().count().await.unwrap(), 0);
    let of_others = [
        ("Sales", "empid_000001"),
        ("Sales", "empid_000003"),
        ("name_Hopper", "in_Sales_000003"),
        ("name_Lovelace", "in_Sales_000001"),
    ];
    assert_eq!(unchanged(table, before).await, owned(&of_others));
}

/// Repairs, after a dry run that finds the same: missing, stale and without an entity. Nothing is
/// left for a second one.
async fn repair<E: WritableEntity>(table: &TableClient, expected: (u64, u64, u64)) {
    let counts = |report: &RepairReport| (report.missing, report.stale, report.orphaned);
    let dry = table.repair::<E>().dry_run().await.unwrap();
    assert_eq!(counts(&dry), expected);
    let report = table.repair::<E>().await.unwrap();
    assert_eq!(counts(&report), expected);
    assert!(report.is_right(), "{report:?}");
    assert_eq!(table.repair::<E>().await.unwrap().mended(), 0);
}

type Key = (String, String);
type Versions = BTreeMap<Key, ETag>;

async fn versions(table: &TableClient) -> Versions {
    let rows = table.query::<DynamicEntity>().collect().await.unwrap();
    let rows = rows.iter().map(|row| {
        let key = (row.partition_key().to_owned(), row.row_key().to_owned());
        (key, row.etag().clone())
    });
    rows.collect()
}

/// The keys of the entities that have not been written since.
async fn unchanged(table: &TableClient, before: &Versions) -> BTreeSet<Key> {
    let now = versions(table).await;
    let same = before
        .iter()
        .filter(|(key, etag)| now.get(*key) == Some(*etag));
    same.map(|(key, _)| key.clone()).collect()
}

fn owned(keys: &[(&str, &str)]) -> BTreeSet<Key> {
    let keys = keys.iter();
    keys.map(|&(partition, row)| (partition.to_owned(), row.to_owned()))
        .collect()
}
