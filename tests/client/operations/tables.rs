//! Creating, listing and deleting tables.

use std::time::Duration;

use harness::proxy::{Reply, foreign};
use harness::{Subject, client_with};
use tablesdk::query::PageToken;
use tablesdk::{ErrorCode, ErrorKind, RetryPolicy};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use crate::{Employee, on_both_transports};

on_both_transports! {
    async fn a_table_is_created_once(subject: Subject) {
        let table = subject.service.table("People");
        assert!(table.create_table().if_missing().await.unwrap());
        assert!(!table.create_table().if_missing().await.unwrap());
        let error = subject.service.table("PEOPLE").create_table().await.unwrap_err();
        assert_eq!(error.code(), Some(&ErrorCode::TableAlreadyExists));
    }

    async fn tables_are_listed_by_prefix_in_order(subject: Subject) {
        for name in ["beta", "Alpha2", "alpha1", "alpha3"] {
            subject.service.table(name).create_table().await.unwrap();
        }
        let all = subject.service.tables().collect().await.unwrap();
        assert_eq!(all, ["alpha1", "Alpha2", "alpha3", "beta"]);
        let some = subject.service.tables().starting_with("alpha").collect().await.unwrap();
        assert_eq!(some, ["alpha1", "alpha3"]);
    }

    async fn a_table_exists_or_not(subject: Subject) {
        let table = subject.service.table("People");
        assert!(!table.table_exists().await.unwrap());
        table.create_table().await.unwrap();
        assert!(table.table_exists().await.unwrap());
        assert!(table.delete_table().await.unwrap());
        assert!(!table.table_exists().await.unwrap());
        let error = subject.service.table("no table").table_exists().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
    }

    async fn tables_are_listed_page_by_page(subject: Subject) {
        let names: Vec<_> = (0..7).map(|index| format!("log{index}")).collect();
        for name in names.iter().map(String::as_str).chain(["other"]) {
            subject.service.table(name).create_table().await.unwrap();
        }
        let list = subject.service.tables().starting_with("log").page_size(3);
        assert_eq!(list.clone().collect().await.unwrap(), names);
        let mut found = Vec::new();
        let mut token: Option<PageToken> = None;
        loop {
            let page = list.clone().page(token).await.unwrap();
            assert!(page.items.len() <= 3);
            found.extend(page.items);
            // As a web service keeps it between two requests.
            token = match page.next {
                Some(next) => Some(next.to_string().parse().unwrap()),
                None => break,
            };
        }
        assert_eq!(found, names);
        let token = list.page(None).await.unwrap().next;
        let other = subject.service.tables().starting_with("x").page(token).await.unwrap_err();
        assert_eq!(other.kind(), ErrorKind::Input);
        for size in [0, 1001] {
            let list = subject.service.tables().page_size(size);
            assert_eq!(list.clone().collect().await.unwrap_err().kind(), ErrorKind::Input);
            assert_eq!(list.page(None).await.unwrap_err().kind(), ErrorKind::Input);
        }
    }

    async fn table_names_ignore_case(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::ada()).await.unwrap();
        let same = subject.service.table(table.name().to_uppercase());
        assert!(same.table_exists().await.unwrap());
        assert!(Employee::find(&same).await.is_some());
        table.insert(&Employee::new("2", "Grace", 50)).await.unwrap();
        let page = table.query::<Employee>().page_size(1).page(None).await.unwrap();
        let rest = same.query::<Employee>().page(page.next).await.unwrap();
        assert_eq!(rest.items[0].name, "Grace");
    }
}

#[tokio::test]
async fn more_tables_than_a_page_are_all_listed() {
    let subject = Subject::in_process();
    let service = &subject.service;
    for index in 0..1001 {
        let table = service.table(format!("table{index:04}"));
        table.create_table().await.unwrap();
    }
    assert_eq!(service.tables().collect().await.unwrap().len(), 1001);
}

#[tokio::test(start_paused = true)]
async fn create_table_waits_for_a_deletion() {
    let begin = tokio::time::Instant::now();
    let server = TableServer::builder()
        .deleted_table_name_hold(Duration::from_secs(40))
        .in_process()
        .unwrap();
    let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
    let table = service.table("Tests");
    table.create_table().await.unwrap();
    table.delete_table().await.unwrap();
    assert!(!table.table_exists().await.unwrap());

    // Only if the caller asks for it, and no longer than the caller allows.
    let being_deleted = Some(&ErrorCode::TableBeingDeleted);
    let error = table.create_table().await.unwrap_err();
    assert_eq!(error.code(), being_deleted);
    let error = table.create_table().if_missing().await.unwrap_err();
    assert_eq!(error.code(), being_deleted);
    let waited = tokio::time::Instant::now();
    let create = table.create_table().wait(Duration::from_secs(12));
    assert_eq!(create.await.unwrap_err().code(), being_deleted);
    // 1 + 2 + 3 + 4, and 5 more would be too many.
    assert_eq!(waited.elapsed().as_secs(), 10);

    let create = table.create_table().wait(Duration::from_secs(60));
    create.await.unwrap();
    let elapsed = begin.elapsed().as_secs();
    assert!((40..46).contains(&elapsed), "{elapsed}");
    assert!(table.table_exists().await.unwrap());

    table.delete_table().await.unwrap();
    let create = || table.create_table().if_missing().wait(Duration::MAX);
    assert!(create().await.unwrap());
    assert!(!create().await.unwrap());

    // Any other error ends the wait.
    let denied = Fault::error(ErrorCode::AuthorizationFailure);
    server.faults().on(Op::CreateTable).inject(denied);
    let error = table.create_table().wait(Duration::MAX).await.unwrap_err();
    assert!(error.is_denied());
}

#[tokio::test]
async fn a_response_of_a_proxy_is_not_about_tables() {
    let (subject, table, proxy) = Subject::behind_proxy(RetryPolicy::none()).await;
    let nowhere = subject.service.table("Nowhere");
    for (name, table, status, kind, exists) in [
        ("a missing table", nowhere, 200, ErrorKind::Response, false),
        ("a table", table, 404, ErrorKind::Service, true),
    ] {
        proxy.plan(Op::QueryTables, [Reply::Respond(foreign(status))]);
        let error = table.table_exists().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{name}");
        assert_eq!(table.table_exists().await.unwrap(), exists, "{name}");
    }
}
