//! `explore --test-endpoint`: the test bench of a server with its kit, as a browser without scripts
//! uses it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use reqwest::{Client, Response, StatusCode};
use tablesdk::{DynamicEntity, RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Op;
use tempfile::TempDir;

use crate::STRING;
use crate::run::run;

/// The program, and a browser that has opened its page.
struct Page {
    program: Child,
    client: Client,
    origin: String,
    cookie: String,
    token: String,
    /// The settings of the program.
    _home: TempDir,
}

impl Page {
    async fn open(account: &str, words: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tables"));
        command.env_clear().env(STRING, account);
        command.env("HOME", home.path());
        command.args(["explore", "--no-open"]).args(words);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut program = command.spawn().unwrap();
        let mut url = String::new();
        let mut out = BufReader::new(program.stdout.take().unwrap());
        out.read_line(&mut url).unwrap();
        let client = Client::builder().no_proxy();
        let client = client.redirect(reqwest::redirect::Policy::none());
        let client = client.build().unwrap();
        let origin = url.split("/open").next().unwrap().to_owned();
        let opened = client.get(url.trim()).send().await.unwrap();
        let cookie = opened.headers().get("set-cookie").unwrap();
        let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
        let mut page = Self {
            cookie: cookie.into(),
            program,
            client,
            origin,
            token: String::new(),
            _home: home,
        };
        let text = page.text("/bench/requests").await;
        let (_, rest) = text.split_once("name=\"token\" content=\"").unwrap();
        page.token = rest.split('"').next().unwrap().into();
        page
    }

    async fn get(&self, path: &str) -> Response {
        let request = self.client.get(format!("{}{path}", self.origin));
        request.header("Cookie", &self.cookie).send().await.unwrap()
    }

    async fn text(&self, path: &str) -> String {
        self.get(path).await.text().await.unwrap()
    }

    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let body = [fields, &[("token", &self.token)]].concat();
        let body: Vec<_> = body
            .iter()
            .map(|(name, value)| format!("{name}={}", encoded(value)))
            .collect();
        let request = self.client.post(format!("{}{path}", self.origin));
        let request = request.header("Cookie", &self.cookie);
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        request.body(body.join("&")).send().await.unwrap()
    }

    /// Sends a form, and returns where it leads.
    async fn done(&self, path: &str, fields: &[(&str, &str)]) -> String {
        let response = self.post(path, fields).await;
        assert_eq!(response.status(), StatusCode::SEE_OTHER, "{path}");
        let target = response.headers().get("location").unwrap();
        target.to_str().unwrap().to_owned()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn encoded(text: &str) -> String {
    let encoded = text.bytes().map(|byte| format!("%{byte:02X}"));
    encoded.collect()
}

/// A server with its kit, the page of its bench, and a client that does not retry.
struct Bench {
    server: TableServer,
    page: Page,
    table: TableClient,
}

impl Bench {
    async fn start(words: &[&str]) -> Self {
        let server = TableServer::builder().test_kit().start().await.unwrap();
        let account = server.connection_string();
        let kit = kit_url(&server);
        let words = [words, &["--test-endpoint", &kit]].concat();
        let page = Page::open(&account, &words).await;
        let builder = TableServiceClient::builder(server.endpoint());
        let builder = builder.credential(server.credential());
        let service = builder.retry(RetryPolicy::none()).build().unwrap();
        let table = service.table("People");
        table.create_table().await.unwrap();
        Self {
            server,
            page,
            table,
        }
    }

    async fn insert(&self, row: &str) -> Result<(), tablesdk::Error> {
        let ada = DynamicEntity::new("Sales", row).with("Age", 36);
        self.table.insert(&ada).await.map(drop)
    }
}

fn kit_url(server: &TableServer) -> String {
    format!("http://{}/test", server.admin_addr().unwrap())
}

/// The row of the grid that shows this text.
fn row_of<'t>(page: &'t str, text: &str) -> &'t str {
    let rows = page.split("<tr").filter(|row| row.contains(text));
    rows.last()
        .unwrap_or_else(|| panic!("no row has {text:?}: {page}"))
}

fn number_of(row: &str) -> u64 {
    let (_, rest) = row.split_once("data-number=\"").unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_watched_searched_and_opened() {
    let bench = Bench::start(&[]).await;
    bench.insert("000145").await.unwrap();
    bench.insert("000145").await.unwrap_err();
    let query = bench.table.query::<DynamicEntity>().odata("Age gt 3");
    query.collect().await.unwrap();

    let page = bench.page.text("/bench/requests").await;
    let refused = row_of(&page, "EntityAlreadyExists");
    assert!(refused.contains("Sales / 000145") && refused.contains("409"));
    let scan = row_of(&page, "QueryEntities");
    assert!(scan.contains("table scan"), "{scan}");
    assert!(page.contains("table scans: <b data-count=\"scans\">1</b>"));
    assert!(page.contains("Lints <span class=\"pill warn\">1</span>"));

    let found = bench.page.text("/bench/requests?find=already").await;
    assert!(found.contains("EntityAlreadyExists") && !found.contains("table scan</span>"));
    let nothing = bench.page.text("/bench/requests?find=<b>quake").await;
    assert!(nothing.contains("No request has"), "{nothing}");
    assert!(nothing.contains("&lt;b&gt;quake") && !nothing.contains("<b>quake"));

    let number = number_of(scan);
    let opened = format!("/bench/requests?selected={number}");
    let opened = bench.page.text(&opened).await;
    assert!(opened.contains("<dt>Filter</dt><dd><span class=\"mono\">Age gt 3</span></dd>"));
    assert!(opened.contains("1 returned, 1 examined"), "{opened}");
    let forgotten = bench.page.text("/bench/requests?selected=999999").await;
    assert!(forgotten.contains("not among the last 1,000"));

    let lints = bench.page.text("/bench/lints").await;
    assert!(lints.contains("Queries read the whole table"), "{lints}");
    assert!(lints.contains("Restrict the query to a partition"));
    assert!(lints.contains(&format!("selected={number}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_requests_come_as_rows_after_a_number() {
    let bench = Bench::start(&[]).await;
    let page = bench.page.text("/bench/requests").await;
    let last = number_of(row_of(&page, "data-number"));
    let after = format!("/bench/requests/after/{last}");
    let none = bench.page.text(&after).await;
    assert!(none.contains(&format!("data-last=\"{last}\" data-requests=\"0\"")));
    bench.insert("1").await.unwrap();
    bench.insert("2").await.unwrap();
    let two = bench.page.text(&after).await;
    let (first, second) = (last + 1, last + 2);
    assert!(two.contains(&format!("data-last=\"{second}\" data-requests=\"2\"")));
    assert!(two.contains("Sales / 1") && two.contains("Sales / 2") && !two.contains("<html"));
    let searched = bench.page.text(&format!("{after}?find=sales+%2F+2")).await;
    assert!(searched.contains("Sales / 2") && !searched.contains("Sales / 1"));

    // Those that are forgotten leave a gap.
    bench.page.done("/bench/requests/forget", &[]).await;
    let empty = bench.page.text("/bench/requests").await;
    assert!(empty.contains("has recorded no request"), "{empty}");
    assert!(empty.contains(bench.server.endpoint()));
    bench.insert("3").await.unwrap();
    let gap = bench
        .page
        .text(&format!("/bench/requests/after/{first}"))
        .await;
    assert!(gap.contains("not shown"), "{gap}");
    for wrong in ["-1", "x", "18446744073709551616"] {
        let path = format!("/bench/requests/after/{wrong}");
        let response = bench.page.get(&path);
        assert_eq!(response.await.status(), StatusCode::BAD_REQUEST, "{wrong}");
    }
    let last = u64::MAX;
    let none = bench
        .page
        .text(&format!("/bench/requests/after/{last}"))
        .await;
    assert!(none.contains("data-requests=\"0\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_requests_are_a_page_of_the_last_ones() {
    let bench = Bench::start(&[]).await;
    let entities = (0..1_100).map(|row| DynamicEntity::new(format!("p{row}"), "1"));
    for entity in entities {
        bench.table.insert(&entity).await.unwrap();
    }
    let page = bench.page.text("/bench/requests").await;
    assert_eq!(page.matches("data-number").count(), 1_000);
    assert!(page.contains("p1099 / 1") && !page.contains("p50 / 1"));
    assert!(page.contains("requests are not shown"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_response_is_injected_by_one_click_and_explained() {
    let bench = Bench::start(&[]).await;
    bench.insert("1").await.unwrap();
    let page = bench.page.text("/bench/requests").await;
    let number = number_of(row_of(&page, "Sales / 1")).to_string();
    let page = bench
        .page
        .text(&format!("/bench/requests?selected={number}"))
        .await;
    assert!(page.contains("<option selected>InsertEntity</option>"));
    assert!(page.contains("name=\"rk\" value=\"1\""), "{page}");

    let fields = [
        ("view", "Requests"),
        ("selected", &*number),
        ("preset", "lost"),
        ("times", "1"),
        ("operation", "InsertEntity"),
        ("table", "People"),
        ("pk", "Sales"),
        ("rk", "2"),
    ];
    let back = bench.page.done("/bench/faults", &fields).await;
    assert_eq!(back, format!("/bench/requests?selected={number}"));
    let rules = bench.page.text("/bench/faults").await;
    assert!(rules.contains("carried out, connection reset"));
    let conditions = "InsertEntity · table \"People\" · PartitionKey \"Sales\" · RowKey \"2\"";
    assert!(
        rules.contains(&conditions.replace('"', "&quot;")),
        "{rules}"
    );
    assert!(rules.contains("0 of 1"));

    bench.insert("3").await.unwrap();
    let lost = bench.insert("2").await.unwrap_err();
    assert!(lost.is_outcome_unknown(), "{lost:?}");
    let page = bench.page.text("/bench/requests").await;
    let row = row_of(&page, "carried out, connection reset");
    assert!(row.contains("Sales / 2") && row.contains("204"), "{row}");
    let opened = format!("/bench/requests?selected={}", number_of(row));
    let opened = bench.page.text(&opened).await;
    assert!(
        opened.contains("which is not in force any more"),
        "{opened}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_added_shown_and_removed() {
    let bench = Bench::start(&[]).await;
    let fields = [
        ("view", "Faults"),
        ("kind", "error"),
        ("code", "OperationTimedOut"),
        ("applied", "true"),
        ("probability", "0.5"),
        ("seed", "7"),
        ("skip", "1"),
        ("pk", "<script>\u{202e}"),
    ];
    bench.page.done("/bench/faults", &fields).await;
    let busy = [("preset", "busy"), ("operation", "InsertEntity")];
    bench.page.done("/bench/faults", &busy).await;
    // A rule of a test in the server's own process.
    let own = bench.server.faults().on(Op::DeleteTable);
    let own = own.inject(tablesdk_server::testing::Fault::reset());
    let page = bench.page.text("/bench/faults").await;
    assert!(page.contains("Faults <span class=\"pill warn\">3</span>"));
    assert!(
        page.contains("not the first one · with probability 0.5, seed 7"),
        "{page}"
    );
    assert!(page.contains("&lt;script&gt;\\u{202e}") && !page.contains('\u{202e}'));
    assert!(page.contains("DeleteTable"));

    assert!(bench.insert("1").await.unwrap_err().is_throttled());
    let page = bench.page.text("/bench/requests").await;
    let number = number_of(row_of(&page, "ServerBusy"));
    let page = bench
        .page
        .text(&format!("/bench/requests?selected={number}"))
        .await;
    assert!(page.contains("Remove rule 2"), "{page}");
    let remove = [("view", "Requests"), ("id", "2")];
    let back = bench.page.done("/bench/faults/remove", &remove).await;
    assert_eq!(back, "/bench/requests");
    bench.insert("1").await.unwrap();
    let id = own.id().to_string();
    bench
        .page
        .done("/bench/faults/remove", &[("id", &id)])
        .await;

    let rates = [("perPartition", "1")];
    bench.page.done("/bench/throttle", &rates).await;
    let page = bench.page.text("/bench/faults").await;
    assert!(page.contains("name=\"perPartition\" value=\"1\""));
    bench.page.done("/bench/faults/clear", &[]).await;
    let page = bench.page.text("/bench/faults").await;
    assert!(
        page.contains("None: each request is answered as usual"),
        "{page}"
    );
    assert!(page.contains("name=\"perPartition\" value=\"\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_table_shows_its_ranges() {
    let bench = Bench::start(&[]).await;
    bench.insert("1").await.unwrap();
    let partitions = bench.server.partitions("People").unwrap();
    partitions.split_at("M<b>").unwrap();
    bench.insert("2").await.unwrap();
    let page = bench.page.text("/t/People/schema").await;
    assert!(page.contains("2 ranges of partitions"), "{page}");
    assert!(page.contains("M&lt;b&gt;"), "{page}");
    assert!(!page.contains(">moves<"), "{page}");
    let rates = [("perRange", "7")];
    bench.page.done("/bench/throttle", &rates).await;
    let faults = bench.page.text("/bench/faults").await;
    assert!(faults.contains("name=\"perRange\" value=\"7\""), "{faults}");

    bench.server.clock().freeze();
    partitions.move_range("").unwrap();
    let page = bench.page.text("/t/Others/schema").await;
    assert!(!page.contains("ranges of partitions"), "{page}");
    partitions.merge_at("M<b>").unwrap();
    bench
        .server
        .clock()
        .advance(std::time::Duration::from_secs(5));
    let page = bench.page.text("/t/People/schema").await;
    assert!(page.contains("1 range of partitions"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_kit_refuses_is_shown_with_its_reason() {
    let bench = Bench::start(&[]).await;
    for (path, fields, reason) in [
        (
            "/bench/faults",
            &[("kind", "quake")][..],
            "unknown variant `quake`",
        ),
        (
            "/bench/faults",
            &[("kind", "delay")],
            "missing field `seconds`",
        ),
        (
            "/bench/faults",
            &[("kind", "delay"), ("seconds", "1"), ("bytes", "1")],
            "unknown field `bytes`",
        ),
        (
            "/bench/faults",
            &[("preset", "lost"), ("times", "-1")],
            "times: -1 is not an integer",
        ),
        (
            "/bench/faults",
            &[("preset", "lost"), ("times", "\"><b>")],
            "times: ",
        ),
        (
            "/bench/faults/remove",
            &[("id", "../reset")],
            "no fault with the id",
        ),
        ("/bench/throttle", &[("perAccount", "many")], "perAccount: "),
        (
            "/bench/clock",
            &[("kind", "stop")],
            "unknown variant `stop`",
        ),
        (
            "/bench/clock",
            &[("kind", "advance"), ("seconds", "-1")],
            "seconds: -1.0 is not",
        ),
        (
            "/bench/clock",
            &[("kind", "set"), ("time", "today")],
            "not a date and time",
        ),
        (
            "/bench/snapshots/restore",
            &[("id", "9")],
            "no snapshot with the id",
        ),
        (
            "/bench/snapshots/forget",
            &[("id", "1/restore")],
            "no snapshot with the id",
        ),
    ] {
        let response = bench.page.post(path, fields).await;
        assert_eq!(
            response.status(),
            StatusCode::BAD_REQUEST,
            "{path} {fields:?}"
        );
        let text = response.text().await.unwrap();
        assert!(text.contains(reason), "{path} {fields:?}: {text}");
        assert!(!text.contains("<b>\""), "{text}");
    }
    let page = bench.page.text("/bench/faults").await;
    assert!(page.contains("None: each request is answered as usual"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_is_frozen_moved_and_resumed() {
    let bench = Bench::start(&[]).await;
    let set = [
        ("view", "Clock"),
        ("kind", "set"),
        ("time", "2030-02-28T23:59:59Z"),
    ];
    let back = bench.page.done("/bench/clock", &set).await;
    assert_eq!(back, "/bench/clock");
    let minute = [("view", "Clock"), ("kind", "advance"), ("seconds", "60")];
    bench.page.done("/bench/clock", &minute).await;
    let page = bench.page.text("/bench/clock").await;
    assert!(page.contains("2030-03-01T00:00:59Z"), "{page}");
    assert!(page.contains("frozen") && page.contains("value=\"resume\""));
    // From the tools above each view.
    let resume = [("view", "Lints"), ("kind", "resume")];
    assert_eq!(
        bench.page.done("/bench/clock", &resume).await,
        "/bench/lints"
    );
    assert!(!bench.server.clock().is_frozen());
    let page = bench.page.text("/bench/requests").await;
    assert!(page.contains("value=\"freeze\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_taken_and_restored() {
    let bench = Bench::start(&[]).await;
    let page = bench.page.text("/bench/snapshots").await;
    assert!(page.contains("None. A snapshot keeps"));
    let back = bench
        .page
        .done("/bench/snapshots", &[("view", "Requests")])
        .await;
    assert_eq!(back, "/bench/requests");
    bench.insert("1").await.unwrap();
    let page = bench.page.text("/bench/requests").await;
    assert!(page.contains("requests since snapshot 1"), "{page}");
    let confirm = bench.page.text("/bench/snapshots?restore=1").await;
    assert!(confirm.contains("Restore snapshot 1?"), "{confirm}");
    let query = || bench.table.query::<DynamicEntity>().count();
    assert_eq!(query().await.unwrap(), 1, "asking changes nothing");
    let restored = bench.page.done("/bench/snapshots/restore", &[("id", "1")]);
    assert_eq!(restored.await, "/bench/snapshots");
    assert_eq!(query().await.unwrap(), 0);
    bench
        .page
        .done("/bench/snapshots/forget", &[("id", "1")])
        .await;
    let page = bench.page.text("/bench/snapshots").await;
    assert!(page.contains("None. A snapshot keeps"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_read_only_restores_nothing() {
    let bench = Bench::start(&["--read-only"]).await;
    bench.page.done("/bench/snapshots", &[]).await;
    bench.insert("1").await.unwrap();
    let page = bench.page.text("/bench/snapshots?restore=1").await;
    assert!(
        page.contains("the page was started with --read-only"),
        "{page}"
    );
    assert!(!page.contains("action=\"/bench/snapshots/restore\""));
    let response = bench.page.post("/bench/snapshots/restore", &[("id", "1")]);
    assert_eq!(response.await.status(), StatusCode::FORBIDDEN);
    let count = bench.table.query::<DynamicEntity>().count();
    assert_eq!(count.await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_keys_and_markup_are_text() {
    let bench = Bench::start(&[]).await;
    let key = format!("<img src=x onerror=alert(1)>{}", "k".repeat(400));
    let entity = DynamicEntity::new(&*key, "\u{202e}<script>");
    bench.table.insert(&entity).await.unwrap();
    let query = bench
        .table
        .query::<DynamicEntity>()
        .odata("Note eq '<svg onload=a>'");
    query.collect().await.unwrap();
    let page = bench.page.text("/bench/requests").await;
    let number = number_of(row_of(&page, "&lt;img"));
    for path in [
        "/bench/requests".to_owned(),
        format!("/bench/requests?selected={number}"),
        format!("/bench/requests?selected={}", number + 1),
        "/bench/lints".to_owned(),
    ] {
        let page = bench.page.text(&path).await;
        // A field has the key itself, since it is sent.
        let page = page.replace("value=\"\u{202e}&lt;script&gt;\"", "");
        for live in ["<img src=x", "<svg", "<script>", "\u{202e}"] {
            assert!(!page.contains(live), "{path} {live}: {page}");
        }
    }
    let opened = bench
        .page
        .text(&format!("/bench/requests?selected={number}"))
        .await;
    assert!(
        opened.contains(&"k".repeat(400)),
        "the panel has the whole key"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kit_that_is_gone_is_an_error_with_what_to_do() {
    let bench = Bench::start(&[]).await;
    let Bench { server, page, .. } = bench;
    server.shutdown().await.unwrap();
    for path in ["requests", "faults", "clock", "snapshots", "lints"] {
        let text = page.text(&format!("/bench/{path}")).await;
        assert!(text.contains("no test kit at http://127.0.0.1:"), "{text}");
        assert!(text.contains("start tablesdk-server with --test"));
    }
    let poll = page.get("/bench/requests/after/0").await;
    assert_eq!(poll.status(), StatusCode::BAD_GATEWAY);
    let change = page.post("/bench/clock", &[("kind", "freeze")]).await;
    assert_eq!(change.status(), StatusCode::BAD_GATEWAY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_kit_and_a_page_without_one_say_how_to_get_it() {
    let server = TableServer::builder().admin_port(0).start().await.unwrap();
    let account = server.connection_string();
    let kit = kit_url(&server);
    let page = Page::open(&account, &["--test-endpoint", &kit]).await;
    let text = page.text("/bench/faults").await;
    assert!(text.contains("is no test kit of this version"), "{text}");

    let page = Page::open(&account, &[]).await;
    let response = page.get("/bench/requests").await;
    assert_eq!(response.status(), StatusCode::CONFLICT);
    let text = response.text().await.unwrap();
    assert!(text.contains("tablesdk-server --test"), "{text}");
    let response = page.post("/bench/clock", &[("kind", "freeze")]).await;
    assert_eq!(response.status(), StatusCode::CONFLICT);
    assert!(!page.text("/").await.contains("href=\"/bench"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_endpoint_that_is_not_local_is_refused_before_anything_is_sent() {
    for url in [
        "http://example.com/test",
        "https://127.0.0.1/test",
        "http://a:secret@127.0.0.1:1/test",
        "x",
    ] {
        let (code, out, errors) = run(&["explore", "--no-open", "--test-endpoint", url], "").await;
        assert_eq!(code, 2, "{url}: {errors}");
        assert!(
            out.is_empty() && errors.contains("--test-endpoint"),
            "{errors}"
        );
        assert!(!errors.contains("secret"), "{errors}");
    }
}
