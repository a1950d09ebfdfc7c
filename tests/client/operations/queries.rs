//! Queries: which entities they find, which properties they read, and how they page.

use futures::TryStreamExt as _;
use tablesdk::TableClient;

use crate::{Employee, on_both_transports};

async fn fill(table: &TableClient, count: i32) {
    for age in 0..count {
        let email = (age % 2 == 0).then(|| format!("{age}@contoso.com"));
        let employee = Employee {
            email,
            ..Employee::new(&format!("{age:03}"), &format!("name {age}"), age)
        };
        table.insert(&employee).await.unwrap();
    }
}

on_both_transports! {
    async fn a_column_is_compared_through_a_reference(subject: Subject) {
        let table = subject.table().await;
        fill(&table, 3).await;
        let found = table.query::<Employee>().filter(|e| {
            let columns = [e.age, e.age];
            let conditions = columns.iter().zip([0, 2]).map(|(column, age)| column.eq(age));
            conditions.reduce(|either, or| either | or).unwrap()
        });
        assert_eq!(found.count().await.unwrap(), 2);
    }

    async fn take_counts_items_and_not_pages(subject: Subject) {
        let table = subject.table().await;
        fill(&table, 25).await;
        for (take, page_size) in [(0, 10), (7, 10), (10, 10), (17, 5), (25, 24), (40, 1), (40, 1000)] {
            let query = table.query::<Employee>().take(take).page_size(page_size);
            let ages = query.select(|e| e.age).collect().await.unwrap();
            assert!(ages.into_iter().eq(0..25.min(i32::try_from(take).unwrap())), "{take} {page_size}");
        }
    }

    async fn filters_are_combined_with_and(subject: Subject) {
        let table = subject.table().await;
        fill(&table, 10).await;
        table.insert(&Employee { department: "Other".into(), ..Employee::new("x", "name 3", 3) }).await.unwrap();
        let ages = |query: tablesdk::action::QueryEntities<Employee>| async {
            query.select(|e| e.age).collect().await.unwrap()
        };
        let all = || table.query::<Employee>();
        assert_eq!(ages(all().filter(|e| e.age.ge(3) & e.age.lt(5))).await, [3, 3, 4]);
        assert_eq!(ages(all().partition("Sales").filter(|e| e.age.ge(3)).filter(|e| e.age.lt(5))).await, [3, 4]);
        assert_eq!(ages(all().partition(Employee::partition("Other"))).await, [3]);
        assert_eq!(ages(all().filter(|e| !(e.age.gt(1)) | e.age.is_in([7, 9]))).await, [0, 1, 7, 9]);
        assert_eq!(ages(all().filter(|e| e.name.starts_with("name 3"))).await, [3, 3]);
        assert_eq!(ages(all().filter(|e| e.id.starts_with("00") & e.age.le(1))).await, [0, 1]);
        assert_eq!(ages(all().filter(|e| e.email.eq("4@contoso.com"))).await, [4]);
        assert_eq!(ages(all().filter(|e| e.email.ne("4@contoso.com") & e.age.lt(5))).await, [0, 2]);
        assert_eq!(ages(all().odata("Age ge 8 or Name eq 'name 0'").partition("Sales")).await, [0, 8, 9]);
    }

    async fn select_returns_columns(subject: Subject) {
        let table = subject.table().await;
        fill(&table, 2).await;
        let query = table.query::<Employee>().select(|e| (e.id, e.email, e.age));
        let rows = query.collect().await.unwrap();
        assert_eq!(rows, [("000".to_owned(), Some("0@contoso.com".to_owned()), 0), ("001".to_owned(), None, 1)]);
    }

    async fn a_stream_can_be_sent_to_another_task(subject: Subject) {
        let table = subject.table().await;
        fill(&table, 5).await;
        let mut rows = table.query::<Employee>().page_size(2).stream();
        let first = rows.try_next().await.unwrap().unwrap();
        let rest = tokio::spawn(rows.try_collect::<Vec<_>>()).await.unwrap();
        assert_eq!((first.age, rest.unwrap().len()), (0, 4));
    }
}
