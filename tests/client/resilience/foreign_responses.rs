//! The client's requests, byte for byte, and responses that the service should not send. A mock server receives and sends them.

use harness::client_with;
use harness::faults::SERVICE_HEADERS;
use tablesdk::transport::Backend;
use tablesdk::{ErrorKind, RetryPolicy, SharedKey, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::Employee;

async fn answering(response: ResponseTemplate) -> (MockServer, TableClient) {
    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(response)
        .mount(&server)
        .await;
    let service = TableServiceClient::builder(format!("{}/acct", server.uri()))
        .credential(SharedKey::new("acct", "c2VjcmV0").unwrap())
        .retry(RetryPolicy::none())
        .build()
        .unwrap();
    let table = service.table("People");
    (server, table)
}

/// Method, path with query, the headers of the operation, and the body, of the only request.
async fn sent(server: &MockServer) -> String {
    let requests = server.received_requests().await.unwrap();
    let [request] = requests.as_slice() else {
        panic!("{} requests", requests.len())
    };
    let query = request
        .url
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let mut text = format!("{} {}{query}\n", request.method, request.url.path());
    for name in [
        "accept",
        "content-type",
        "dataserviceversion",
        "if-match",
        "prefer",
        "x-http-method",
        "x-ms-version",
    ] {
        if let Some(value) = request.headers.get(name) {
            text += &format!("{name}: {}\n", value.to_str().unwrap());
        }
    }
    text + std::str::from_utf8(&request.body).unwrap()
}

/// With the headers that every response of the service has: a write takes no other success for one.
fn service_response(status: u16) -> ResponseTemplate {
    ResponseTemplate::new(status).append_headers(SERVICE_HEADERS)
}

fn no_content() -> ResponseTemplate {
    service_response(204).insert_header("ETag", "W/\"datetime'2024-03-15T10%3A20%3A30.5Z'\"")
}

fn ada() -> Employee {
    Employee {
        department: "O'Hare & co".into(),
        email: Some("ada@contoso.com".into()),
        ..Employee::ada()
    }
}

const BODY: &str = r#"{"PartitionKey":"O'Hare & co","RowKey":"1","Name":"Ada","Age":36,"Email":"ada@contoso.com"}"#;

#[tokio::test]
async fn insert_sends() {
    let (server, table) = answering(no_content()).await;
    let stored = table.insert(&ada()).await.unwrap();
    assert_eq!(
        stored.timestamp().unwrap().to_string(),
        "2024-03-15T10:20:30.5Z"
    );
    assert_eq!(
        sent(&server).await,
        format!(
            "POST /acct/People()\naccept: application/json;odata=minimalmetadata\ncontent-type: application/json\ndataserviceversion: 3.0\nprefer: return-no-content\nx-ms-version: 2019-02-02\n{BODY}"
        )
    );
}

#[tokio::test]
async fn upsert_merge_sends() {
    let (server, table) = answering(no_content()).await;
    table.upsert_merge(&ada()).await.unwrap();
    assert_eq!(
        sent(&server).await,
        format!(
            "PATCH /acct/People(PartitionKey='O''Hare%20%26%20co',RowKey='1')\naccept: application/json;odata=minimalmetadata\ncontent-type: application/json\ndataserviceversion: 3.0\nx-ms-version: 2019-02-02\n{BODY}"
        )
    );
}

#[tokio::test]
async fn upsert_merge_sends_to_cosmos() {
    let (server, _) = answering(no_content()).await;
    let service = TableServiceClient::builder(format!("{}/acct", server.uri()))
        .credential(SharedKey::new("acct", "c2VjcmV0").unwrap())
        .backend(Backend::Cosmos)
        .build()
        .unwrap();
    let table = service.table("People");
    table.upsert_merge(&ada()).await.unwrap();
    assert_eq!(
        sent(&server).await,
        format!(
            "POST /acct/People(PartitionKey='O''Hare%20%26%20co',RowKey='1')\naccept: application/json;odata=minimalmetadata\ncontent-type: application/json\ndataserviceversion: 3.0\nx-http-method: MERGE\nx-ms-version: 2019-02-02\n{BODY}"
        )
    );
}

#[tokio::test]
async fn cosmos_gets_merges_by_post() {
    let (server, _) = answering(no_content()).await;
    let key = SharedKey::new("acct", "c2VjcmV0").unwrap();
    let service = TableServiceClient::builder(format!("{}/acct", server.uri()))
        .credential(key.clone())
        .backend(Backend::Cosmos)
        .retry(RetryPolicy::none())
        .build()
        .unwrap();
    let table = service.table("People");
    table.upsert_merge(&ada()).await.unwrap();
    table.upsert_replace(&ada()).await.unwrap();
    let batch = table.batch("O'Hare & co").upsert_merge(&ada());
    batch.await.unwrap_err();
    let requests = server.received_requests().await.unwrap();
    let [merge, replace, batch] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    assert_eq!(
        (merge.method.as_str(), replace.method.as_str()),
        ("POST", "PUT")
    );
    assert_eq!(merge.headers["x-http-method"], "MERGE");
    assert!(!replace.headers.contains_key("x-http-method"));
    // The signature is for the method on the wire.
    let date = merge.headers["x-ms-date"].to_str().unwrap();
    let path = "/acct/acct/People(PartitionKey='O''Hare%20%26%20co',RowKey='1')";
    let text = format!("POST\n\napplication/json\n{date}\n{path}");
    let expected = format!("SharedKey acct:{}", key.sign(&text).expose());
    assert_eq!(merge.headers["authorization"], *expected);
    let body = std::str::from_utf8(&batch.body).unwrap();
    assert!(body.contains("\r\n\r\nPOST http"), "{body}");
    assert!(
        body.to_ascii_lowercase()
            .contains("\r\nx-http-method: merge\r\n"),
        "{body}"
    );
    assert!(!batch.headers.contains_key("x-http-method"));
}

#[tokio::test]
async fn the_bundled_server_knows_merges_by_post() {
    let server = TableServer::in_process();
    let service = client_with(&server, |builder| builder.backend(Backend::Cosmos));
    let table = service.table("People");
    table.create_table().await.unwrap();
    table.upsert_merge(&ada()).await.unwrap();
    let older = Employee { age: 37, ..ada() };
    let batch = table.batch("O'Hare & co").merge_unconditional(&older);
    batch.await.unwrap();
    let row = table.get::<Employee>(("O'Hare & co", "1")).await.unwrap();
    assert_eq!(row.unwrap().age, 37);
}

#[tokio::test]
async fn replace_unconditional_sends() {
    let (server, table) = answering(no_content()).await;
    table.replace_unconditional(&ada()).await.unwrap();
    assert_eq!(
        sent(&server).await,
        format!(
            "PUT /acct/People(PartitionKey='O''Hare%20%26%20co',RowKey='1')\naccept: application/json;odata=minimalmetadata\ncontent-type: application/json\ndataserviceversion: 3.0\nif-match: *\nx-ms-version: 2019-02-02\n{BODY}"
        )
    );
}

#[tokio::test]
async fn delete_sends() {
    let (server, table) = answering(no_content()).await;
    assert!(table.delete(("a", "b")).await.unwrap());
    assert_eq!(
        sent(&server).await,
        "DELETE /acct/People(PartitionKey='a',RowKey='b')\naccept: application/json;odata=minimalmetadata\ndataserviceversion: 3.0\nif-match: *\nx-ms-version: 2019-02-02\n"
    );
}

#[tokio::test]
async fn query_sends() {
    let page = ResponseTemplate::new(200).set_body_string(r#"{"value":[]}"#);
    let (server, table) = answering(page).await;
    let query = table
        .query::<Employee>()
        .partition("a")
        .filter(|e| e.age.ge(5) | e.name.eq("O'Brien"));
    query
        .select(|e| (e.id, e.age))
        .page_size(100)
        .collect()
        .await
        .unwrap();
    assert_eq!(
        sent(&server).await,
        "GET /acct/People()?$filter=PartitionKey%20eq%20%27a%27%20and%20%28Age%20ge%205%20or%20Name%20eq%20%27O%27%27Brien%27%29&$select=RowKey%2CAge&$top=100\naccept: application/json;odata=minimalmetadata\ndataserviceversion: 3.0\nx-ms-version: 2019-02-02\n"
    );
}

#[tokio::test]
async fn a_signature_covers_the_path_as_it_is_sent() {
    let (server, table) = answering(no_content()).await;
    table.upsert_merge(&ada()).await.unwrap();
    let requests = server.received_requests().await.unwrap();
    let headers = &requests[0].headers;
    let date = headers["x-ms-date"].to_str().unwrap();
    let text = format!(
        "PATCH\n\napplication/json\n{date}\n/acct/acct/People(PartitionKey='O''Hare%20%26%20co',RowKey='1')"
    );
    let key = SharedKey::new("acct", "c2VjcmV0").unwrap();
    let expected = format!("SharedKey acct:{}", key.sign(&text).expose());
    assert_eq!(headers["authorization"], *expected);
}

#[tokio::test]
async fn an_error_page_of_a_proxy_keeps_its_status() {
    let page = ResponseTemplate::new(502).set_body_string("<html>Bad gateway</html>");
    let (_server, table) = answering(page).await;
    let error = table.get(Employee::key("a", "b")).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Service);
    assert_eq!(error.status().unwrap().as_u16(), 502);
    // Behind the proxy, the service may have carried it out.
    let error = table.insert(&ada()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(error.status().unwrap().as_u16(), 502);
}

#[tokio::test]
async fn throttling_is_told() {
    let busy = r#"{"odata.error":{"code":"ServerBusy","message":{"lang":"en-US","value":"Busy.\nRequestId:x\nTime:y"}}}"#;
    let busy = ResponseTemplate::new(503)
        .set_body_string(busy)
        .insert_header("x-ms-request-id", "id-1");
    let (_server, table) = answering(busy).await;
    let error = table.insert(&ada()).await.unwrap_err();
    assert!(error.is_throttled());
    assert_eq!(
        error.to_string(),
        "insert entity (\"O'Hare & co\", \"1\"): 503 ServerBusy: Busy. (request id id-1)"
    );
}

#[tokio::test]
async fn answers_that_are_none_are_errors() {
    for body in [
        "",
        "<html>Welcome</html>",
        "[]",
        "{\"value\":{}}",
        "{\"value\":[{\"a\":",
    ] {
        let (_server, table) = answering(ResponseTemplate::new(200).set_body_string(body)).await;
        let error = table.query::<Employee>().collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Response, "{body:?} {error:?}");
        let error = table.get(Employee::key("a", "b")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Response, "{body:?} {error:?}");
    }
    let (_server, table) = answering(service_response(204)).await;
    let error = table.upsert_merge(&ada()).await.unwrap_err();
    assert!(
        format!("{error:?}").ends_with("the answer lacks the ETag header"),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_etag_that_no_header_can_hold_is_not_sent_back() {
    let page = r#"{"value":[{"odata.etag":"W/\"a\nb\"","PartitionKey":"Sales","RowKey":"1","Timestamp":"2024-03-15T10:20:30Z","Name":"Ada","Age":36}]}"#;
    let (_server, table) = answering(ResponseTemplate::new(200).set_body_string(page)).await;
    let mut read = table.query::<Employee>().collect().await.unwrap();
    for error in [
        table.replace(&mut read[0]).await.unwrap_err(),
        table.merge(&mut read[0]).await.unwrap_err(),
        table.delete_stored(&read[0]).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
        assert!(
            format!("{error:?}").contains("the ETag holds characters"),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_success_that_is_not_the_services_is_none() {
    let page = service_response(200).set_body_raw("<html>sign in</html>", "text/html");
    let (_server, table) = answering(page).await;
    let created = table.create_table().await.map(|()| true);
    for outcome in [
        created,
        table.delete(("p", "r")).await,
        table.delete_table().await,
    ] {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    }
}

#[tokio::test]
async fn an_action_shows_no_values() {
    let (_server, table) = answering(no_content()).await;
    let text = format!(
        "{:?} {:?}",
        table.insert(&ada()),
        table.upsert_merge(&ada())
    );
    assert!(
        text.contains("O'Hare") && !text.contains("contoso"),
        "{text}"
    );
}

/// Boundaries and the marker's name are random.
fn without_guids(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        let (before, from) = rest.split_at(at);
        shown += before;
        let is_guid = from
            .get(..36)
            .is_some_and(|id| id.parse::<tablesdk::Guid>().is_ok());
        let length = if is_guid { 36 } else { 1 };
        shown += if is_guid { "GUID" } else { &from[..1] };
        rest = &from[length..];
    }
    shown + rest
}

#[tokio::test]
async fn exactly_once_sends_the_marker_before_the_change() {
    let (server, table) = answering(ResponseTemplate::new(403)).await;
    let row = Employee::ada();
    table.insert(&row).exactly_once().await.unwrap_err();
    let requests = server.received_requests().await.unwrap();
    // Nothing but a page answered: the marker is tried, and the row looked at.
    let [batch, marker, look] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    let uri = server.uri();
    let marker_row = |state: &str| {
        format!(
            r#"{{"PartitionKey":"Sales","RowKey":"~tablesdk.once.GUID","TablesdkMarker":"exactly-once","TablesdkState":"{state}","TablesdkOperation":"insert entity"}}"#
        )
    };
    let insert = |body: &str| {
        let lines = [
            "--changeset_GUID",
            "Content-Type: application/http",
            "Content-Transfer-Encoding: binary",
            "",
            &format!("POST {uri}/acct/People() HTTP/1.1"),
            "Accept: application/json;odata=minimalmetadata",
            "Content-Type: application/json",
            "DataServiceVersion: 3.0",
            "Prefer: return-no-content",
            "",
            body,
            "",
        ];
        lines.join("\r\n")
    };
    let row = r#"{"PartitionKey":"Sales","RowKey":"1","Name":"Ada","Age":36}"#;
    let expected = [
        "--batch_GUID\r\nContent-Type: multipart/mixed; boundary=changeset_GUID\r\n\r\n",
        &insert(&marker_row("committed")),
        &insert(row),
        "--changeset_GUID--\r\n\r\n--batch_GUID--\r\n",
    ];
    let sent = without_guids(std::str::from_utf8(&batch.body).unwrap());
    assert_eq!(sent, expected.concat());
    let sent = without_guids(std::str::from_utf8(&marker.body).unwrap());
    assert_eq!(
        (marker.url.path(), sent),
        ("/acct/People()", marker_row("cancelled"))
    );
    assert_eq!(look.method.as_str(), "GET");
}
