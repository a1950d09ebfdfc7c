//! The kit over HTTP with JSON, as tests in other languages use it.

use std::time::{Duration, Instant};

use futures::future;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tablesdk::{ErrorCode, RetryPolicy, TableServiceClient};
use tablesdk_server::{Durability, TableServer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::Employee;

/// A server with a kit, and the URL of the kit.
struct Kit {
    server: TableServer,
    client: Client,
}

impl Kit {
    async fn start() -> Self {
        let server = TableServer::builder().test_kit().start().await.unwrap();
        Self {
            server,
            client: Client::new(),
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/test/{path}", self.server.admin_addr().unwrap())
    }

    /// The status of a response, and its body: JSON, or text.
    async fn call(&self, method: Method, path: &str, body: impl ToString) -> (u16, Value) {
        let request = self.client.request(method, self.url(path));
        let response = request.body(body.to_string()).send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (
            status,
            serde_json::from_str(&text).unwrap_or_else(|_| text.into()),
        )
    }

    async fn get(&self, path: &str) -> Value {
        let (status, value) = self.call(Method::GET, path, "").await;
        assert_eq!(status, 200, "{value}");
        value
    }

    fn service(&self) -> TableServiceClient {
        let builder = TableServiceClient::builder(self.server.endpoint());
        let builder = builder.credential(self.server.credential());
        builder.retry(RetryPolicy::none()).build().unwrap()
    }
}

#[tokio::test]
async fn faults_are_injected_and_counted() {
    let kit = Kit::start().await;
    let table = kit.service().table("People");
    table.create_table().await.unwrap();
    let rule = json!({
        "operations": ["InsertEntity"],
        "table": "People",
        "nth": 1,
        "fault": { "kind": "error", "code": "ServerBusy", "retryAfterSeconds": 1 },
    });
    let (status, created) = kit.call(Method::POST, "faults", rule).await;
    assert_eq!(status, 201);
    let path = format!("faults/{}", created["id"]);
    assert_eq!(kit.get(&path).await, json!({ "hits": 0 }));
    assert!(
        table
            .insert(&Employee::ada())
            .await
            .unwrap_err()
            .is_throttled()
    );
    table.insert(&Employee::ada()).await.unwrap();
    assert_eq!(kit.get(&path).await, json!({ "hits": 1 }));

    let lost = json!({ "fault": { "kind": "loseResponse" } });
    kit.call(Method::POST, "faults", lost).await;
    let error = table.upsert_replace(&Employee::grace()).await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
    assert_eq!(kit.call(Method::DELETE, "faults", "").await.0, 204);
    table.upsert_replace(&Employee::grace()).await.unwrap();
}

#[tokio::test]
async fn requests_and_lints_are_shown() {
    let kit = Kit::start().await;
    let table = kit.service().table("People");
    table.create_table().await.unwrap();
    table.insert(&Employee::ada()).await.unwrap();
    table
        .query::<Employee>()
        .filter(|e| e.age.gt(3))
        .collect()
        .await
        .unwrap();
    let requests = kit.get("requests").await;
    let insert = &requests[1];
    assert_eq!(insert["operation"], "InsertEntity");
    assert_eq!(insert["entities"][0]["rowKey"], "1");
    assert_eq!(insert["status"], 204);
    assert_eq!(requests[2]["access"], "scan");
    assert_eq!(requests[2]["filter"], "Age gt 3");
    let lints = kit.get("lints").await;
    assert_eq!(lints[0]["kind"], "Scan");
    kit.call(Method::DELETE, "requests", "").await;
    assert_eq!(kit.get("requests").await, json!([]));
}

#[tokio::test]
async fn tables_are_loaded_kept_and_reset() {
    let kit = Kit::start().await;
    let line = r#"{"table":"People","entity":{"PartitionKey":"a","RowKey":"1","Age":36}}"#;
    assert_eq!(kit.call(Method::POST, "entities", line).await.0, 204);
    let (_, snapshot) = kit.call(Method::POST, "snapshots", "").await;
    let table = kit.service().table("People");
    table.insert(&Employee::ada()).await.unwrap();
    let restore = format!("snapshots/{}/restore", snapshot["id"]);
    assert_eq!(kit.call(Method::POST, &restore, "").await.0, 204);
    let dump = "People\nPeople(PartitionKey='a',RowKey='1')\n  Age = 36\n";
    assert_eq!(kit.get("dump").await, dump);
    let saved = kit.get("entities").await;
    assert!(
        saved.as_str().unwrap().contains(r#""RowKey":"1""#),
        "{saved}"
    );
    assert_eq!(kit.call(Method::POST, "reset", "").await.0, 204);
    assert_eq!(kit.get("dump").await, "");
    assert_eq!(kit.get("requests").await, json!([]));
    assert_eq!(kit.call(Method::POST, &restore, "").await.0, 404);
}

#[tokio::test]
async fn the_clock_is_moved() {
    let kit = Kit::start().await;
    let set = json!({ "kind": "set", "time": "2024-03-15T10:20:30Z" });
    let (_, clock) = kit.call(Method::POST, "clock", set).await;
    assert_eq!(
        clock,
        json!({ "now": "2024-03-15T10:20:30Z", "isFrozen": true })
    );
    let advance = json!({ "kind": "advance", "seconds": 90.5 });
    let (_, clock) = kit.call(Method::POST, "clock", advance).await;
    assert_eq!(clock["now"], "2024-03-15T10:22:00.5Z");
    kit.call(Method::POST, "reset", "").await;
    assert_eq!(kit.get("clock").await["isFrozen"], false);
}

/// Clients in other languages date their requests by the system clock.
#[tokio::test]
async fn requests_with_the_actual_date_are_accepted_at_any_time() {
    let kit = Kit::start().await;
    let table = kit.service().table("People");
    for time in ["2124-02-29T00:00:00Z", "2024-02-29T00:00:00Z"] {
        let set = json!({ "kind": "set", "time": time });
        assert_eq!(kit.call(Method::POST, "clock", set).await.0, 200);
        table.create_table().await.unwrap();
        let stored = table.insert(&Employee::ada()).await.unwrap();
        let timestamp = stored.timestamp().unwrap().to_string();
        assert!(timestamp.starts_with(&time[..19]), "{timestamp}");
        // The next timestamps may be earlier.
        assert_eq!(kit.call(Method::POST, "reset", "").await.0, 204);
    }
    table.create_table().await.unwrap();
    let century = json!({ "kind": "advance", "seconds": 3_155_760_000_u64 });
    assert_eq!(kit.call(Method::POST, "clock", century).await.0, 200);
    table.insert(&Employee::ada()).await.unwrap();
}

/// Neither in the tables nor among the recorded requests.
#[tokio::test]
async fn a_reset_ends_the_requests_of_before() {
    let kit = Kit::start().await;
    let table = kit.service().table("People");
    table.create_table().await.unwrap();
    for fault in [
        json!({ "kind": "delay", "seconds": 3600 }),
        json!({ "kind": "noResponse" }),
        json!({ "kind": "reset", "appliedAfterSeconds": 0.2 }),
        json!({ "kind": "duplicate", "afterSeconds": 0.2 }),
    ] {
        let rule = json!({ "operations": ["CreateTable"], "fault": fault });
        let (_, created) = kit.call(Method::POST, "faults", rule).await;
        let hits = format!("faults/{}", created["id"]);
        let late = kit.service().table("Late");
        let request = tokio::spawn(async move { late.create_table().await });
        while kit.get(&hits).await["hits"] != 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(kit.call(Method::POST, "reset", "").await.0, 204);
        assert_eq!(kit.get("requests").await, json!([]), "{fault}");
        assert_eq!(kit.get("dump").await, "", "{fault}");
        let _ = request.await.unwrap();
    }
    // Longer than the last request was to wait.
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(400) {
        assert_eq!(kit.get("dump").await, "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_and_requests_may_run_at_the_same_time() {
    let kit = Kit::start().await;
    let writes = (0..4).map(|id| {
        let table = kit.service().table(format!("People{id}"));
        async move {
            for _ in 0..50 {
                // Each of them fails whose table was deleted.
                let _ = table.create_table().if_missing().await;
                let _ = table.upsert_replace(&Employee::ada()).await;
            }
        }
    });
    let resets = (0..4).map(|_| async {
        let delay = json!({ "probability": 0.5, "fault": { "kind": "delay", "seconds": 3600 } });
        for _ in 0..20 {
            kit.call(Method::POST, "faults", &delay).await;
            assert_eq!(kit.call(Method::POST, "reset", "").await.0, 204);
        }
        // Delays those that come after the last reset, too.
        kit.call(Method::DELETE, "faults", "").await;
    });
    let both = future::join(future::join_all(writes), future::join_all(resets));
    tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .expect("no request waits for ever");
    assert_eq!(kit.call(Method::POST, "reset", "").await.0, 204);
    assert_eq!(kit.get("dump").await, "");
}

#[tokio::test]
async fn a_refused_reset_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let builder = TableServer::builder().data(directory.path(), Durability::Relaxed);
    let server = builder.test_kit().start().await.unwrap();
    let client = Client::new();
    let kit = Kit { server, client };
    kit.call(Method::POST, "clock", json!({ "kind": "freeze" }))
        .await;
    let rule = json!({ "fault": { "kind": "reset" } });
    kit.call(Method::POST, "faults", rule).await;
    assert_eq!(kit.call(Method::POST, "reset", "").await.0, 409);
    assert_eq!(kit.get("clock").await["isFrozen"], true);
    let table = kit.service().table("People");
    table.create_table().await.unwrap_err();
    assert_eq!(kit.get("requests").await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_throttle_is_set() {
    let kit = Kit::start().await;
    kit.call(Method::POST, "clock", json!({ "kind": "freeze" }))
        .await;
    let table = kit.service().table("People");
    table.create_table().await.unwrap();
    kit.call(Method::PUT, "throttle", json!({ "perPartition": 1 }))
        .await;
    table.upsert_replace(&Employee::ada()).await.unwrap();
    let error = table.upsert_replace(&Employee::ada()).await.unwrap_err();
    assert!(error.is_throttled());
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_named() {
    let kit = Kit::start().await;
    for (body, problem) in [
        ("{", "the body is not JSON: EOF while parsing"),
        (
            r#"{"fault":{"kind":"quake"}}"#,
            "fault: kind: unknown variant `quake`, expected one of `chaos`",
        ),
        (
            r#"{"fault":{"kind":7}}"#,
            "fault: kind: invalid type: integer `7`",
        ),
        (
            r#"{"fault":{"kind":"error","code":"Quake"}}"#,
            "fault: code: unknown error code \"Quake\", see GET /test/openapi.json",
        ),
        (r#"{"nth":0,"fault":{"kind":"reset"}}"#, "nth begins with 1"),
        (
            r#"{"nth":1,"times":2,"fault":{"kind":"reset"}}"#,
            "nth stands alone",
        ),
        (
            r#"{"seed":7,"fault":{"kind":"reset"}}"#,
            "seed stands with probability or chaos",
        ),
        (
            r#"{"probability":2,"fault":{"kind":"reset"}}"#,
            "probability is between 0 and 1",
        ),
        (
            r#"{"operations":["Quake"],"fault":{"kind":"reset"}}"#,
            "operations: \"Quake\" is not the name",
        ),
        (
            r#"{"tables":"a","fault":{"kind":"reset"}}"#,
            "unknown field `tables`",
        ),
        (
            r#"{"fault":{"kind":"duplicate","afterSeconds":-1}}"#,
            "fault: afterSeconds: -1.0 is not a number of seconds",
        ),
        (
            r#"{"fault":{"kind":"delay","seconds":-1}}"#,
            "fault: seconds: -1.0 is not a number of seconds",
        ),
        ("", "the body is not JSON: EOF while parsing"),
        ("7", "invalid type: integer `7`, expected a JSON object"),
        ("[]", "invalid type: sequence, expected a JSON object"),
        (
            r#"{"fault":["reset"]}"#,
            "fault: invalid type: sequence, expected a JSON object",
        ),
        (
            r#"{"fault":7}"#,
            "fault: invalid type: integer `7`, expected a JSON object",
        ),
        (
            r#"{"times":18446744073709551616,"fault":{"kind":"reset"}}"#,
            "times: 1.8446744073709552e+19 is not an integer of at least 0",
        ),
        (
            r#"{"skip":-1,"fault":{"kind":"reset"}}"#,
            "skip: -1 is not an integer of at least 0",
        ),
        (
            r#"{"probability":NaN,"fault":{"kind":"reset"}}"#,
            "the body is not JSON: expected value at line 1 column 16",
        ),
        (
            r#"{"partitionKey":7,"fault":{"kind":"reset"}}"#,
            "partitionKey: 7 is not a string",
        ),
        (
            r#"{"table":null,"fault":{"kind":"reset"}}"#,
            "table: null is not a string",
        ),
        (
            r#"{"operations":"InsertEntity","fault":{"kind":"reset"}}"#,
            "operations: \"InsertEntity\" is not a list of names",
        ),
        (
            r#"{"operations":[],"fault":{"kind":"reset"}}"#,
            "operations: an empty list",
        ),
        (
            r#"{"fault":{"kind":"loseResponse","times":1}}"#,
            "fault: unknown field `times`",
        ),
        (
            r#"{"fault":{"kind":"truncate","bytes":1e99}}"#,
            "fault: bytes: 1e+99 is not an integer of at least 0",
        ),
        (
            r#"{"fault":{"kind":"error","code":"ServerBusy","retryAfterSeconds":1e300}}"#,
            "fault: retryAfterSeconds: 1e300 is not",
        ),
        (
            r#"{"fault":{"kind":"reset","applied":true,"appliedAfterSeconds":1}}"#,
            "fault: applied and appliedAfterSeconds exclude each other",
        ),
    ] {
        let (status, error) = kit.call(Method::POST, "faults", body).await;
        let text = error["error"].as_str().unwrap();
        assert!(
            status == 400 && text.starts_with(problem),
            "{status} {text}"
        );
    }
    for (method, path, body, problem) in [
        (
            Method::POST,
            "clock",
            r#"{"kind":"freeze","seconds":1}"#,
            "unknown field `seconds`",
        ),
        (
            Method::POST,
            "clock",
            r#"{"kind":"stop"}"#,
            "kind: unknown variant `stop`, expected one of `advance`",
        ),
        (
            Method::POST,
            "clock",
            r#"{"kind":"advance","seconds":-1}"#,
            "seconds: -1.0 is not",
        ),
        (
            Method::POST,
            "clock",
            r#"{"kind":"set","time":"today"}"#,
            "time: not a date and time",
        ),
        (
            Method::PUT,
            "throttle",
            r#"{"perPartition":4294967296}"#,
            "perPartition: 4294967296 is not an integer from 0 to 4294967295",
        ),
    ] {
        let (status, error) = kit.call(method, path, body).await;
        let text = error["error"].as_str().unwrap();
        assert!(status == 400 && text.contains(problem), "{status} {text}");
    }
    for (method, path, problem) in [
        (Method::GET, "quake", "no such operation as GET /test/quake"),
        (Method::GET, "faults/7", "no fault with the id \"7\""),
        (
            Method::DELETE,
            "faults/99999999999999999999",
            "no fault with the id \"9999",
        ),
        (
            Method::POST,
            "snapshots/x/restore",
            "no snapshot with the id \"x\"",
        ),
    ] {
        let (status, error) = kit.call(method, path, "").await;
        let text = error["error"].as_str().unwrap();
        assert!(status == 404 && text.contains(problem), "{status} {text}");
    }
    for (method, path, body, problem) in [
        (
            Method::GET,
            "requests?operation=InsertEntity",
            "",
            "/test/requests has no query string: \"operation=InsertEntity\"",
        ),
        (
            Method::POST,
            "reset",
            "{}",
            "POST /test/reset takes no body",
        ),
    ] {
        let (status, error) = kit.call(method, path, body).await;
        let text = error["error"].as_str().unwrap();
        assert!(status == 400 && text.contains(problem), "{status} {text}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let kit = Kit::start().await;
    let blank = " ".repeat(1024 * 1024);
    let fits = format!("{{\"kind\":\"freeze\"}}{blank}");
    let (status, _) = kit.call(Method::POST, "clock", &fits[..1024 * 1024]).await;
    assert_eq!(status, 200);
    let (status, error) = kit.call(Method::POST, "clock", fits).await;
    let expected = "the body has more than 1048576 bytes";
    assert_eq!((status, error), (413, json!({ "error": expected })));
    let (status, _) = kit.call(Method::POST, "entities", blank.repeat(2)).await;
    assert_eq!(status, 204);
}

#[tokio::test]
async fn a_web_page_is_refused() {
    let kit = Kit::start().await;
    let url = format!("http://{}/test/reset", kit.server.admin_addr().unwrap());
    for (name, value) in [("origin", "http://127.0.0.1"), ("host", "example.com")] {
        let request = kit.client.post(&url).header(name, value);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 403);
        let error: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        assert!(
            error["error"]
                .as_str()
                .unwrap()
                .contains("not for web pages")
        );
    }
}

/// As many as a test run with a connection for each test may keep.
#[tokio::test]
async fn idle_connections_do_not_keep_others_waiting() {
    let kit = Kit::start().await;
    let address = kit.server.admin_addr().unwrap();
    let mut idle = Vec::new();
    for _ in 0..100 {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let unfinished =
            b"POST /test/faults HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n{";
        connection.write_all(unfinished).await.unwrap();
        idle.push(connection);
    }
    let began = Instant::now();
    kit.get("clock").await;
    // Unfinished heads would end after 10 seconds, and these bodies never.
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn the_kit_shows_where_its_description_is() {
    let kit = Kit::start().await;
    let url = format!("http://{}/test", kit.server.admin_addr().unwrap());
    let response = kit.client.get(url).send().await.unwrap();
    assert_eq!(response.status(), 404);
    let text = response.text().await.unwrap();
    assert!(text.contains("see GET /test/openapi.json"), "{text}");
}

/// The description has every operation of the kit and no other, and the names of all operations and
/// error codes of the service.
#[tokio::test]
async fn the_description_is_complete() {
    let kit = Kit::start().await;
    let description = kit.get("openapi.json").await;
    let ops = &description["components"]["schemas"]["Operation"]["enum"];
    let known: Vec<_> = tablesdk_server::testing::Op::ALL
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(*ops, json!(known));
    let codes = &description["components"]["schemas"]["ErrorFault"]["properties"]["code"]["enum"];
    let known: Vec<_> = ErrorCode::KNOWN.iter().map(ErrorCode::as_str).collect();
    assert_eq!(*codes, json!(known));
    for (path, item) in description["paths"].as_object().unwrap() {
        let described = item.as_object().unwrap().keys();
        let described: Vec<_> = described
            .filter(|key| *key != "parameters")
            .map(|method| method.to_uppercase())
            .collect();
        let path = &path[1..].replace("{id}", "7");
        for method in ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"] {
            let url = kit.url(path);
            let request = kit.client.request(method.parse().unwrap(), url);
            let response = request.send().await.unwrap();
            let (status, allowed) = (response.status(), response.headers().get("allow").cloned());
            if described.iter().any(|described| described == method) {
                assert!(allowed.is_none(), "{method} {path}: {status}");
            } else {
                assert_eq!(status, 405, "{method} {path}");
                assert_eq!(allowed.unwrap(), described.join(", "));
            }
        }
    }
}

#[tokio::test]
async fn a_server_without_the_kit_has_no_such_path() {
    let server = TableServer::builder().admin_port(0).start().await.unwrap();
    let url = format!("http://{}/test/dump", server.admin_addr().unwrap());
    assert_eq!(reqwest::get(url).await.unwrap().status(), 404);
}
