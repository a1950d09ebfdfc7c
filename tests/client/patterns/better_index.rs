//! `explain` and a denied scan name the index that would answer a query.

use harness::client_with;
use harness::company::indexed::{ByEmail, ByName, Employee};
use tablesdk::action::QueryEntities;
use tablesdk::query::AccessClass;
use tablesdk::{TableEntity, TableServiceClientBuilder};
use tablesdk_server::TableServer;

#[derive(Debug, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{fleet}",
    row_key = "ship_{number:04}"
)]
#[table(index(ByHarbour, row_key = "harbour_{harbour:escaped}_{number:04}"))]
#[table(index(ByCrew, row_key = "crew_{crew:05}_{name}_{number:04}"))]
#[table(index(ByTitle, row_key = "name_{name}", unique))]
#[table(index(ByNumber, row_key = "number_{number:04}_{crew:05}"))]
#[table(index(
    ByCaptain,
    partition_key = "captain_{captain}",
    row_key = "of_{fleet}_{number:04}"
))]
struct Ship {
    fleet: String,
    #[table(store)]
    number: u16,
    #[table(rename = "Title")]
    name: String,
    harbour: String,
    crew: u32,
    captain: Option<String>,
}

#[tokio::test]
async fn explain_names_the_index_that_narrows_the_query_most() {
    let server = TableServer::in_process();
    let table = client_with(&server, |builder| builder).table("Ships");
    let ships = || table.query::<Ship>().partition("North");
    for (query, expected) in [
        // A value of the leading part, and a range of the last.
        (
            ships().filter(|s| s.name.eq("Erebus")),
            Some("ByTitle with rows().name(…)"),
        ),
        (
            ships().filter(|s| s.name.starts_with("E")),
            Some("ByTitle with rows().name(…)"),
        ),
        (
            ships().odata("Title lt 'F'"),
            Some("ByTitle with rows().name(…)"),
        ),
        // A range of a part of fixed width; what follows it does not narrow the range.
        (
            ships().filter(|s| s.crew.between(60..70) & s.name.eq("Erebus")),
            Some("ByCrew with rows().crew(…)"),
        ),
        (
            ships()
                .filter(|s| s.crew.eq(60) & s.harbour.ne("Hull"))
                .filter(|s| s.name.eq("Erebus")),
            Some("ByCrew with rows().crew(…).name(…)"),
        ),
        (
            ships().filter(|s| s.number.ge(7)),
            Some("ByNumber with rows().number(…)"),
        ),
        // An escaped part has no ranges.
        (
            ships().filter(|s| s.harbour.eq("Hull")),
            Some("ByHarbour with rows().harbour(…)"),
        ),
        (ships().filter(|s| s.harbour.ge("Hull")), None),
        // No leading part is given.
        (ships(), None),
        (ships().filter(|s| s.name.ne("Erebus")), None),
        (ships().filter(|s| !s.name.eq("Erebus")), None),
        (
            ships().filter(|s| s.name.eq("Erebus") | s.crew.eq(60)),
            None,
        ),
        // The query itself reads a range.
        (
            ships()
                .rows(Ship::rows().number(1..9))
                .filter(|s| s.name.eq("Erebus")),
            None,
        ),
        (
            ships().rows(Ship::rows()).filter(|s| s.name.eq("Erebus")),
            Some("ByTitle with rows().name(…)"),
        ),
        (
            table.query::<Ship>().filter(|s| s.name.eq("Erebus")),
            Some("ByTitle with partition(…) and rows().name(…)"),
        ),
        // Entries in other partitions answer for all of the table.
        (
            table.query::<Ship>().filter(|s| s.captain.eq("Ross")),
            Some("ByCaptain with partition(ByCaptain::partition(…)) and follow()"),
        ),
        (
            ships().filter(|s| s.captain.eq("Ross")),
            Some(
                "ByCaptain with partition(ByCaptain::partition(…)) and rows().fleet(…) and follow()",
            ),
        ),
        (ships().filter(|s| s.captain.ge("Ross")), None),
    ] {
        let explanation = query.explain().unwrap();
        let expected = expected.map(|calls| {
            let name = calls.split(' ').next().unwrap();
            format!("index: {name} would answer this: query {calls}")
        });
        let shown = explanation.to_string();
        let line = shown.lines().find(|line| line.starts_with("index: "));
        assert_eq!(line, expected.as_deref(), "{query:?}");
        assert_eq!(explanation.index().is_some(), expected.is_some());
    }
}

/// What is advised is a query of the same entities, and reads no others.
#[tokio::test]
async fn the_query_that_explain_advises_reads_a_range() {
    let server = TableServer::in_process();
    let table = client_with(&server, |builder| builder).table("Employees");
    table.create_table().await.unwrap();
    for id in 1..=20 {
        let email = format!("{id:02}@contoso.com");
        let name = if id < 4 { "Hopper" } else { "Doe" };
        let employee = Employee::new(id, name, Some(&email));
        table.insert(&employee).await.unwrap();
    }
    let sales = || table.query::<Employee>().partition("Sales");
    let by_name = sales().filter(|e| e.last_name.eq("Hopper") & e.age.gt(30));
    let by_email = sales().filter(|e| e.email.between("05".."11"));
    for (scan, index) in [(&by_name, "ByName"), (&by_email, "ByEmail")] {
        assert_eq!(scan.explain().unwrap().index(), Some(index));
    }
    let of_name = table.query::<ByName>().partition("Sales");
    let of_name = of_name.rows(ByName::rows().last_name("Hopper"));
    let of_name = of_name.filter(|e| e.age.gt(30));
    let of_email = table.query::<ByEmail>().partition("Sales");
    let of_email = of_email.rows(ByEmail::rows().email("05".."11"));
    assert_range(&of_name);
    assert_range(&of_email);
    let ids = of_name.select(|e| e.id).collect().await.unwrap();
    let scanned = by_name.collect().await.unwrap();
    assert_eq!(ids, scanned.iter().map(|e| e.id).collect::<Vec<_>>());
    let ids = of_email.select(|e| e.id).collect().await.unwrap();
    let scanned = by_email.collect().await.unwrap();
    assert_eq!(ids, scanned.iter().map(|e| e.id).collect::<Vec<_>>());
}

fn assert_range<E: TableEntity>(query: &QueryEntities<E>) {
    let explanation = query.explain().unwrap();
    assert_eq!(explanation.access(), AccessClass::RowRange, "{explanation}");
    assert_eq!(explanation.index(), None);
}

#[tokio::test]
async fn a_denied_scan_names_the_index() {
    let server = TableServer::in_process();
    let table = client_with(&server, TableServiceClientBuilder::deny_scans).table("Employees");
    let message = async |query: QueryEntities<Employee>| {
        let error = query.collect().await.unwrap_err();
        error.to_string()
    };
    let employees = || table.query::<Employee>();
    let by_email = message(employees().filter(|e| e.email.eq("ada@contoso.com"))).await;
    let expected = "which this client refuses: the index ByEmail would answer this: query ByEmail with partition(…) and rows().email(…)";
    assert!(by_email.contains(expected), "{by_email}");
    let by_age = message(employees().filter(|e| e.age.eq(36))).await;
    assert!(
        by_age.contains("which this client refuses: name the partition"),
        "{by_age}"
    );
    assert_eq!(server.journal().requests().count(), 0);
}
