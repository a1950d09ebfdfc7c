//! `explain` and a denied scan name the index that would answer a query.

use harness::company::indexed::{ByEmail, ByName, Employee};
use harness::{Subject, client_with};
use tablesdk::action::QueryEntities;
use tablesdk::query::AccessClass;
use tablesdk::{TableEntity, TableServiceClientBuilder};
use tablesdk_server::TableServer;

#[derive(Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{fleet}", row_key = "ship_{number:04}")]
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
    let table = Subject::in_process().service.table("Ships");
    let all = || table.query::<Ship>();
    let ships = || all().partition("North");
    let erebus = || ships().filter(|s| s.name.eq("Erebus"));
    for (expected, queries) in [
        // A value of the leading part, or a range of the last.
        (
            "ByTitle with rows().name(…)",
            vec![
                erebus(),
                erebus().rows(Ship::rows()),
                ships().filter(|s| s.name.starts_with("E")),
                ships().odata("Title lt 'F'"),
            ],
        ),
        // A range of a part of fixed width; what follows it does not narrow the range.
        (
            "ByCrew with rows().crew(…)",
            vec![erebus().filter(|s| s.crew.between(60..70))],
        ),
        (
            "ByCrew with rows().crew(…).name(…)",
            vec![erebus().filter(|s| s.crew.eq(60) & s.harbour.ne("Hull"))],
        ),
        (
            "ByNumber with rows().number(…)",
            vec![ships().filter(|s| s.number.ge(7))],
        ),
        (
            "ByHarbour with rows().harbour(…)",
            vec![ships().filter(|s| s.harbour.eq("Hull"))],
        ),
        (
            "ByTitle with partition(…) and rows().name(…)",
            vec![all().filter(|s| s.name.eq("Erebus"))],
        ),
        // Entries in other partitions answer for all of the table.
        (
            "ByCaptain with partition(ByCaptain::partition(…)) and follow()",
            vec![all().filter(|s| s.captain.eq("Ross"))],
        ),
        (
            "ByCaptain with partition(ByCaptain::partition(…)) and rows().fleet(…) and follow()",
            vec![ships().filter(|s| s.captain.eq("Ross"))],
        ),
        (
            "",
            vec![
                // No leading part is given.
                ships(),
                ships().filter(|s| s.name.ne("Erebus")),
                ships().filter(|s| !s.name.eq("Erebus")),
                ships().filter(|s| s.name.eq("Erebus") | s.crew.eq(60)),
                // The query itself reads a range.
                erebus().rows(Ship::rows().number(1..9)),
                // An escaped part has no ranges, and neither has a partition key.
                ships().filter(|s| s.harbour.ge("Hull")),
                ships().filter(|s| s.captain.ge("Ross")),
            ],
        ),
    ] {
        for query in queries {
            let explanation = query.explain().unwrap();
            let index = expected.split(' ').next().filter(|name| !name.is_empty());
            assert_eq!(explanation.index(), index, "{query:?}");
            let shown = explanation.to_string();
            let line = shown.lines().find(|line| line.starts_with("index: "));
            let expected =
                index.map(|name| format!("index: {name} would answer this: query {expected}"));
            assert_eq!(line, expected.as_deref(), "{query:?}");
        }
    }
}

/// The advised query returns the same entities, and reads no others.
#[tokio::test]
async fn the_query_that_explain_advises_reads_a_range() {
    let subject = Subject::in_process();
    let table = subject.table().await;
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
    let scanned = by_name.select(|e| e.id).collect().await.unwrap();
    let found = of_name.select(|e| e.id).collect().await.unwrap();
    assert_eq!((found.len(), found), (3, scanned));
    let scanned = by_email.select(|e| e.id).collect().await.unwrap();
    let found = of_email.select(|e| e.id).collect().await.unwrap();
    assert_eq!((found.len(), found), (6, scanned));
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
    let employees = || table.query::<Employee>();
    for (query, refusal) in [
        (
            employees().filter(|e| e.email.eq("ada@contoso.com")),
            "the index ByEmail would answer this: query ByEmail with partition(…) and rows().email(…)",
        ),
        (employees().filter(|e| e.age.eq(36)), "name the partition"),
    ] {
        let error = query.collect().await.unwrap_err().to_string();
        let refusal = format!("which this client refuses: {refusal}");
        assert!(error.contains(&refusal), "{error}");
    }
    assert_eq!(server.journal().requests().count(), 0);
}
