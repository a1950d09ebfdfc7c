//! The kit over HTTP with JSON, as tests in other languages use it.

use std::time::{Duration, Instant};

use futures::future;
use reqwest::Client;
use serde_json::{Value, json};
use tablesdk::{ErrorCode, RetryPolicy, TableClient};
use tablesdk_server::testing::{Fault, Op};
use tablesdk_server::{Durability, TableServer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::{Employee, service_over_http};

/// A server with a kit, and a client of the kit.
struct Kit {
    server: TableServer,
    client: Client,
}

impl Kit {
    fn of(server: TableServer) -> Self {
        let client = Client::new();
        Self { server, client }
    }

    /// With a client of a table that exists.
    async fn start() -> (Self, TableClient) {
        let server = TableServer::builder().test_kit().start().await.unwrap();
        let kit = Self::of(server);
        let table = kit.table("People");
        table.create_table().await.unwrap();
        (kit, table)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/test/{path}", self.server.admin_addr().unwrap())
    }

    /// The status of a response, and its body: JSON, or text.
    async fn call(&self, line: &str, body: impl ToString) -> (u16, Value) {
        let (method, path) = line.split_once(' ').unwrap();
        let request = self.client.request(method.parse().unwrap(), self.url(path));
        let response = request.body(body.to_string()).send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        let json = serde_json::from_str(&text);
        (status, json.unwrap_or_else(|_| text.into()))
    }

    /// A response with this status.
    async fn expect(&self, status: u16, line: &str, body: impl ToString) -> Value {
        let (found, value) = self.call(line, body).await;
        assert_eq!(found, status, "{line}: {value}");
        value
    }

    async fn get(&self, path: &str) -> Value {
        self.expect(200, &format!("GET {path}"), "").await
    }

    async fn reset(&self) {
        self.expect(204, "POST reset", "").await;
    }

    fn table(&self, name: &str) -> TableClient {
        service_over_http(&self.server, RetryPolicy::none()).table(name)
    }
}

#[tokio::test]
async fn faults_are_injected_and_counted() {
    let (kit, table) = Kit::start().await;
    let rule = json!({
        "operations": ["InsertEntity"],
        "table": "People",
        "nth": 1,
        "fault": { "kind": "error", "code": "ServerBusy", "retryAfterSeconds": 1 },
    });
    let created = kit.expect(201, "POST faults", rule).await;
    let path = format!("faults/{}", created["id"]);
    assert_eq!(kit.get(&path).await, json!({ "hits": 0 }));
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert!(error.is_throttled());
    table.insert(&Employee::ada()).await.unwrap();
    assert_eq!(kit.get(&path).await, json!({ "hits": 1 }));

    let lost = json!({ "fault": { "kind": "loseResponse" } });
    kit.expect(201, "POST faults", lost).await;
    let error = table.upsert_replace(&Employee::grace()).await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
    kit.expect(204, "DELETE faults", "").await;
    table.upsert_replace(&Employee::grace()).await.unwrap();
}

#[tokio::test]
async fn rules_in_force_are_listed_with_their_hits() {
    let (kit, table) = Kit::start().await;
    let rule = json!({
        "operations": ["InsertEntity", "MergeEntity"],
        "table": "People",
        "partitionKey": "Sales",
        "skip": 1,
        "probability": 0.5,
        "seed": 7,
        "fault": { "kind": "chaos" },
    });
    kit.expect(201, "POST faults", rule).await;
    let busy = json!({
        "operations": ["QueryEntities"],
        "times": 1,
        "fault": { "kind": "error", "code": "ServerBusy" },
    });
    let busy = kit.expect(201, "POST faults", busy).await["id"].clone();
    // A rule of a test in the same process.
    let own = kit.server.faults().on(Op::CreateTable).account("other");
    let own = own.inject(Fault::lost_response());
    let rules = kit.get("faults").await;
    let expected = json!({
        "id": 1,
        "hits": 0,
        "operations": ["InsertEntity", "MergeEntity"],
        "account": null,
        "table": "People",
        "partitionKey": "Sales",
        "rowKey": null,
        "skip": 1,
        "times": null,
        "probability": 0.5,
        "seed": 7,
        "fault": "a random fault",
    });
    assert_eq!(rules[0], expected);
    assert_eq!(rules[1]["times"], 1);
    assert_eq!(rules[2]["id"], own.id());
    assert_eq!(rules[2]["account"], "other");
    assert_eq!(rules[2]["fault"], "carried out, connection reset");

    table.query::<Employee>().collect().await.unwrap_err();
    let requests = kit.get("requests").await;
    let text = "not carried out, response ServerBusy";
    assert_eq!(requests[1]["fault"], json!({ "rule": busy, "text": text }));
    let rules = kit.get("faults").await;
    assert_eq!(rules.as_array().unwrap().len(), 2, "one is used up");
    let hits = kit.get(&format!("faults/{busy}")).await;
    assert_eq!(hits, json!({ "hits": 1 }));

    let remove = format!("DELETE faults/{}", own.id());
    kit.expect(204, &remove, "").await;
    kit.expect(404, &remove, "").await;
    assert_eq!(kit.get("faults").await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn requests_are_numbered_beyond_those_that_are_forgotten() {
    let (kit, table) = Kit::start().await;
    table.insert(&Employee::ada()).await.unwrap();
    let after = kit.get("requests/after/1").await;
    assert_eq!(after.as_array().unwrap().len(), 1);
    assert_eq!(after[0]["number"], 2);
    assert_eq!(after[0]["operation"], "InsertEntity");
    assert_eq!(after[0]["fault"], json!(null));
    assert_eq!(kit.get("requests/after/2").await, json!([]));
    kit.expect(204, "DELETE requests", "").await;
    kit.table("Later").create_table().await.unwrap();
    kit.reset().await;
    assert_eq!(kit.get("requests/after/0").await, json!([]));
    table.create_table().await.unwrap();
    assert_eq!(kit.get("requests/after/0").await[0]["number"], 4);
}

#[tokio::test]
async fn snapshots_are_listed_with_the_last_request_before_them() {
    let (kit, table) = Kit::start().await;
    assert_eq!(kit.get("snapshots").await, json!([]));
    let set = json!({ "kind": "set", "time": "2024-03-15T10:20:30Z" });
    kit.expect(200, "POST clock", set).await;
    kit.expect(201, "POST snapshots", "").await;
    table.insert(&Employee::ada()).await.unwrap();
    kit.expect(201, "POST snapshots", "").await;
    kit.expect(204, "DELETE requests", "").await;
    let time = "2024-03-15T10:20:30Z";
    let [first, second] = [(1, 1, 1), (2, 2, 0)].map(|(id, last, since)| {
        json!({ "id": id, "time": time, "lastRequest": last, "requestsSince": since })
    });
    assert_eq!(kit.get("snapshots").await, json!([first, second]));
    kit.expect(204, "DELETE snapshots/1", "").await;
    assert_eq!(kit.get("snapshots").await, json!([second]));
}

#[tokio::test]
async fn requests_and_lints_are_shown() {
    let (kit, table) = Kit::start().await;
    table.insert(&Employee::ada()).await.unwrap();
    let query = table.query::<Employee>().filter(|e| e.age.gt(3));
    query.collect().await.unwrap();
    let requests = kit.get("requests").await;
    let insert = &requests[1];
    assert_eq!(insert["operation"], "InsertEntity");
    assert_eq!(insert["entities"][0]["rowKey"], "1");
    assert_eq!(insert["status"], 204);
    assert_eq!(requests[2]["access"], "scan");
    assert_eq!(requests[2]["filter"], "Age gt 3");
    let lints = kit.get("lints").await;
    assert_eq!(lints[0]["kind"], "Scan");
    assert_eq!(lints[0]["example"], requests[2]["number"]);
    let advice = lints[0]["advice"].as_str().unwrap();
    assert!(advice.starts_with("Restrict the query to a partition"));
    let cost = kit.get("cost").await;
    let counts = ["transactions", "writes", "queries", "deletes", "unbilled"];
    assert_eq!(
        counts.map(|count| cost[count].as_u64().unwrap()),
        [3, 2, 1, 0, 0]
    );
    assert_eq!(cost["bytesOut"], requests[2]["bytesOut"]);
    kit.call("DELETE requests", "").await;
    assert_eq!(kit.get("requests").await, json!([]));
    assert_eq!(kit.get("cost").await["transactions"], 0);
}

#[tokio::test]
async fn tables_are_loaded_kept_and_reset() {
    let (kit, table) = Kit::start().await;
    let line = r#"{"table":"People","entity":{"PartitionKey":"a","RowKey":"1","Age":36}}"#;
    kit.expect(204, "POST entities", line).await;
    let (_, snapshot) = kit.call("POST snapshots", "").await;
    table.insert(&Employee::ada()).await.unwrap();
    let restore = format!("POST snapshots/{}/restore", snapshot["id"]);
    kit.expect(204, &restore, "").await;
    let dump = "People\nPeople(PartitionKey='a',RowKey='1')\n  Age = 36\n";
    assert_eq!(kit.get("dump").await, dump);
    let saved = kit.get("entities").await;
    let saved = saved.as_str().unwrap();
    assert!(saved.contains(r#""RowKey":"1""#), "{saved}");
    kit.reset().await;
    assert_eq!(kit.get("dump").await, "");
    assert_eq!(kit.get("requests").await, json!([]));
    kit.expect(404, &restore, "").await;
}

#[tokio::test]
async fn the_clock_is_moved() {
    let (kit, _) = Kit::start().await;
    let set = json!({ "kind": "set", "time": "2024-03-15T10:20:30Z" });
    let clock = kit.expect(200, "POST clock", set).await;
    let expected = json!({ "now": "2024-03-15T10:20:30Z", "isFrozen": true });
    assert_eq!(clock, expected);
    let advance = json!({ "kind": "advance", "seconds": 90.5 });
    let clock = kit.expect(200, "POST clock", advance).await;
    assert_eq!(clock["now"], "2024-03-15T10:22:00.5Z");
    kit.reset().await;
    assert_eq!(kit.get("clock").await["isFrozen"], false);
}

/// Clients in other languages date their requests by the system clock.
#[tokio::test]
async fn requests_with_the_actual_date_are_accepted_at_any_time() {
    let (kit, table) = Kit::start().await;
    for time in ["2124-02-29T00:00:00Z", "2024-02-29T00:00:00Z"] {
        // The next timestamps may be earlier.
        kit.reset().await;
        let set = json!({ "kind": "set", "time": time });
        kit.expect(200, "POST clock", set).await;
        table.create_table().await.unwrap();
        let stored = table.insert(&Employee::ada()).await.unwrap();
        let timestamp = stored.timestamp().unwrap().to_string();
        assert!(timestamp.starts_with(&time[..19]), "{timestamp}");
    }
    kit.reset().await;
    table.create_table().await.unwrap();
    let century = json!({ "kind": "advance", "seconds": 3_155_760_000_u64 });
    kit.expect(200, "POST clock", century).await;
    table.insert(&Employee::ada()).await.unwrap();
}

/// Neither in the tables nor among the recorded requests.
#[tokio::test]
async fn a_reset_ends_the_requests_of_before() {
    let (kit, _) = Kit::start().await;
    for fault in [
        json!({ "kind": "delay", "seconds": 3600 }),
        json!({ "kind": "noResponse" }),
        json!({ "kind": "reset", "appliedAfterSeconds": 0.2 }),
        json!({ "kind": "duplicate", "afterSeconds": 0.2 }),
    ] {
        let rule = json!({ "operations": ["CreateTable"], "fault": fault });
        let created = kit.expect(201, "POST faults", rule).await;
        let hits = format!("faults/{}", created["id"]);
        let late = kit.table("Late");
        let request = tokio::spawn(async move { late.create_table().await });
        while kit.get(&hits).await["hits"] != 1 {
            tokio::task::yield_now().await;
        }
        kit.reset().await;
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
    let (kit, _) = Kit::start().await;
    let writes = (0..4).map(|id| {
        let table = kit.table(&format!("People{id}"));
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
            kit.call("POST faults", &delay).await;
            kit.reset().await;
        }
        // Delays those that come after the last reset, too.
        kit.call("DELETE faults", "").await;
    });
    let both = future::join(future::join_all(writes), future::join_all(resets));
    let both = tokio::time::timeout(Duration::from_secs(60), both);
    both.await.expect("no request waits for ever");
    kit.reset().await;
    assert_eq!(kit.get("dump").await, "");
}

#[tokio::test]
async fn a_refused_reset_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let builder = TableServer::builder().data(directory.path(), Durability::Relaxed);
    let kit = Kit::of(builder.test_kit().start().await.unwrap());
    let freeze = json!({ "kind": "freeze" });
    kit.expect(200, "POST clock", freeze).await;
    let rule = json!({ "fault": { "kind": "reset" } });
    kit.expect(201, "POST faults", rule).await;
    kit.expect(409, "POST reset", "").await;
    assert_eq!(kit.get("clock").await["isFrozen"], true);
    kit.table("People").create_table().await.unwrap_err();
    assert_eq!(kit.get("requests").await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_throttle_is_set() {
    let (kit, table) = Kit::start().await;
    let freeze = json!({ "kind": "freeze" });
    kit.expect(200, "POST clock", freeze).await;
    assert_eq!(kit.get("throttle").await, json!({}));
    let throttle = json!({ "perPartition": 1 });
    kit.call("PUT throttle", &throttle).await;
    assert_eq!(kit.get("throttle").await, throttle);
    table.upsert_replace(&Employee::ada()).await.unwrap();
    let error = table.upsert_replace(&Employee::ada()).await.unwrap_err();
    assert!(error.is_throttled());
    let requests = kit.get("requests/after/2").await;
    assert_eq!(requests[0]["fault"]["rule"], json!(null));
}

/// The rows of a text: the input that is sent, and the message about its mistake.
fn rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.trim().lines().map(str::trim);
    lines.map(|line| line.split_once(" | ").unwrap())
}

#[tokio::test]
async fn what_is_wrong_with_a_rule_is_named() {
    let (kit, _) = Kit::start().await;
    let bodies = [
        ("{", "the body is not JSON: EOF while parsing"),
        ("", "the body is not JSON: EOF while parsing"),
        ("7", "invalid type: integer `7`, expected a JSON object"),
        ("[]", "invalid type: sequence, expected a JSON object"),
    ];
    let bodies = bodies.map(|(body, problem)| (body.to_owned(), problem.to_owned()));
    let rules = r#"
        "nth":0 | nth begins with 1
        "nth":1,"times":2 | nth stands alone
        "seed":7 | seed stands with probability or chaos
        "probability":2 | probability is between 0 and 1
        "probability":NaN | the body is not JSON: expected value at line 1 column 16
        "tables":"a" | unknown field `tables`
        "table":null | table: null is not a string
        "partitionKey":7 | partitionKey: 7 is not a string
        "times":18446744073709551616 | times: 1.8446744073709552e+19 is not an integer of at least 0
        "skip":-1 | skip: -1 is not an integer of at least 0
        "operations":["Quake"] | operations: "Quake" is not the name
        "operations":"InsertEntity" | operations: "InsertEntity" is not a list of names
        "operations":[] | operations: an empty list
    "#;
    let rules = rows(rules).map(|(members, problem)| {
        let body = format!(r#"{{{members},"fault":{{"kind":"reset"}}}}"#);
        (body, problem.to_owned())
    });
    let faults = r#"
        {"kind":"quake"} | kind: unknown variant `quake`, expected one of `chaos`
        {"kind":7} | kind: invalid type: integer `7`
        {"kind":"error","code":"Quake"} | code: unknown error code "Quake", see GET /test/openapi.json
        {"kind":"duplicate","afterSeconds":-1} | afterSeconds: -1.0 is not a number of seconds
        {"kind":"delay","seconds":-1} | seconds: -1.0 is not a number of seconds
        ["reset"] | invalid type: sequence, expected a JSON object
        7 | invalid type: integer `7`, expected a JSON object
        {"kind":"loseResponse","times":1} | unknown field `times`
        {"kind":"truncate","bytes":1e99} | bytes: 1e+99 is not an integer of at least 0
        {"kind":"error","code":"ServerBusy","retryAfterSeconds":1e300} | retryAfterSeconds: 1e300 is not
        {"kind":"reset","applied":true,"appliedAfterSeconds":1} | applied and appliedAfterSeconds exclude each other
    "#;
    let faults = rows(faults).map(|(fault, problem)| {
        let body = format!(r#"{{"fault":{fault}}}"#);
        (body, format!("fault: {problem}"))
    });
    for (body, problem) in bodies.into_iter().chain(rules).chain(faults) {
        let error = kit.expect(400, "POST faults", &body).await;
        let text = error["error"].as_str().unwrap();
        assert!(text.starts_with(&problem), "{body}: {text}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_named() {
    let (kit, _) = Kit::start().await;
    let requests = r#"
        400 POST clock {"kind":"freeze","seconds":1} | unknown field `seconds`
        400 POST clock {"kind":"stop"} | kind: unknown variant `stop`, expected one of `advance`
        400 POST clock {"kind":"advance","seconds":-1} | seconds: -1.0 is not
        400 POST clock {"kind":"set","time":"today"} | time: not a date and time
        400 PUT throttle {"perPartition":4294967296} | perPartition: 4294967296 is not an integer from 0 to 4294967295
        400 GET requests?operation=InsertEntity | /test/requests has no query string: "operation=InsertEntity"
        400 POST reset {} | POST /test/reset takes no body
        404 GET quake | no such operation as GET /test/quake
        400 GET requests/after/-1 | "-1" is not the number of a request
        405 POST requests/after/1 | its methods are GET
        404 GET requests/before/1 | no such operation as GET /test/requests/before/1
        404 GET faults/7 | no fault with the id "7"
        404 DELETE faults/99999999999999999999 | no fault with the id "9999
        404 POST snapshots/x/restore | no snapshot with the id "x"
    "#;
    for (request, problem) in rows(requests) {
        let (status, request) = request.split_once(' ').unwrap();
        let (line, body) = request.split_at(request.find(" {").unwrap_or(request.len()));
        let status = status.parse().unwrap();
        let error = kit.expect(status, line, body.trim_start()).await;
        let text = error["error"].as_str().unwrap();
        assert!(text.contains(problem), "{text}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let (kit, _) = Kit::start().await;
    let blank = " ".repeat(1024 * 1024);
    let fits = format!("{{\"kind\":\"freeze\"}}{blank}");
    kit.expect(200, "POST clock", &fits[..1024 * 1024]).await;
    let error = kit.expect(413, "POST clock", fits).await;
    let expected = "the body has more than 1048576 bytes";
    assert_eq!(error, json!({ "error": expected }));
    kit.expect(204, "POST entities", blank.repeat(2)).await;
}

#[tokio::test]
async fn a_web_page_is_refused() {
    let (kit, _) = Kit::start().await;
    for (name, value) in [("origin", "http://127.0.0.1"), ("host", "example.com")] {
        let request = kit.client.post(kit.url("reset")).header(name, value);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 403);
        let error: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        let text = error["error"].as_str().unwrap();
        assert!(text.contains("not for web pages"), "{text}");
    }
}

/// As many as a test run with a connection for each test may keep.
#[tokio::test]
async fn idle_connections_do_not_keep_others_waiting() {
    let (kit, _) = Kit::start().await;
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
    let (kit, _) = Kit::start().await;
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
    let (kit, _) = Kit::start().await;
    let description = kit.get("openapi.json").await;
    let schemas = &description["components"]["schemas"];
    let ops = Op::ALL.iter().map(ToString::to_string);
    assert_eq!(schemas["Operation"]["enum"], ops.collect::<Value>());
    let codes = ErrorCode::KNOWN.iter().map(ErrorCode::as_str);
    let described = &schemas["ErrorFault"]["properties"]["code"]["enum"];
    assert_eq!(*described, codes.collect::<Value>());
    for (path, item) in description["paths"].as_object().unwrap() {
        let methods = item
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| *key != "parameters");
        let described: Vec<_> = methods.map(|method| method.to_uppercase()).collect();
        let path = &path[1..].replace("{id}", "7");
        for method in ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"] {
            let request = kit.client.request(method.parse().unwrap(), kit.url(path));
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

#[tokio::test]
async fn a_partition_map_is_changed_and_shown() {
    let (kit, table) = Kit::start().await;
    kit.expect(200, "POST clock", json!({ "kind": "freeze" }))
        .await;
    let range = |start: &str, end: Option<&str>, requests: u64, is_available: bool| {
        json!({
            "start": start, "end": end, "requests": requests, "entities": requests,
            "isAvailable": is_available,
        })
    };
    assert_eq!(
        kit.get("partitions/People").await,
        json!([range("", None, 0, true)])
    );
    let change = |kind: &str, key: &str| json!({ "kind": kind, "partitionKey": key });
    kit.expect(200, "POST partitions/People", change("split", "M"))
        .await;
    table.upsert_replace(&Employee::ada()).await.unwrap();
    let moved = kit.call("POST partitions/people", change("move", "Sales"));
    let ranges = json!([range("", Some("M"), 0, true), range("M", None, 1, false)]);
    assert_eq!(moved.await, (200, ranges));
    let error = table.upsert_replace(&Employee::ada()).await.unwrap_err();
    assert!(error.is_throttled(), "{error}");
    let merged = kit.expect(200, "POST partitions/People", change("merge", "M"));
    assert_eq!(merged.await, json!([range("", None, 0, false)]));
    for (path, body, part) in [
        ("partitions/People", change("split", ""), "first range"),
        ("partitions/People", change("merge", "M"), "\"M\""),
        ("partitions/People", change("quake", "M"), "quake"),
        (
            "partitions/People",
            json!({ "kind": "move" }),
            "partitionKey",
        ),
        ("partitions/7", change("split", "M"), "7"),
    ] {
        let refused = kit.expect(400, &format!("POST {path}"), &body).await;
        let error = refused["error"].as_str().unwrap().to_owned();
        assert!(error.contains(part), "{body}: {error}");
    }
    kit.expect(204, "POST reset", "").await;
    assert_eq!(
        kit.get("partitions/People").await,
        json!([range("", None, 0, true)])
    );
}
