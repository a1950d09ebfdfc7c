//! Indexes beside a program in Python: it reads entries that our client wrote, and writes employees without their entries. A repair
//! mends what it left, and nothing else.

use std::collections::BTreeSet;

use harness::Subject;
use tablesdk::action::RepairReport;

use crate::child::run_python;
use crate::employee::{ByEmail, Employee, checked, rows};

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_reads_entries_and_a_repair_mends_what_it_writes() {
    let subject = Subject::over_http().await;
    let table = subject.table().await;
    for (id, name, email) in [
        (1, "Lovelace", Some("ada@contoso.com")),
        (2, "Hopper", Some("grace@contoso.com")),
        (3, "Hopper", None),
        (4, "Turing", Some("alan@contoso.com")),
    ] {
        table.insert(&Employee::new(id, name, email)).await.unwrap();
    }
    let before = rows(&table).await;
    run_python("indexes.py", &subject.server().connection_string()).await;

    let dry = table.repair::<Employee>().dry_run().await.unwrap();
    let counts = |report: &RepairReport| (report.missing, report.stale, report.orphaned);
    let found = async |email| table.get(ByEmail::key("Sales", email)).await.unwrap();
    assert!(
        found("grace@contoso.com").await.is_some() && found("jones@contoso.com").await.is_none()
    );
    let report = table.repair::<Employee>().await.unwrap();
    // Missing: the entry under the other email, and both of the new employee. Stale: the entry by the name of the employee with the
    // other email. Without an employee: the entry under the email before, and both of the deleted employee.
    assert_eq!((counts(&dry), counts(&report)), ((3, 1, 3), (3, 1, 3)));
    assert!(report.is_right(), "{report:?}");

    checked(&table).await;
    assert_eq!(found("hopper@contoso.com").await.unwrap().id, 2);
    assert_eq!(found("jones@contoso.com").await.unwrap().id, 5);
    let after = rows(&table).await;
    let unchanged = before.iter().filter(|(key, row)| {
        let now = after.get(*key);
        now.is_some_and(|now| now.etag() == row.etag())
    });
    let unchanged: BTreeSet<&str> = unchanged.map(|(key, _)| key.as_str()).collect();
    let of_others = [
        "email_ada@contoso.com",
        "empid_000001",
        "empid_000003",
        "name_Hopper_000003",
        "name_Lovelace_000001",
    ];
    assert_eq!(unchanged, BTreeSet::from(of_others));
    assert_eq!(table.repair::<Employee>().await.unwrap().mended(), 0);
}
