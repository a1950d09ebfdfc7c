//! The stored forms of the patterns in the design guide, byte for byte as the client sends them, in
//! `*.http` beside this file. The guide `stored_forms` shows the entities of these files.
//!
//! Lines of a batch end with CR LF, and with a line feed in the files. Placeholders stand for
//! values that differ in each run: `BASE`, `GUID`, `ETAG`, `VERSION` of a wide entity, and `NN` for
//! the number of a partition.

mod chunked;
mod copy;
mod counter;
mod elsewhere;
mod expiry;
mod index;
mod lease;
mod marker;
mod objects;
mod outbox;
mod rolling;
mod sequence;
mod series;
mod unique_elsewhere;
mod wide;

use std::fs;
use std::path::{Path, PathBuf};

use harness::Subject;
use harness::generated::assert_generated_file;
use harness::proxy::{Proxy, SentRequest};
use tablesdk::{Guid, RetryPolicy, TableClient};
use tablesdk_server::TableServer;

const BASE: &str = "http://in-process.invalid/devstoreaccount1";

/// The requests of operations on a new table, each with a title.
struct Transcript {
    subject: Subject,
    table: TableClient,
    proxy: Proxy,
    text: String,
}

impl Transcript {
    async fn new() -> Self {
        let (subject, table, proxy) = Subject::behind_proxy(RetryPolicy::none()).await;
        Self {
            subject,
            table,
            proxy,
            text: String::new(),
        }
    }

    fn server(&self) -> &TableServer {
        self.subject.server()
    }

    /// Adds the requests of an operation.
    async fn add<T>(&mut self, title: &str, operation: impl AsyncFnOnce(&TableClient) -> T) -> T {
        let before = self.proxy.sent().len();
        let result = operation(&self.table).await;
        self.text += &format!("### {title}\n");
        for request in &self.proxy.sent()[before..] {
            self.text += &shown(request).replace(BASE, "BASE");
        }
        result
    }

    /// Asserts that the requests are those of a file.
    #[track_caller]
    fn assert_is(&self, file: &str) {
        let file = directory().join(file);
        assert_generated_file(&file, &self.text, "TABLESDK_WRITE_STORED_FORMS");
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("wire/stored_forms")
}

fn shown(request: &SentRequest) -> String {
    let mut text = format!("{} {}\n", request.method, request.url);
    for name in ["if-match", "prefer"] {
        if let Some(value) = request.headers.get(name) {
            text += &format!("{name}: {}\n", value.to_str().unwrap());
        }
    }
    if !request.body.is_empty() {
        let body = std::str::from_utf8(&request.body).unwrap();
        text += &format!("\n{}\n", body.trim_end().replace("\r\n", "\n"));
    }
    without_random(&(text + "\n"))
}

fn without_random(text: &str) -> String {
    const ETAG: [&str; 2] = ["W/\"datetime'", "'\""];
    let mut shown = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let is_guid = rest.get(..36).is_some_and(|id| id.parse::<Guid>().is_ok());
        let etag = rest
            .strip_prefix(ETAG[0])
            .and_then(|rest| rest.split_once(ETAG[1]));
        (shown, rest) = match etag {
            Some((_, rest)) => (shown + "ETAG", rest),
            None if is_guid => (shown + "GUID", &rest[36..]),
            None if is_version(&shown, rest) => (shown + "VERSION", &rest[16..]),
            // The number of the partition of a pointer is random.
            None if is_directory(&shown, rest) => (shown + "NN", &rest[2..]),
            None => (shown + &rest[..next.len_utf8()], &rest[next.len_utf8()..]),
        };
    }
    shown
}

/// The version of a wide entity, in a row key or as a property.
fn is_version(before: &str, rest: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let starts = ["!", "%21", "~tablesdk.wide.", "\"TablesdkVersion\":\""];
    starts.iter().any(|start| before.ends_with(start)) && rest.get(..16).is_some_and(is_hex)
}

fn is_directory(before: &str, rest: &str) -> bool {
    let number = rest.get(..2).map(str::parse::<u8>);
    let is_number = number.is_some_and(|number| number.is_ok());
    before.ends_with("~tablesdk.outbox.") && is_number
}

#[test]
fn the_guide_shows_entities_of_the_transcripts() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tablesdk/src/guide/stored_forms.md");
    let guide = fs::read_to_string(guide).unwrap();
    let files = fs::read_dir(directory()).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension() == Some("http".as_ref()));
    let transcripts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    let transcripts: String = transcripts.collect();
    let entities: Vec<&str> = guide.lines().filter(|line| line.starts_with('{')).collect();
    assert!(entities.len() > 5);
    for entity in entities {
        assert!(transcripts.lines().any(|line| line == entity), "{entity}");
    }
}
