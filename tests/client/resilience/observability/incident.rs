//! Tests that the guide shows the log of an incident as client and server write it.
//!
//! With `TABLESDK_WRITE_INCIDENT=1` the test rewrites that part of the guide. Time is virtual, so
//! the waits are real and the rest takes none; the ids of requests are numbered.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use harness::client_with;
use harness::generated::assert_generated;
use harness::log::{Log, keep_another_subscriber};
use tablesdk::{ErrorCode, RetryPolicy};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::Instant;
use tracing::Level;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt as log_format};

use crate::Employee;

#[tokio::test(start_paused = true)]
async fn the_guide_shows_the_log_of_an_incident() {
    let (client, server) = incident().await;
    let guide =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tablesdk/src/guide/observability.md");
    for (name, log) in [("client", client), ("server", server)] {
        let start = format!("<!-- incident: {name} -->\n```text\n");
        assert_generated(&guide, [&start, "```\n"], &log, "TABLESDK_WRITE_INCIDENT");
    }
}

/// The logs of the client and of the server.
async fn incident() -> (String, String) {
    // The pauses before retries.
    fastrand::seed(3);
    keep_another_subscriber();
    let retry = RetryPolicy::exponential().attempts(3);
    let server = TableServer::builder().log_requests_at_info().in_process();
    let server = server.unwrap();
    let faults = server.faults();
    let service = client_with(&server, |builder| builder.retry(retry));
    let table = service.table("Employees");
    table.create_table().await.unwrap();
    let (client, server) = (Log::default(), Log::default());
    let clock = Clock(Instant::now());
    macro_rules! layer {
        ($log:expr, $target:expr, $level:expr) => {{
            let log = $log.clone();
            log_format::layer()
                .with_ansi(false)
                .with_timer(clock)
                .with_writer(move || log.clone())
                .with_filter(filter_fn(|event| {
                    event.target() == $target && *event.level() <= $level
                }))
        }};
    }
    let subscriber = tracing_subscriber::registry()
        .with(layer!(client, "tablesdk", Level::DEBUG))
        .with(layer!(server, "tablesdk_server::request", Level::INFO));
    let _guard = subscriber.set_default();

    let busy = Fault::error(ErrorCode::ServerBusy).retry_after(Duration::from_secs(1));
    faults.next(Op::QueryEntity, busy.clone());
    faults.on(Op::QueryEntities).times(3).inject(busy);
    faults.on_writes().times(1).inject(Fault::lost_response());
    faults.next(Op::InsertEntity, Fault::lost_response());
    faults
        .on_any()
        .inject(Fault::delay(Duration::from_millis(4)));
    assert!(Employee::find(&table).await.is_none());
    table.upsert_replace(&Employee::ada()).await.unwrap();
    let grace = Employee::new("2", "Grace", 50);
    assert!(table.insert(&grace).await.unwrap_err().is_outcome_unknown());
    let query = table.query::<Employee>().partition("Sales").collect();
    assert!(query.await.unwrap_err().is_throttled());

    let mut ids = Vec::new();
    let client = with_numbered_ids(&client.text(), &mut ids);
    let server = with_numbered_ids(&server.text(), &mut ids);
    // Virtual time passes only while all tasks wait.
    (
        with_one_size(&client.replace("elapsed=0ns ", "elapsed=3.2ms ")),
        with_one_size(&server.replace("duration_us=0 ", "duration_us=180 ")),
    )
}

/// The time of day at which the incident happened.
#[derive(Clone, Copy)]
struct Clock(Instant);

impl FormatTime for Clock {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let passed = self.0.elapsed();
        let (seconds, millis) = (passed.as_secs(), passed.subsec_millis());
        assert!(seconds < 60);
        write!(writer, "2026-03-15T03:12:{seconds:02}.{millis:03}Z")
    }
}

/// Numbers the GUIDs in their order. `ids` has those that were met before.
fn with_numbered_ids(log: &str, ids: &mut Vec<String>) -> String {
    let mut rest = log;
    let mut numbered = String::new();
    while let Some(next) = rest.chars().next() {
        let Some(id) = rest
            .get(..36)
            .filter(|text| text.parse::<tablesdk::Guid>().is_ok())
        else {
            numbered.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        };
        let number = ids.iter().position(|known| known == id);
        let number = number.unwrap_or_else(|| {
            ids.push(id.to_owned());
            ids.len() - 1
        });
        // Those of the client are in quotes.
        let kind = if numbered.ends_with("client_request_id=\"") {
            'c'
        } else {
            '5'
        };
        numbered += &format!("{kind}0000000-0000-4000-8000-0000000000{:02}", number + 1);
        rest = &rest[36..];
    }
    numbered
}

/// With one size for all bodies of responses: they contain the time, whose digits differ in number.
fn with_one_size(log: &str) -> String {
    let field = |word: &str| {
        let (name, size) = word.split_once('=').unwrap_or_default();
        let is_size = matches!(name, "bytes_out" | "bytes_received") && size != "0";
        if is_size {
            format!("{name}=202")
        } else {
            word.to_owned()
        }
    };
    let words: Vec<_> = log.split(' ').map(field).collect();
    words.join(" ")
}
