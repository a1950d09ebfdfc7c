//! The client's requests, byte for byte, as a mock server receives them.

use harness::proxy::SERVICE_HEADERS;
use tablesdk::transport::Backend;
use tablesdk::{ETag, RetryPolicy, SharedKey, TableClient, TableServiceClient};
use wiremock::matchers::{any, method};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::Employee;

fn key() -> SharedKey {
    SharedKey::new("acct", "c2VjcmV0").unwrap()
}

/// A mock server that gives this response, and a client of it.
async fn responding(response: ResponseTemplate, backend: Backend) -> (MockServer, TableClient) {
    let server = MockServer::start().await;
    let query = ResponseTemplate::new(200).set_body_string(r#"{"value":[]}"#);
    let mock = Mock::given(method("GET")).respond_with(query);
    mock.with_priority(9).mount(&server).await;
    let mock = Mock::given(any()).respond_with(response);
    mock.with_priority(10).mount(&server).await;
    let service = TableServiceClient::builder(format!("{}/acct", server.uri()))
        .credential(key())
        .backend(backend)
        .retry(RetryPolicy::none())
        .build();
    (server, service.unwrap().table("People"))
}

fn no_content() -> ResponseTemplate {
    let etag = "W/\"datetime'2024-03-15T10%3A20%3A30.5Z'\"";
    ResponseTemplate::new(204)
        .append_headers(SERVICE_HEADERS)
        .insert_header("ETag", etag)
}

/// Asserts method, path with query, the headers that differ between operations, and the body, of
/// the only request. The others are as in every request, and the signature is for the method and
/// the path that were sent.
async fn assert_sent(backend: Backend, expected: &str, operation: impl AsyncFnOnce(TableClient)) {
    let (server, table) = responding(no_content(), backend).await;
    operation(table).await;
    let requests = server.received_requests().await.unwrap();
    let [request] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    let header = |name| Some(request.headers.get(name)?.to_str().unwrap());
    let accepted = Some("application/json;odata=minimalmetadata");
    assert_eq!(header("accept"), accepted);
    assert_eq!(header("dataserviceversion"), Some("3.0"));
    assert_eq!(header("x-ms-version"), Some("2019-02-02"));
    let content_type = header("content-type").unwrap_or_default();
    let (path, date) = (request.url.path(), header("x-ms-date").unwrap());
    let signed = format!("{}\n\n{content_type}\n{date}\n/acct{path}", request.method);
    let signature = format!("SharedKey acct:{}", key().sign(&signed).expose());
    assert_eq!(header("authorization"), Some(signature.as_str()));

    let query = request.url.query().map(|query| format!("?{query}"));
    let mut sent = format!("{} {path}{}\n", request.method, query.unwrap_or_default());
    for name in ["content-type", "if-match", "prefer", "x-http-method"] {
        if let Some(value) = header(name) {
            sent += &format!("{name}: {value}\n");
        }
    }
    assert_eq!(sent + body(request), expected);
}

fn body(request: &Request) -> &str {
    std::str::from_utf8(&request.body).unwrap()
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
async fn each_operation_sends_its_own_request() {
    let path = "/acct/People(PartitionKey='O''Hare%20%26%20co',RowKey='1')";
    let json = "content-type: application/json";
    assert_sent(
        Backend::Storage,
        &format!("POST /acct/People()\n{json}\nprefer: return-no-content\n{BODY}"),
        async |table| {
            let time = table.insert(&ada()).await.unwrap().timestamp().unwrap();
            assert_eq!(time.to_string(), "2024-03-15T10:20:30.5Z");
        },
    )
    .await;

    let merge = async |table: TableClient| drop(table.upsert_merge(&ada()).await.unwrap());
    let sent = format!("PATCH {path}\n{json}\n{BODY}");
    assert_sent(Backend::Storage, &sent, merge).await;
    let sent = format!("POST {path}\n{json}\nx-http-method: MERGE\n{BODY}");
    assert_sent(Backend::Cosmos, &sent, merge).await;

    let replace = async |table: TableClient| drop(table.upsert_replace(&ada()).await.unwrap());
    let sent = format!("PUT {path}\n{json}\n{BODY}");
    assert_sent(Backend::Cosmos, &sent, replace).await;

    let sent = format!("PUT {path}\n{json}\nif-match: *\n{BODY}");
    assert_sent(Backend::Storage, &sent, async |table| {
        table.replace_if(&ada(), ETag::ANY).await.unwrap();
    })
    .await;

    let sent = "DELETE /acct/People(PartitionKey='a',RowKey='b')\nif-match: *\n";
    assert_sent(Backend::Storage, sent, async |table| {
        assert!(table.delete(("a", "b")).await.unwrap());
    })
    .await;

    let sent = "GET /acct/People()?$filter=PartitionKey%20eq%20%27a%27%20and%20%28Age%20ge%205%20or%20Name%20eq%20%27O%27%27Brien%27%29&$select=RowKey%2CAge&$top=100\n";
    assert_sent(Backend::Storage, sent, async |table| {
        let query = table.query::<Employee>().partition("a").page_size(100);
        let query = query.filter(|e| e.age.ge(5) | e.name.eq("O'Brien"));
        query.select(|e| (e.id, e.age)).collect().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_batch_to_cosmos_db_has_merges_as_post() {
    let (server, table) = responding(no_content(), Backend::Cosmos).await;
    let batch = table.batch("O'Hare & co").upsert_merge(&ada());
    batch.await.unwrap_err();
    let requests = server.received_requests().await.unwrap();
    assert!(!requests[0].headers.contains_key("x-http-method"));
    let body = body(&requests[0]).to_ascii_lowercase();
    assert!(body.contains("\r\n\r\npost http"), "{body}");
    assert!(body.contains("\r\nx-http-method: merge\r\n"), "{body}");
}

#[tokio::test]
async fn the_debug_output_of_an_action_has_no_values() {
    let (_server, table) = responding(no_content(), Backend::Storage).await;
    let text = format!(
        "{:?} {:?}",
        table.insert(&ada()),
        table.upsert_merge(&ada())
    );
    assert!(text.contains("O'Hare"), "{text}");
    assert!(!text.contains("contoso"), "{text}");
}

/// The batch is in `tests/wire/stored_forms/marker.http`.
#[tokio::test]
async fn exactly_once_cancels_by_its_marker() {
    let (server, table) = responding(ResponseTemplate::new(403), Backend::Storage).await;
    let insert = table.insert(&Employee::ada()).exactly_once();
    insert.await.unwrap_err();
    let requests = server.received_requests().await.unwrap();
    // The response is a proxy's: the client tries to cancel by the marker, and reads the entity.
    let [_, marker, read] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    let sent = (marker.url.path(), read.method.as_str());
    assert_eq!(sent, ("/acct/People()", "GET"));
    let marker = body(marker);
    let start = r#"{"PartitionKey":"Sales","RowKey":"~tablesdk.once."#;
    assert!(marker.starts_with(start), "{marker}");
    let end = r#","TablesdkMarker":"exactly-once","TablesdkState":"cancelled","TablesdkOperation":"insert entity"}"#;
    assert!(marker.ends_with(end), "{marker}");
}
