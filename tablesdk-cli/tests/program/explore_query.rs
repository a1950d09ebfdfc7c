//! `explore` as a person asks for entities: what is not valid, and what a scan may cost.

use std::time::Duration;

use tablesdk::TableServiceClient;
use tablesdk_server::TableServer;
use tablesdk_server::testing::Op;

use crate::page::Page;
use crate::{fill, server};

#[tokio::test]
async fn a_table_that_was_read_whole_is_scanned_without_a_question_and_with_few_requests() {
    // Each entity is a response of its own.
    let server = TableServer::builder().max_query_time(Duration::ZERO);
    let server = server.start().await.unwrap();
    let account = server.connection_string();
    let service = TableServiceClient::from_connection_string(&account).unwrap();
    fill(&service, "People", 0).await;
    let page = Page::open(&[], &account).await;
    let journal = server.journal();
    let scan = "/t/People?filter=Age+eq+1";
    let get = async |path: &str| {
        journal.clear();
        let shown = page.get(path).await;
        let requests = journal.requests().op(Op::QueryEntities).count();
        (requests, shown.body.contains("names no partition"))
    };
    assert_eq!(get(scan).await, (0, true), "the table is not known yet");
    assert_eq!(get("/t/People?pk=p").await, (1, false));
    assert_eq!(get(scan).await, (0, true), "a partition is not the table");
    assert_eq!(get("/t/people").await, (1, false));
    assert_eq!(get(scan).await, (1, false));
    // The table grows.
    fill(&service, "People", 30).await;
    assert_eq!(get(scan).await, (5, false), "the page does not know it");
    get("/t/People").await;
    assert_eq!(get(scan).await, (0, true));
}

#[tokio::test]
async fn a_url_that_is_not_valid_is_answered_by_a_page_that_names_the_field() {
    let (_server, service, account) = server().await;
    fill(&service, "People", 1).await;
    let page = Page::open(&[], &account).await;
    for (path, status, text) in [
        ("/t/People?scan=x", 400, "scan: unknown variant"),
        ("/t/People?pk=a&pk=b", 400, "duplicate field `pk`"),
        ("/bench/requests?find=a&find=b", 400, "duplicate field"),
        ("/t/%ff", 400, "Invalid UTF-8 in `table`"),
        ("/t/People?from=x", 200, "from: "),
        ("/t/People?pk=%22x", 200, "No entity is found"),
    ] {
        let shown = page.get(path).await;
        assert_eq!(shown.status, status, "{path}: {shown:?}");
        assert!(shown.body.contains("<h1>"), "{path}: {shown:?}");
        assert!(shown.body.contains(text), "{path}: {shown:?}");
    }
    for (field, path) in [
        ("pk", "/t/People?pk=%22%5Cx%22"),
        ("rk", "/t/People?rk=.."),
        ("filter", "/t/People?filter=Age+ge"),
        ("filter", "/t/People?filter=Name+eq+Smith"),
    ] {
        let shown = page.get(path).await.body;
        assert_eq!(shown.matches("data-field").count(), 1, "{path}: {shown}");
        let mark = format!("data-field=\"{field}\"");
        assert!(shown.contains(&mark), "{path}: {shown}");
        assert!(shown.contains("Nothing was sent"), "{path}: {shown}");
    }
}
