//! Entities that cannot be read: each has its own error, and does not hide the others.

use std::sync::{Arc, Mutex};

use futures::{StreamExt as _, TryStreamExt as _};
use tablesdk::action::{OperationReport, QueryEntities};
use tablesdk::query::EntityStream;
use tablesdk::{DynamicEntity, Error, ErrorCode, ErrorKind, RetryPolicy, Stored, TableClient};
use tablesdk_server::testing::{Fault, Op};

use crate::{Employee, on_both_transports};

/// Five employees in each partition. In the entities with odd ids, the age is a string.
async fn fill(table: &TableClient, partitions: &[&str]) {
    for partition in partitions {
        for id in 0..5 {
            let entity = DynamicEntity::new(*partition, id.to_string()).with("Name", "Ada");
            let entity = match id % 2 {
                0 => entity.with("Age", id),
                _ => entity.with("Age", "old"),
            };
            table.insert(&entity).await.unwrap();
        }
    }
}

/// The outcomes of a stream: `Ok` or `Err`, each with the row key.
async fn outcomes(stream: EntityStream<Stored<Employee>>) -> Vec<Result<String, String>> {
    let outcomes = stream.map(|item| match item {
        Ok(employee) => Ok(employee.id.clone()),
        Err(error) => {
            assert_bad(&error);
            Err(error.key().unwrap().row_key().as_str().to_owned())
        }
    });
    outcomes.collect().await
}

#[track_caller]
fn assert_bad(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Data, "{error:?}");
    assert_eq!(error.attempts(), 1);
    let text = format!("{error:?}");
    assert!(
        text.contains("property \"Age\": expected Edm.Int32, found Edm.String"),
        "{text}"
    );
}

/// `Ok` for each digit, and `Err` for each digit after `!`.
fn expected(digits: &str) -> Vec<Result<String, String>> {
    let mut outcomes = Vec::new();
    let mut characters = digits.chars();
    while let Some(character) = characters.next() {
        outcomes.push(match character {
            '!' => Err(characters.next().unwrap().to_string()),
            digit => Ok(digit.to_string()),
        });
    }
    outcomes
}

on_both_transports! {
    async fn a_stream_continues_after_a_bad_entity(subject: Subject) {
        let table = subject.table().await;
        fill(&table, &["Sales"]).await;
        let query = || table.query::<Employee>().partition("Sales");
        assert_eq!(outcomes(query().stream()).await, expected("0!12!34"));
        for size in 1..7 {
            let query = || query().page_size(size);
            assert_eq!(outcomes(query().stream()).await, expected("0!12!34"), "{size}");
            assert_eq!(outcomes(query().prefetch().stream()).await, expected("0!12!34"), "{size}");
            assert_eq!(outcomes(query().take(4).stream()).await, expected("0!12!3"), "{size}");
        }
        let point = query().filter(|e| e.id.eq("1"));
        assert_eq!(outcomes(point.stream()).await, expected("!1"));
    }

    async fn a_single_result_fails_with_the_first_bad_entity(subject: Subject) {
        let table = subject.table().await;
        fill(&table, &["Sales"]).await;
        let query = || table.query::<Employee>().partition("Sales");
        let bad = || query().filter(|e| e.id.eq("1") | e.id.eq("9"));
        for error in [
            query().collect().await.unwrap_err(),
            bad().first().await.unwrap_err(),
            bad().one().await.unwrap_err(),
            query().values().collect().await.unwrap_err(),
            query().select(|e| e.age).collect().await.unwrap_err(),
            table.query::<Employee>().select(|e| e.age).collect().await.unwrap_err(),
            query().partitions(["Sales"]).collect().await.unwrap_err(),
            table.get(Employee::key("Sales", "1")).await.unwrap_err(),
            table.modify(Employee::key("Sales", "1"), |_| Ok(())).await.unwrap_err(),
            table.get_many([Employee::key("Sales", "0"), Employee::key("Sales", "1")]).await.unwrap_err(),
        ] {
            assert_bad(&error);
            assert_eq!(error.key().unwrap().row_key().as_str(), "1");
        }
        // These read no more than keys.
        assert_eq!(query().count().await.unwrap(), 5);
        assert!(bad().exists().await.unwrap());
        assert_eq!(query().select(|e| e.name).collect().await.unwrap().len(), 5);
        assert_eq!(query().delete_all().await.unwrap().progress().written, 5);
    }

    async fn a_page_with_a_bad_entity_has_a_token_to_go_on_from(subject: Subject) {
        let table = subject.table().await;
        fill(&table, &["Sales"]).await;
        let query = || table.query::<Employee>().partition("Sales").page_size(2);
        // The error of a page gives the token of the next one.
        let error = query().page(None).await.unwrap_err();
        assert_bad(&error);
        let error = query().page_after(error.next_page()).await.unwrap_err();
        assert_bad(&error);
        assert_eq!(error.key().unwrap().row_key().as_str(), "3");
        let page = query().page_after(error.next_page()).await.unwrap();
        assert_eq!((page.items[0].id.as_str(), page.next), ("4", None));
        // After the last page there is none.
        let error = query().page_size(1000).page(None).await.unwrap_err();
        assert_eq!(error.next_page(), None);

        // A page without its bad entities.
        let read = async |query: &dyn Fn() -> QueryEntities<Employee>| {
            let (mut pages, mut next) = (Vec::new(), String::new());
            loop {
                let page = query().page_after(Some(&next)).await.unwrap();
                pages.push(page.items.iter().map(|e| e.id.as_str()).collect::<String>());
                match page.next {
                    Some(token) => next = token.to_string(),
                    None => return pages,
                }
            }
        };
        let bad = Arc::new(Mutex::new(Vec::new()));
        let skipping = || {
            let bad = Arc::clone(&bad);
            table.query::<Employee>().partition("Sales").skip_unreadable(move |error| {
                assert_bad(&error);
                bad.lock().unwrap().push(error.key().unwrap().row_key().as_str().to_owned());
            })
        };
        assert_eq!(read(&|| skipping().page_size(2)).await, ["0", "2", "4"]);
        assert_eq!(*bad.lock().unwrap(), ["1", "3"]);
        // A page is full without them.
        assert_eq!(read(&|| skipping().take(2)).await, ["02", "4"]);
        assert_eq!(skipping().take(2).collect().await.unwrap().len(), 2);
        assert_eq!(skipping().values().collect().await.unwrap().len(), 3);
        assert_eq!(skipping().first().await.unwrap().unwrap().id, "0");
    }

    async fn a_parallel_query_continues_after_a_bad_entity(subject: Subject) {
        let table = subject.table().await;
        fill(&table, &["A", "B"]).await;
        let query = || table.query::<Employee>().page_size(2).partitions(["A", "B"]);
        assert_eq!(outcomes(query().in_order().stream()).await, expected("0!12!340!12!34"));
        assert_eq!(outcomes(query().in_order().take(7).stream()).await, expected("0!12!340!1"));
        let mut any_order = outcomes(query().stream()).await;
        any_order.sort();
        assert_eq!(any_order, expected("002244!1!1!3!3"));
        let skipping = query().skip_unreadable(|error| assert_bad(&error));
        assert_eq!(skipping.collect().await.unwrap().len(), 6);
    }

    async fn get_many_continues_after_a_bad_entity(subject: Subject) {
        let table = subject.table().await;
        fill(&table, &["Sales"]).await;
        let keys = ["0", "1", "9", "3", "4"].map(|id| Employee::key("Sales", id));
        let read: Vec<_> = table.get_many(keys).concurrency(2).stream().collect().await;
        let [Ok(Some(_)), Err(one), Ok(None), Err(three), Ok(Some(_))] = read.as_slice() else {
            panic!("{read:?}");
        };
        assert_bad(one);
        assert_eq!(three.key().unwrap().row_key().as_str(), "3");
    }

    async fn a_closure_that_fails_has_the_error_of_its_entity_alone(subject: Subject) {
        let table = subject.table().await;
        fill(&table, &["Sales"]).await;
        let ages = || table.query::<DynamicEntity>().partition("Sales").resolve(|entity| {
            Ok(entity.properties().read::<i32>("Age")?)
        });
        let read: Vec<_> = ages().page_size(2).stream().collect().await;
        let [Ok(0), Err(error), Ok(2), Err(_), Ok(4)] = read.as_slice() else {
            panic!("{read:?}");
        };
        assert_eq!((error.kind(), error.key().unwrap().row_key().as_str()), (ErrorKind::Aborted, "1"));
        assert_eq!(ages().skip_unreadable(|_| ()).collect().await.unwrap(), [0, 2, 4]);
        assert_eq!(ages().collect().await.unwrap_err().kind(), ErrorKind::Aborted);
    }
}

/// The requests of a table of five employees fail on demand, and the client reports to a hook.
#[tokio::test(start_paused = true)]
async fn other_errors_end_a_stream() {
    let (_subject, table, faults) = harness::Subject::with_table(RetryPolicy::none()).await;
    fill(&table, &["Sales"]).await;
    let query = || table.query::<Employee>().partition("Sales").page_size(2);
    let refused = Fault::error(ErrorCode::AuthorizationFailure);
    for (fault, kind) in [
        (Fault::reset(), ErrorKind::Transport),
        (refused, ErrorKind::Service),
    ] {
        for parallel in [false, true] {
            faults.on(Op::QueryEntities).nth(2).inject(fault.clone());
            let mut stream = if parallel {
                query().partitions(["Sales"]).stream()
            } else {
                query().stream()
            };
            assert_eq!(stream.try_next().await.unwrap().unwrap().id, "0");
            assert_bad(&stream.try_next().await.unwrap_err());
            let error = stream.try_next().await.unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(stream.try_next().await.unwrap().is_none());
            faults.clear();
        }
    }
}

#[tokio::test]
async fn the_report_of_a_query_has_the_error_of_a_bad_entity() {
    let server = tablesdk_server::TableServer::in_process();
    let reports = Arc::new(Mutex::new(Vec::<OperationReport>::new()));
    let hook = Arc::clone(&reports);
    let service = harness::client_with(&server, |builder| {
        builder.on_operation(move |report| hook.lock().unwrap().push(report.clone()))
    });
    let table = service.table("Tests");
    table.create_table().await.unwrap();
    fill(&table, &["Sales"]).await;
    reports.lock().unwrap().clear();
    let assert_report = |entities, pages, error| {
        let [report] = &std::mem::take(&mut *reports.lock().unwrap())[..] else {
            panic!("{reports:?}")
        };
        let counts = (report.entities, report.pages);
        assert_eq!(
            (counts, report.error.as_deref()),
            ((entities, pages), error)
        );
    };
    let query = || table.query::<Employee>().partition("Sales").page_size(2);
    assert_eq!(outcomes(query().stream()).await.len(), 5);
    assert_report(5, 3, Some("data"));
    query().collect().await.unwrap_err();
    assert_report(2, 1, Some("data"));
    query().page(None).await.unwrap_err();
    assert_report(2, 1, Some("data"));
    // What the program leaves out is no failure of the query.
    let skipping = query().skip_unreadable(|_| ());
    assert_eq!(skipping.collect().await.unwrap().len(), 3);
    assert_report(5, 3, None);
    query().take(1).collect().await.unwrap();
    assert_report(1, 1, None);
}
