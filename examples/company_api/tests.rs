//! The API against a server in the process of the test: no port, no mock, no sleep.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use futures::future::join_all;
use serde_json::{Value, json};
use tablesdk::{ErrorCode, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Fault;
use tower::ServiceExt as _;

use crate::api::routes;
use crate::model::Department;

const EMPLOYEES: &str = "/departments/Sales/employees";
const FIRST: &str = "/departments/Sales/employees/1";

/// The API over a new table with the department `Sales`, in pages of three.
async fn api() -> (Router, TableClient) {
    let server = TableServer::builder()
        .max_page_entities(3)
        .in_process()
        .unwrap();
    let table = TableServiceClient::in_process(&server).table("Company");
    table.create_table().await.unwrap();
    let api = routes(table.clone());
    let sales = json!({"name": "Sales"});
    let created = call(&api, "POST", "/departments", "", sales).await;
    assert_eq!(created.status, 201, "{}", created.body);
    (api, table)
}

struct Answer {
    status: u16,
    etag: String,
    retry_after: String,
    body: String,
}

async fn call(api: &Router, method: &str, uri: &str, if_match: &str, body: Value) -> Answer {
    let mut request = Request::builder().method(method).uri(uri);
    request = request.header(header::CONTENT_TYPE, "application/json");
    if !if_match.is_empty() {
        request = request.header(header::IF_MATCH, if_match);
    }
    let request = request.body(Body::from(body.to_string())).unwrap();
    let (parts, body) = api.clone().oneshot(request).await.unwrap().into_parts();
    let text = |name| {
        let value = parts.headers.get(name);
        value.map_or(String::new(), |it| it.to_str().unwrap().to_owned())
    };
    let body = to_bytes(body, 1 << 20).await.unwrap();
    Answer {
        status: parts.status.as_u16(),
        etag: text(header::ETAG),
        retry_after: text(header::RETRY_AFTER),
        body: String::from_utf8(body.into()).unwrap(),
    }
}

async fn fetch(api: &Router, uri: &str) -> Answer {
    call(api, "GET", uri, "", Value::Null).await
}

async fn hire(api: &Router, id: &str, email: &str) -> Answer {
    let ada = json!({"id": id, "name": "Ada", "email": email, "salary": 60_000.0});
    call(api, "POST", EMPLOYEES, "", ada).await
}

async fn headcount(table: &TableClient) -> i32 {
    let sales = table.get(Department::key("Sales")).await.unwrap();
    sales.unwrap().headcount
}

#[tokio::test]
async fn an_employee_is_found_by_id_and_by_email() {
    let (api, table) = api().await;
    assert_eq!(hire(&api, "1", "a/b@contoso.com").await.status, 201);
    let by_id = fetch(&api, FIRST).await;
    let by_email = fetch(&api, "/departments/Sales/emails/a%2Fb@contoso.com").await;
    assert_eq!((by_id.status, &by_id.body), (200, &by_email.body));
    assert_eq!((headcount(&table).await, by_id.etag), (1, by_email.etag));
}

#[tokio::test]
async fn a_taken_email_address_changes_nothing() {
    let (api, table) = api().await;
    hire(&api, "1", "ada@contoso.com").await;
    let second = hire(&api, "2", "ada@contoso.com").await;
    assert_eq!(
        (second.status, &*second.body),
        (409, "the e-mail address is taken")
    );
    let same_id = hire(&api, "1", "grace@contoso.com").await;
    assert_eq!((same_id.status, &*same_id.body), (409, "it exists already"));
    assert_eq!(headcount(&table).await, 1);
    assert_eq!(
        fetch(&api, "/departments/Sales/employees/2").await.status,
        404
    );
}

#[tokio::test]
async fn concurrent_hires_are_all_counted() {
    let (api, table) = api().await;
    let ids = ["1", "2", "3", "4", "5", "6", "7", "8"];
    for hired in join_all(ids.map(|id| hire(&api, id, id))).await {
        assert_eq!(hired.status, 201, "{}", hired.body);
    }
    assert_eq!(headcount(&table).await, 8);
}

#[tokio::test]
async fn a_change_needs_the_current_version() {
    let (api, table) = api().await;
    let hired = hire(&api, "1", "ada@contoso.com").await;
    let old = fetch(&api, FIRST).await;
    assert_eq!(hired.etag, old.etag);
    let raise = json!({"salary": 65_000.0});
    let patch = async |etag: &str| call(&api, "PATCH", FIRST, etag, raise.clone()).await;
    let delete = async |etag: &str| call(&api, "DELETE", FIRST, etag, Value::Null).await;
    assert_eq!(patch("").await.status, 428);
    assert_eq!(patch("v1").await.status, 400);
    let new = patch(&old.etag).await;
    assert_eq!(new.status, 200, "{}", new.body);
    assert_eq!(patch(&old.etag).await.status, 412);
    assert_eq!(delete(&old.etag).await.status, 412);
    assert_eq!(delete(&new.etag).await.status, 204);
    assert_eq!(headcount(&table).await, 0);
    assert_eq!(hire(&api, "2", "ada@contoso.com").await.status, 201);
}

#[tokio::test]
async fn a_star_stands_for_any_version_that_exists() {
    let (api, table) = api().await;
    let any = async |method: &str| {
        let answer = call(&api, method, FIRST, "*", json!({"salary": 65_000.0})).await;
        answer.status
    };
    assert_eq!((any("PATCH").await, any("DELETE").await), (404, 404));
    hire(&api, "1", "ada@contoso.com").await;
    assert_eq!(any("PATCH").await, 200);
    let ada: Value = serde_json::from_str(&fetch(&api, FIRST).await.body).unwrap();
    assert_eq!(ada["salary"], 65_000.0);
    assert_eq!((any("DELETE").await, headcount(&table).await), (204, 0));
}

#[tokio::test]
async fn the_index_follows_a_changed_email_address() {
    let (api, _) = api().await;
    hire(&api, "1", "ada@contoso.com").await;
    hire(&api, "2", "grace@contoso.com").await;
    let change = async |email: &str| {
        let etag = fetch(&api, FIRST).await.etag;
        call(&api, "PATCH", FIRST, &etag, json!({ "email": email })).await
    };
    let taken = change("grace@contoso.com").await;
    assert_eq!(
        (taken.status, &*taken.body),
        (409, "the e-mail address is taken")
    );
    let changed = change("lovelace@contoso.com").await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    let find = async |email: &str| {
        let uri = format!("/departments/Sales/emails/{email}");
        fetch(&api, &uri).await
    };
    let found = find("lovelace@contoso.com").await;
    assert_eq!((found.status, found.etag), (200, changed.etag));
    assert_eq!(find("ada@contoso.com").await.status, 404);
    // It is free again.
    assert_eq!(hire(&api, "3", "ada@contoso.com").await.status, 201);
}

#[tokio::test]
async fn each_page_starts_where_the_previous_one_ended() {
    let (api, _) = api().await;
    for id in ["1", "2", "3", "4", "5", "6", "7"] {
        hire(&api, id, id).await;
    }
    let (mut ids, mut next) = (String::new(), String::new());
    loop {
        let answer = fetch(&api, &format!("{EMPLOYEES}?next={next}")).await;
        let page: Value = serde_json::from_str(&answer.body).unwrap();
        let items = page["items"].as_array().unwrap().iter();
        ids.extend(items.map(|item| item["id"].as_str().unwrap()));
        match page["next"].as_str() {
            Some(token) => token.clone_into(&mut next),
            None => break,
        }
    }
    assert_eq!(ids, "1234567");
}

#[tokio::test]
async fn a_bad_request_says_what_is_wrong() {
    let (api, _) = api().await;
    let key = fetch(&api, "/departments/a%23b/employees/1").await;
    assert_eq!(key.status, 400);
    assert!(key.body.contains("partition key \"a#b\""), "{}", key.body);
    let token = fetch(&api, &format!("{EMPLOYEES}?next=x")).await;
    assert_eq!(token.status, 400);
}

#[tokio::test]
async fn a_request_sets_neither_the_headcount_nor_another_department() {
    let (api, table) = api().await;
    let research = json!({"name": "Research", "headcount": 1_000});
    let created = call(&api, "POST", "/departments", "", research).await;
    assert_eq!(created.status, 201, "{}", created.body);
    let stored = table.get(Department::key("Research")).await.unwrap();
    assert_eq!(stored.unwrap().headcount, 0);

    let mut ada = json!({"department": "Research", "name": "Ada", "email": "ada@contoso.com", "salary": 60_000.0});
    let without_id = call(&api, "POST", EMPLOYEES, "", ada.clone()).await;
    assert_eq!(without_id.status, 422, "{}", without_id.body);
    ada["id"] = json!("1");
    assert_eq!(call(&api, "POST", EMPLOYEES, "", ada).await.status, 201);
    assert_eq!(fetch(&api, FIRST).await.status, 200);
    let elsewhere = fetch(&api, "/departments/Research/employees/1").await;
    assert_eq!(elsewhere.status, 404);
}

#[tokio::test]
async fn a_missing_table_is_not_a_missing_employee() {
    let service = TableServiceClient::in_process(&TableServer::in_process());
    let api = routes(service.table("Nowhere"));
    let missing = fetch(&api, FIRST).await;
    assert_eq!(
        (missing.status, &*missing.body),
        (500, "the request failed")
    );
}

#[tokio::test(start_paused = true)]
async fn a_table_that_cannot_be_reached_is_reported_as_such() {
    let server = TableServer::in_process();
    let table = TableServiceClient::in_process(&server).table("Company");
    let api = routes(table);
    for (fault, seconds) in [
        (Fault::reset(), "1"),
        (Fault::error(ErrorCode::OperationTimedOut), "1"),
        (Fault::error(ErrorCode::ServerBusy), "1"),
        (
            Fault::error(ErrorCode::ServerBusy).retry_after(Duration::from_millis(90_500)),
            "91",
        ),
    ] {
        let rule = server.faults().on_any().inject(fault);
        let answer = fetch(&api, FIRST).await;
        assert_eq!((answer.status, &*answer.retry_after), (503, seconds));
        assert_eq!(answer.body, "try again later");
        rule.remove();
    }
}

/// Neither the account, the table, nor the keys of other entities.
#[tokio::test]
async fn no_response_shows_where_the_data_is() {
    let (api, table) = api().await;
    hire(&api, "1", "ada@contoso.com").await;
    let sales = json!({"name": "Sales"});
    let answers = [
        call(&api, "POST", "/departments", "", sales).await,
        fetch(&api, "/departments/a%23b/employees/1").await,
        fetch(&api, &format!("{EMPLOYEES}?next=x")).await,
        hire(&api, "1", "grace@contoso.com").await,
        call(&api, "PATCH", FIRST, "W/\"x\"", json!({"salary": 1.0})).await,
        call(&api, "DELETE", FIRST, "W/\"x\"", Value::Null).await,
        fetch(&api, "/departments/Sales/employees/2").await,
    ];
    assert_eq!(
        answers.each_ref().map(|answer| answer.status),
        [409, 400, 400, 409, 412, 412, 404]
    );
    for answer in answers {
        for place in [
            "devstoreaccount1",
            table.name(),
            "in-process",
            "employee_",
            "email_",
        ] {
            assert!(!answer.body.contains(place), "{}", answer.body);
        }
    }
}
