//! Pages of the entities that entries of an index lead to.

use std::sync::{Arc, Mutex};

use harness::Subject;
use harness::company::indexed::{ByEmail, ByName, Employee};
use tablesdk::action::QueryEntities;
use tablesdk::index::IndexEntry;
use tablesdk::{DynamicEntity, ETag, ErrorKind, RetryPolicy, TableClient, TableEntity};
use tablesdk_server::testing::{Fault, Op};

use super::on_both_transports;

/// An employee who is found in every department.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(
    OfCity,
    partition_key = "city_{city}",
    row_key = "of_{department}_{id:06}"
))]
struct Resident {
    department: String,
    id: u32,
    city: String,
}

/// Employees 1 to 12, of whom another program has deleted some and their entries not.
async fn employees(table: &TableClient) -> Vec<u32> {
    for id in 1..=12 {
        let email = format!("{id:02}@contoso.com");
        let employee = Employee::new(id, "Doe", Some(&email));
        table.insert(&employee).await.unwrap();
    }
    for deleted in [3, 5, 6, 12] {
        let key = format!("empid_{deleted:06}");
        assert!(table.delete(("Sales", key.as_str())).await.unwrap());
    }
    vec![1, 2, 4, 7, 8, 9, 10, 11]
}

fn by_email(table: &TableClient) -> QueryEntities<ByEmail> {
    table.query::<ByEmail>().partition("Sales")
}

/// The ids on each page.
async fn pages<I: IndexEntry>(
    query: impl Fn() -> QueryEntities<I>,
    id: impl Fn(&I::Entity) -> u32,
) -> Vec<Vec<u32>> {
    let (mut pages, mut next) = (Vec::new(), None::<String>);
    loop {
        let page = query().follow().page_after(next.as_deref()).await.unwrap();
        let page = page.map(|entity| id(&entity));
        pages.push(page.items);
        match page.next {
            Some(token) => next = Some(token.to_string()),
            None => return pages,
        }
    }
}

on_both_transports! {
    async fn pages_of_entries_lead_to_each_entity_once(subject: Subject) {
        let table = subject.table().await;
        let expected = employees(&table).await;
        for size in [1, 2, 5, 50] {
            let taken = pages(|| by_email(&table).take(size), |e| e.id).await;
            assert_eq!(taken.concat(), expected, "{size}");
            let sized = pages(|| by_email(&table).page_size(size), |e| e.id).await;
            assert_eq!(sized.concat(), expected, "{size}");
        }
        // Stale entries count, and are left out.
        let taken = pages(|| by_email(&table).take(5), |e| e.id).await;
        assert_eq!(taken, [vec![1, 2, 4], vec![7, 8, 9, 10], vec![11]]);
        let taken = pages(|| by_email(&table).take(2), |e| e.id).await;
        assert!(taken[2].is_empty(), "{taken:?}");
        for id in 1..=7 {
            let department = format!("D{}", id % 3);
            let resident = Resident { department, id, city: "Leeds".into() };
            table.insert(&resident).await.unwrap();
        }
        assert!(table.delete(("D1", "empid_000004")).await.unwrap());
        let leeds = || table.query::<OfCity>().partition(OfCity::partition("Leeds")).take(2);
        let of_leeds = pages(leeds, |e| e.id).await;
        assert_eq!(of_leeds, [vec![3, 6], vec![1], vec![7, 2], vec![5]]);
    }

    async fn a_token_is_that_of_the_query_of_the_entries(subject: Subject) {
        let table = subject.table().await;
        employees(&table).await;
        let followed = by_email(&table).take(2).follow().page(None).await.unwrap();
        let entries = by_email(&table).take(2).page(None).await.unwrap();
        assert_eq!((followed.items.len(), &followed.next), (2, &entries.next));
        let second = by_email(&table).take(1).page(followed.next.clone()).await.unwrap();
        assert_eq!(second.items[0].id, 3, "the stale entry");

        let by_name = table.query::<ByName>().partition("Sales").follow().page(followed.next).await;
        let error = by_name.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        assert!(error.to_string().contains("a query of another table, filter or projection"), "{error}");
        let error = by_email(&table).follow().page_after(Some("x")).await.unwrap_err();
        assert!(error.to_string().contains("not a page token"), "{error}");
        let first = by_email(&table).take(1).follow().page_after(Some("")).await.unwrap();
        assert_eq!(first.items[0].id, 1);
    }

    async fn an_entity_that_cannot_be_read_is_an_error_or_left_out(subject: Subject) {
        let table = subject.table().await;
        employees(&table).await;
        let damaged = DynamicEntity::new("Sales", "empid_000002").with("Age", "old");
        table.merge_if(&damaged, ETag::ANY).await.unwrap();
        let error = by_email(&table).take(4).follow().page(None).await.unwrap_err();
        assert_eq!((error.kind(), error.key().unwrap().row_key().as_str()), (ErrorKind::Data, "empid_000002"));
        let next = by_email(&table).take(4).follow().page_after(error.next_page()).await.unwrap();
        assert_eq!(next.map(|e| e.id).items, [7, 8]);

        let skipped = Arc::new(Mutex::new(Vec::new()));
        let readable = || {
            let skipped = Arc::clone(&skipped);
            let skip = move |error: tablesdk::Error| skipped.lock().unwrap().push(error.key().unwrap().to_string());
            by_email(&table).skip_unreadable(skip).follow()
        };
        let page = readable().page(None).await.unwrap();
        assert_eq!(page.map(|e| e.id).items, [1, 4, 7, 8, 9, 10, 11]);
        assert_eq!(readable().collect().await.unwrap().len(), 7);
        let skipped = skipped.lock().unwrap();
        assert_eq!(skipped.len(), 2);
        assert!(skipped.iter().all(|key| key.contains("empid_000002")), "{skipped:?}");
    }
}

/// The page is read again with the token that it was asked for: none is lost.
#[tokio::test(start_paused = true)]
async fn a_page_with_an_entity_that_was_not_read_has_no_token() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    let expected = employees(&table).await;
    let rule = faults.on(Op::QueryEntity).nth(2).inject(Fault::reset());
    let error = by_email(&table)
        .take(4)
        .follow()
        .page(None)
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.next_page()),
        (ErrorKind::Transport, None)
    );
    rule.remove();
    let read = pages(|| by_email(&table).take(4), |e| e.id).await;
    assert_eq!(read.concat(), expected);
}
