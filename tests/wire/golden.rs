//! Transcripts in `golden/`, named by operation: requests as clients write them, and responses as
//! the documentation of the service and recordings show them, byte for byte. `batch-*.http` are the
//! batches of other clients.
//!
//! Lines with `>` are a request, lines with `<` its response. A request without a response in the
//! transcript must only succeed. Placeholders stand for values that differ in each run: `BASE` and
//! `ACCOUNT`, `ID` for the id of the request, `TIME` for the present, `BLANKS` for blanks at the
//! end of a line, and `ETAG`, in a request, for the last one that was returned. Lines end with CR
//! LF, as in HTTP; lines that end with a line feed alone are marked with `LF`. All headers are
//! compared, except those of HTTP and of the server itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use harness::raw::{RawClient, Response};
use tablesdk::Timestamp;
use tablesdk_server::TableServer;

/// Headers that HTTP, the clock or the server determines.
const NOT_COMPARED: [&str; 6] = [
    "connection",
    "content-length",
    "date",
    "server",
    "transfer-encoding",
    "x-ms-request-id",
];

#[tokio::test]
async fn responses_equal_the_transcripts() {
    for file in transcripts() {
        let name = file.display();
        let server = TableServer::start().await.unwrap();
        let client = RawClient::of(&server);
        let mut etag = String::new();
        for exchange in parse(&fs::read_to_string(&file).unwrap()) {
            let line = exchange.line;
            let request = exchange.request(&server, &etag);
            let headers: Vec<&str> = request.headers.iter().map(String::as_str).collect();
            let response = client.send(true, &request.line, &headers, &request.body);
            let response = response.await.unwrap();
            if let Some(new) = response.header("etag") {
                new.clone_into(&mut etag);
            }
            if exchange.response.is_empty() {
                assert!(response.status < 300, "{name}:{line}: {response:?}");
                continue;
            }
            let (expected, found) = (exchange.response(), found(&server, &response));
            assert!(
                found == expected,
                "{name}:{line}: {}\n\nexpected {expected:#?}\n\nfound {found:#?}",
                request.line
            );
        }
    }
}

#[test]
fn each_operation_has_a_transcript() {
    let operations =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tablesdk-protocol/src/operation");
    let stems = |paths: Vec<PathBuf>| -> BTreeSet<String> {
        let stem = |path: PathBuf| {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            stem.split('-').next().unwrap().to_owned()
        };
        paths.into_iter().map(stem).collect()
    };
    let mut expected = stems(files(&operations));
    for other in ["body", "change", "checksum", "headers", "message", "mod"] {
        assert!(expected.remove(other), "{other} is gone");
    }
    assert_eq!(stems(transcripts()), expected);
}

fn transcripts() -> Vec<PathBuf> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("wire/golden"))
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

struct Exchange<'a> {
    /// Where in the file it starts.
    line: usize,
    request: Vec<&'a str>,
    response: Vec<&'a str>,
}

struct Request {
    line: String,
    headers: Vec<String>,
    body: String,
}

fn parse(text: &str) -> Vec<Exchange<'_>> {
    let mut exchanges: Vec<Exchange<'_>> = Vec::new();
    let mut previous = None;
    for (index, line) in text.lines().enumerate() {
        let content = || line.get(2..).unwrap_or_default();
        let kind = line.chars().next();
        match kind {
            Some('>') => {
                if previous != Some('>') {
                    exchanges.push(Exchange {
                        line: index + 1,
                        request: Vec::new(),
                        response: Vec::new(),
                    });
                }
                exchanges.last_mut().unwrap().request.push(content());
            }
            Some('<') => exchanges.last_mut().unwrap().response.push(content()),
            Some('#') | None => {}
            Some(_) => panic!("line {} is neither > nor < nor #: {line}", index + 1),
        }
        previous = kind;
    }
    exchanges
}

/// Lines up to an empty one, and the text after it.
fn split<'a>(lines: &[&'a str]) -> (Vec<&'a str>, String) {
    let mut parts = lines.splitn(2, |line| line.is_empty());
    let head = parts.next().unwrap().to_vec();
    let body = parts.next().unwrap_or_default().join("\r\n");
    let body = body.replace("LF\r\n", "\n");
    (head, body.replace("BLANKS", " \t "))
}

impl Exchange<'_> {
    fn request(&self, server: &TableServer, etag: &str) -> Request {
        let (head, body) = split(&self.request);
        let known = |text: &str| {
            let text = text.replace("BASE", server.endpoint());
            text.replace("ETAG", etag)
        };
        let mut head = head.into_iter().map(known);
        Request {
            line: head.next().unwrap(),
            headers: head.collect(),
            body: known(&body),
        }
    }

    /// Status, headers in order, and body.
    fn response(&self) -> (String, Vec<String>, String) {
        let (head, body) = split(&self.response);
        let mut head = head.into_iter();
        let status = head.next().unwrap().to_owned();
        (status, sorted(head), body)
    }
}

fn found(server: &TableServer, response: &Response) -> (String, Vec<String>, String) {
    let id = response.header("x-ms-request-id").unwrap();
    assert!(response.header("date").is_some() && response.header("server").is_some());
    if let Some(length) = response.header("content-length") {
        assert_eq!(length.parse(), Ok(response.body.len()));
    }
    let account = server.credential().account().to_owned();
    let fixed = |text: &str| {
        let text = text.replace(server.endpoint(), "BASE").replace(id, "ID");
        without_times(&text.replace(&account, "ACCOUNT"))
    };
    let mut head = response.head.lines();
    let status = head.next().unwrap().replace("HTTP/1.1 ", "");
    let headers: Vec<String> = head.map(fixed).collect();
    (
        status,
        sorted(headers.iter().map(String::as_str)),
        fixed(&response.body),
    )
}

fn sorted<'a>(headers: impl Iterator<Item = &'a str>) -> Vec<String> {
    let named = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        let name = name.to_lowercase();
        (!NOT_COMPARED.contains(&&*name)).then(|| format!("{name}: {value}"))
    };
    let mut headers: Vec<String> = headers.filter_map(named).collect();
    headers.sort();
    headers
}

/// The text with every time of the last hour replaced, in whichever way it is written.
fn without_times(text: &str) -> String {
    let now = Timestamp::try_from(SystemTime::now()).unwrap();
    let is_recent = |time: Timestamp| now.abs_diff(time) < Duration::from_secs(3600);
    let mut out = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        // `2021-09-21T00:50:21.0781298Z`, its colons percent-encoded perhaps.
        let end = rest.find('Z').filter(|end| (20..=32).contains(&(end + 1)));
        let timestamp = end.and_then(|end| {
            let time: Timestamp = rest[..=end].replace("%3A", ":").parse().ok()?;
            is_recent(time).then_some(end + 1)
        });
        // `Tue, 25 Aug 2020 16:46:24 GMT`.
        let date = rest.get(..29).filter(|text| {
            let time = Timestamp::parse_http_date(text);
            time.is_ok_and(is_recent)
        });
        let length = timestamp.or(date.map(str::len));
        match length {
            Some(_) => out += "TIME",
            None => out.push(next),
        }
        rest = &rest[length.unwrap_or(next.len_utf8())..];
    }
    out
}
