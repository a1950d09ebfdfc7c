//! Verbs that are composed of others: reads of many keys, read-modify-write, patches of single
//! properties, and the short forms of queries (`count`, `exists`, `first`, `one`).

use std::time::Duration;

use harness::Subject;
use harness::outcome::{Found, found};
use tablesdk::{DynamicEntity, ErrorKind, RetryPolicy, Stored, Value};
use tablesdk_server::testing::{Fault, Op};
use tokio::time::Instant;

use crate::{Employee, on_both_transports};

fn key() -> tablesdk::key::Key<Employee> {
    Employee::key("Sales", "1")
}

on_both_transports! {
    async fn modify_keeps_properties_without_a_field(subject: Subject) {
        let table = subject.table().await;
        let ada = Employee { email: Some("ada@contoso.com".into()), ..Employee::new("1", "Ada", 1) };
        let with_badge = DynamicEntity::from_entity(&ada).unwrap().with("Badge", i64::MAX);
        table.insert(&with_badge).await.unwrap();
        table.patch(key()).set(|e| e.age, 36).set(|e| e.age, 37).await.unwrap();
        let changed = table.modify(key(), |e| {
            e.age += 1;
            e.email = None;
            Ok(())
        }).await.unwrap();
        assert_eq!(changed.age, 38);
        let seen = table.get::<DynamicEntity>(("Sales", "1")).await.unwrap().unwrap();
        let get = |name| seen.properties().get(name);
        assert_eq!((get("Badge"), get("Email")), (Some(&Value::Int64(i64::MAX)), None));
        assert_eq!(seen.etag(), changed.etag());
    }

    async fn modify_reports_why_it_changed_nothing(subject: Subject) {
        let table = subject.table().await;
        let called = |result: Result<(), &'static str>| move |e: &mut Employee| {
            e.age = 99;
            result.map_err(Into::into)
        };
        let error = table.modify(key(), called(Ok(()))).await.unwrap_err();
        assert!(error.is_not_found(), "{error:?}");
        table.insert(&Employee::new("1", "Ada", 0)).await.unwrap();
        let error = table.modify(key(), called(Err("too late"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Aborted);
        assert_eq!(error.attempts(), 1, "the read");
        assert!(format!("{error:?}").ends_with("the closure returned an error: too late"), "{error:?}");
        let error = table.modify(key(), called(Ok(()))).rounds(0).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let moved = |e: &mut Employee| {
            e.id.push('x');
            Ok(())
        };
        let error = table.modify(key(), moved).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert_eq!(table.get(key()).await.unwrap().unwrap().age, 0);
    }

    async fn a_patch_needs_an_entity_and_a_value(subject: Subject) {
        let table = subject.table().await;
        let error = table.patch(key()).set(|e| e.age, 1).await.unwrap_err();
        assert!(error.is_not_found(), "{error:?}");
        let error = table.patch(key()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let error = table.patch(key()).set(|e| e.id, "2").await.unwrap_err();
        assert!(format!("{error:?}").contains("`RowKey` is part of the key"), "{error:?}");
        let error = table.patch(key()).set(|e| e.name, "x".repeat(40_000)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
    }

    async fn a_page_token_fits_its_own_query_only(subject: Subject) {
        let table = subject.table().await;
        for id in 0..30 {
            table.insert(&Employee::new(&format!("{id:02}"), "Ada", id)).await.unwrap();
        }
        let query = || table.query::<Employee>().filter(|e| e.age.ge(10));
        for (page, count) in [(query().page_size(7), 7), (query().take(7), 7), (query().take(8).page_size(3), 8)] {
            assert_eq!(page.page(None).await.unwrap().items.len(), count);
        }
        let token = query().page_size(7).page(None).await.unwrap().next.unwrap();
        let rest = query().page(token.to_string().parse().ok()).await.unwrap();
        assert_eq!((rest.items[0].age, rest.items.len()), (17, 13));
        let other = subject.service.table("Others");
        for error in [
            query().select(|e| e.age).page(token.clone()).await.unwrap_err(),
            query().filter(|e| e.age.ge(11)).page(token.clone()).await.unwrap_err(),
            other.query::<Employee>().filter(|e| e.age.ge(10)).page(token).await.unwrap_err(),
            query().take(0).page(None).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
        }
    }

    async fn count_exists_first_and_one_read_a_query(subject: Subject) {
        let table = subject.table().await;
        let query = || table.query::<Employee>().filter(|e| e.age.ge(10));
        assert_eq!(query().count().await.unwrap(), 0);
        assert!(!query().exists().await.unwrap());
        assert!(query().first().await.unwrap().is_none());
        assert!(query().one().await.unwrap().is_none());
        for id in 0..30 {
            table.insert(&Employee::new(&format!("{id:02}"), "Ada", id)).await.unwrap();
        }
        assert_eq!(query().page_size(7).count().await.unwrap(), 20);
        assert_eq!(query().take(5).count().await.unwrap(), 5);
        assert!(query().exists().await.unwrap());
        assert!(!query().take(0).exists().await.unwrap());
        assert_eq!(query().first().await.unwrap().unwrap().age, 10);
        let error = query().one().await.unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::NotUnique, 1), "{error:?}");
        let error = query().page_size(1).one().await.unwrap_err();
        assert_eq!((error.attempts(), error.table()), (2, Some(table.name())), "{error:?}");
        let one = query().filter(|e| e.age.eq(12)).select(|e| e.id);
        assert_eq!(one.one().await.unwrap().as_deref(), Some("12"));
        assert_eq!(query().take(1).one().await.unwrap().unwrap().age, 10);
    }
}

#[tokio::test(start_paused = true)]
async fn get_many_keeps_the_order_and_the_concurrency() {
    let (subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    for id in ["1", "3", "5"] {
        table.insert(&Employee::new(id, id, 1)).await.unwrap();
    }
    let slow = Fault::delay(Duration::from_secs(1));
    faults.on(Op::QueryEntity).inject(slow);
    let start = Instant::now();
    let keys = (1..=6).map(|id| Employee::key("Sales", id.to_string()));
    let found = table.get_many(keys).concurrency(3).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 2, "three at a time");
    let name = |found: &Option<Stored<Employee>>| Some(found.as_ref()?.name.clone());
    let names: Vec<_> = found.iter().map(name).collect();
    let names: Vec<_> = names.iter().map(Option::as_deref).collect();
    assert_eq!(names, [Some("1"), None, Some("3"), None, Some("5"), None]);

    let none = Vec::<tablesdk::key::Key<Employee>>::new();
    assert!(table.get_many(none).await.unwrap().is_empty());
    let journal = subject.server().journal();
    for refused in [
        table.get_many([Employee::key("Sales", "1"), Employee::key("a/b", "1")]),
        table.get_many([Employee::key("Sales", "1")]).concurrency(0),
    ] {
        assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::Input);
    }
    assert!(journal.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn modify_whose_response_was_lost_is_ambiguous() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    table.insert(&Employee::new("1", "Ada", 0)).await.unwrap();
    faults.next(Op::UpdateEntity, Fault::lost_response());
    let modify = table.modify(key(), Employee::grow_older);
    assert_eq!(found(&modify.await.unwrap_err()), Found::Equal);
    assert_eq!(Employee::find(&table).await.unwrap().age, 1);
}
