//! [`Kit`]: the kit of a server for tests, as `tablesdk-server --test` opens it, over HTTP with
//! JSON.
//!
//! The program asks it, and never the browser: the kit has no authentication, and refuses web
//! pages. Its answers are shown as they are, so each is limited in time and size. Knows no pages.

use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::app::is_loopback;
use crate::error::{AnyError, UsageError};

/// The kit of a server for tests.
pub(super) struct Kit {
    client: Client,
    /// Without a slash at its end.
    url: String,
}

impl Kit {
    /// The kit at a URL of this machine. Nothing is sent.
    pub(super) fn new(url: &str) -> Result<Self, AnyError> {
        let refused = |problem| UsageError(format!("--test-endpoint: {problem}").into());
        let url = local(url).map_err(refused)?;
        let client = Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_MAX)
            .timeout(ANSWER_MAX)
            .build()?;
        Ok(Self { client, url })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The last requests with a higher number: at most 1,000.
    pub(super) async fn requests_after(&self, number: u64) -> Result<Vec<Request>, KitError> {
        self.get(&format!("requests/after/{number}")).await
    }

    pub(super) async fn forget_requests(&self) -> Result<(), KitError> {
        self.send(Method::DELETE, "requests", None).await.map(drop)
    }

    pub(super) async fn lints(&self) -> Result<Vec<Lint>, KitError> {
        self.get("lints").await
    }

    /// The rules in force.
    pub(super) async fn rules(&self) -> Result<Vec<Rule>, KitError> {
        self.get("faults").await
    }

    /// Adds a rule, and returns its id.
    pub(super) async fn add_rule(&self, rule: &Json) -> Result<u64, KitError> {
        self.created("faults", Some(rule)).await
    }

    pub(super) async fn remove_rule(&self, id: &str) -> Result<(), KitError> {
        let path = format!("faults/{}", segment(id));
        self.send(Method::DELETE, &path, None).await.map(drop)
    }

    /// Removes all rules and the throttle.
    pub(super) async fn remove_rules(&self) -> Result<(), KitError> {
        self.send(Method::DELETE, "faults", None).await.map(drop)
    }

    pub(super) async fn throttle(&self) -> Result<Throttle, KitError> {
        self.get("throttle").await
    }

    pub(super) async fn set_throttle(&self, rates: &Json) -> Result<(), KitError> {
        let sent = self.send(Method::PUT, "throttle", Some(rates));
        sent.await.map(drop)
    }

    pub(super) async fn clock(&self) -> Result<Clock, KitError> {
        self.get("clock").await
    }

    pub(super) async fn change_clock(&self, change: &Json) -> Result<(), KitError> {
        let sent = self.send(Method::POST, "clock", Some(change));
        sent.await.map(drop)
    }

    pub(super) async fn snapshots(&self) -> Result<Vec<Snapshot>, KitError> {
        self.get("snapshots").await
    }

    /// Keeps all tables as they are, and returns the id.
    pub(super) async fn take_snapshot(&self) -> Result<u64, KitError> {
        self.created("snapshots", None).await
    }

    pub(super) async fn restore(&self, id: &str) -> Result<(), KitError> {
        let path = format!("snapshots/{}/restore", segment(id));
        self.send(Method::POST, &path, None).await.map(drop)
    }

    pub(super) async fn forget_snapshot(&self, id: &str) -> Result<(), KitError> {
        let path = format!("snapshots/{}", segment(id));
        self.send(Method::DELETE, &path, None).await.map(drop)
    }

    /// The ranges of partitions of a table, which has a valid name.
    pub(super) async fn ranges(&self, table: &str) -> Result<Vec<Range>, KitError> {
        self.get(&format!("partitions/{table}")).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, KitError> {
        read(&self.send(Method::GET, path, None).await?)
    }

    async fn created(&self, path: &str, body: Option<&Json>) -> Result<u64, KitError> {
        #[derive(Deserialize)]
        struct Created {
            id: u64,
        }
        let created: Created = read(&self.send(Method::POST, path, body).await?)?;
        Ok(created.id)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Json>,
    ) -> Result<Vec<u8>, KitError> {
        let mut request = self.client.request(method, format!("{}/{path}", self.url));
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let failed = |error: reqwest::Error| {
            let url = self.url.clone();
            if error.is_timeout() && !error.is_connect() {
                KitError::Late(url)
            } else {
                KitError::Unreachable(url)
            }
        };
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let bytes = bounded(response).await?.map_err(failed)?;
        if status.is_success() {
            return Ok(bytes);
        }
        match serde_json::from_slice::<Refusal>(&bytes) {
            Ok(refusal) => Err(KitError::Refused(refusal.error)),
            Err(_) => Err(KitError::Unknown(self.url.clone(), status.as_u16())),
        }
    }
}

/// The response of the kit to a request that it refuses.
#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// The body of a response. The outer error is that it is too large.
async fn bounded(mut response: Response) -> Result<reqwest::Result<Vec<u8>>, KitError> {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if bytes.len() + chunk.len() <= ANSWER_BYTES_MAX => {
                bytes.extend_from_slice(&chunk);
            }
            Ok(Some(_)) => return Err(KitError::TooLarge),
            Ok(None) => return Ok(Ok(bytes)),
            Err(error) => return Ok(Err(error)),
        }
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, KitError> {
    serde_json::from_slice(bytes).map_err(|error| KitError::Malformed(error.to_string()))
}

/// An id that a form has sent, as a segment of a path.
fn segment(id: &str) -> String {
    let digits = id.bytes().all(|byte| byte.is_ascii_digit());
    if digits && !id.is_empty() && id.len() <= DIGITS_MAX {
        id.to_owned()
    } else {
        // No id of the kit: it refuses it.
        "none".to_owned()
    }
}

/// Reads the URL of a kit. The text is not repeated, because it may have a password.
fn local(text: &str) -> Result<String, &'static str> {
    let mut url: Url = text
        .parse()
        .map_err(|_| "this is not a URL such as http://127.0.0.1:36157/test")?;
    if url.scheme() != "http" {
        return Err("the kit of a test server has a URL with http");
    }
    let host = url.host_str().unwrap_or_default();
    if host == "localhost" {
        // No name is looked up.
        url.set_host(Some("127.0.0.1")).map_err(|_| NOT_HERE)?;
    } else if !is_loopback(host) {
        return Err(NOT_HERE);
    }
    if url.path().trim_end_matches('/') != "/test"
        || url.query().is_some()
        || url.fragment().is_some()
        || !url.username().is_empty()
        || url.password().is_some()
    {
        return Err(
            "give the URL that tablesdk-server --test prints as \"test\": http://127.0.0.1:PORT/test",
        );
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

const NOT_HERE: &str = "the kit of a test server is on this machine: its host is 127.0.0.1";

/// Why the kit gives no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum KitError {
    #[error(
        "no test kit at {0}: start tablesdk-server with --test, and tables explore with the URL that it prints as \"test\""
    )]
    Unreachable(String),
    #[error("the test kit at {0} has not answered within {seconds} seconds", seconds = ANSWER_MAX.as_secs())]
    Late(String),
    #[error(
        "{0} is no test kit of this version, since it answers with {1}: start tablesdk-server with --test"
    )]
    Unknown(String, u16),
    #[error("the test kit has refused this: {0}")]
    Refused(String),
    #[error("the answer of the test kit has more than {mebi} MiB", mebi = ANSWER_BYTES_MAX >> 20)]
    TooLarge,
    #[error("the answer of the test kit cannot be read, is it of another version? {0}")]
    Malformed(String),
}

/// A recorded request.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    pub(super) number: u64,
    /// `None` for a request that was not authenticated, could not be decoded, or was for a resource
    /// that does not exist.
    pub(super) operation: Option<String>,
    pub(super) table: Option<String>,
    pub(super) partition_key: Option<String>,
    pub(super) entities: Vec<NamedEntity>,
    pub(super) access: Option<String>,
    pub(super) filter: Option<String>,
    pub(super) filter_refusal: Option<String>,
    pub(super) select: Option<Vec<String>>,
    pub(super) top: Option<u64>,
    pub(super) is_continuation: bool,
    pub(super) attempt: u64,
    pub(super) client_request_id: Option<String>,
    pub(super) time: String,
    pub(super) status: Option<u16>,
    pub(super) error_code: Option<String>,
    pub(super) entities_returned: u64,
    pub(super) entities_examined: u64,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    pub(super) fault: Option<RequestFault>,
}

/// An entity that a request names.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NamedEntity {
    pub(super) operation: String,
    pub(super) partition_key: String,
    pub(super) row_key: String,
}

/// The fault that was injected into a request.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RequestFault {
    /// The id of the rule; `None` for the throttle.
    pub(super) rule: Option<u64>,
    pub(super) text: String,
}

/// A rule in force.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule {
    pub(super) id: u64,
    pub(super) hits: u64,
    pub(super) operations: Option<Vec<String>>,
    pub(super) account: Option<String>,
    pub(super) table: Option<String>,
    pub(super) partition_key: Option<String>,
    pub(super) row_key: Option<String>,
    pub(super) skip: u64,
    pub(super) times: Option<u64>,
    pub(super) probability: f64,
    pub(super) seed: u64,
    pub(super) fault: String,
}

/// Entities per second; `None` without a limit.
#[expect(clippy::struct_field_names, reason = "the names of the kit")]
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Throttle {
    pub(super) per_partition: Option<u32>,
    pub(super) per_account: Option<u32>,
    pub(super) per_range: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Clock {
    pub(super) now: String,
    pub(super) is_frozen: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Snapshot {
    pub(super) id: u64,
    pub(super) time: String,
    /// How many requests came after it.
    pub(super) requests_since: u64,
}

/// A range of the partitions of a table.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Range {
    pub(super) start: String,
    pub(super) requests: u64,
    pub(super) is_available: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Lint {
    pub(super) kind: String,
    pub(super) table: String,
    pub(super) requests: u64,
    pub(super) observation: String,
    /// The number of one of the requests.
    pub(super) example: u64,
    pub(super) advice: String,
}

/// A JSON object of those fields of a form that are filled in. What looks like a number is one; the
/// kit names what is not valid.
pub(super) fn object<'f>(fields: impl IntoIterator<Item = (&'static str, &'f str)>) -> Json {
    let fields = fields.into_iter().filter(|(_, text)| !text.is_empty());
    fields
        .map(|(name, text)| (name.to_owned(), json!(text)))
        .collect()
}

/// The value of a field that is a number. The kit names what is not one.
pub(super) fn number(text: &str) -> Json {
    let number = serde_json::from_str::<serde_json::Number>(text.trim());
    number.map_or_else(|_| json!(text), Json::Number)
}

const CONNECT_MAX: Duration = Duration::from_secs(2);
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// A thousand requests whose batches name long keys.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// The digits of the largest 64-bit number.
const DIGITS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kit_is_on_this_machine() {
        for (text, expected) in [
            ("http://127.0.0.1:1234/test", "http://127.0.0.1:1234/test"),
            ("http://127.0.0.1:1234/test/", "http://127.0.0.1:1234/test"),
            ("http://localhost:1234/test", "http://127.0.0.1:1234/test"),
            ("http://127.1:1234/test", "http://127.0.0.1:1234/test"),
        ] {
            assert_eq!(local(text).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "127.0.0.1:1234/test",
            "https://127.0.0.1:1234/test",
            "file:///test",
            "http://example.com/test",
            "http://127.0.0.1.example.com/test",
            "http://localhost.example.com/test",
            "http://127.0.0.1@example.com/test",
            "http://user:secret@127.0.0.1:1/test",
            "http://10.0.0.1:1/test",
            "http://127.0.0.1:1234",
            "http://127.0.0.1:1234/test?a",
            "http://127.0.0.1:1234/test#a",
            "http://127.0.0.1:1234/test/../health",
            "http://127.0.0.1:1234/test/reset",
        ] {
            let refused = local(text).expect_err(text);
            assert!(!refused.contains("secret"));
        }
    }

    #[test]
    fn an_id_is_no_path() {
        for text in [
            "",
            "1/restore",
            "..",
            "?",
            "1\r\nHost: a",
            "123456789012345678901",
        ] {
            assert_eq!(segment(text), "none", "{text:?}");
        }
        assert_eq!(segment("42"), "42");
    }
}
