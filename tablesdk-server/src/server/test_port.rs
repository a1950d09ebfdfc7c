//! The kit for tests over HTTP with JSON, for tests in other languages: `/test/…` on the port for
//! operators.
//!
//! `openapi.json` describes it. A test in Rust uses [`crate::testing`], whose meaning is the same;
//! only the reset of this module removes more than that of
//! [`TableServer`](crate::TableServer::reset), and waits for the requests in flight.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::json;
use tablesdk_protocol::{Clock as _, Timestamp};
use tokio::sync::Mutex as AsyncMutex;

use crate::service::Service;
use crate::storage::{Checkpoint, StorageError};
use crate::testing::json::{
    CostForm, LintForm, Object, RangeForm, RequestForm, RuleForm, ThrottleForm, cut, named, seconds,
};
use crate::testing::{InjectedFault, Journal, Partitions, RecordedRequest, VirtualClock};

/// The access to a server for the test of another program.
pub(super) struct TestPort {
    service: Arc<Service>,
    account: String,
    clock: VirtualClock,
    journal: Journal,
    state: Mutex<PortState>,
    /// Held by the one reset that runs at a time.
    resets: AsyncMutex<()>,
}

#[derive(Default)]
struct PortState {
    /// The rules that this port has added, with those that can hit no more requests: their hits are
    /// asked for.
    faults: BTreeMap<u64, InjectedFault>,
    last_snapshot: u64,
    snapshots: BTreeMap<u64, Snapshot>,
}

/// The tables at a moment.
struct Snapshot {
    checkpoint: Checkpoint,
    time: Timestamp,
    last_request: u64,
}

/// A response, or the reason of a refusal.
type Handled = Result<Response<Bytes>, (StatusCode, String)>;

impl TestPort {
    pub(super) fn new(service: Arc<Service>, account: &str, clock: VirtualClock) -> Self {
        Self {
            journal: service.kit().journal(),
            service,
            account: account.to_owned(),
            clock,
            state: Mutex::default(),
            resets: AsyncMutex::default(),
        }
    }

    /// Responds to a request whose path begins with `/test`, which is not part of `path`.
    pub(super) async fn respond(
        &self,
        method: &Method,
        path: &str,
        body: &[u8],
    ) -> Response<Bytes> {
        let handled = self.handle(method, path, body).await;
        handled.unwrap_or_else(|(status, message)| refusal(status, &message))
    }

    async fn handle(&self, method: &Method, path: &str, body: &[u8]) -> Handled {
        let segments: Vec<_> = path.split('/').skip(1).collect();
        let operations = operations(&segments);
        if operations.contains(&(method.as_str(), Takes::Nothing)) && !body.is_empty() {
            return Err(refused(format!("{method} /test{path} takes no body")));
        }
        match (method.as_str(), segments.as_slice()) {
            ("GET", ["openapi.json"]) => Ok(content("application/json", OPENAPI)),
            ("POST", ["reset"]) => self.reset().await,
            ("GET", ["clock"]) => Ok(self.time()),
            ("POST", ["clock"]) => self.set_clock(read(body)?),
            ("GET", ["dump"]) => {
                let text = self
                    .service
                    .dump(&self.account)
                    .map_err(|error| failed(&error))?;
                Ok(content("text/plain; charset=utf-8", text))
            }
            ("GET", ["entities"]) => {
                let lines = self
                    .service
                    .save(&self.account)
                    .map_err(|error| failed(&error))?;
                Ok(content("application/x-ndjson", lines))
            }
            ("POST", ["entities"]) => {
                let loaded = self.service.load(&self.account, body).await;
                loaded.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
                Ok(done())
            }
            ("POST", ["faults"]) => self.add_fault(read(body)?),
            ("DELETE", ["faults"]) => {
                self.clear_faults();
                Ok(done())
            }
            ("GET", ["faults"]) => Ok(json_of(&self.service.kit().faults().in_force())),
            ("GET", ["faults", id]) => {
                let hits = self.with(|state| Some(state.faults.get(&id.parse().ok()?)?.hits()));
                Ok(json_of(
                    &json!({ "hits": hits.ok_or_else(|| no_fault(id))? }),
                ))
            }
            ("DELETE", ["faults", id]) => {
                let is_removed = id.parse().is_ok_and(|id| self.remove_fault(id));
                is_removed.then(done).ok_or_else(|| no_fault(id))
            }
            ("GET", ["throttle"]) => {
                let throttle = self.service.kit().faults().throttle_in_force();
                Ok(json_of(&ThrottleForm::from(throttle)))
            }
            ("PUT", ["throttle"]) => {
                let throttle: ThrottleForm = read(body)?;
                self.service.kit().faults().throttle(throttle.into());
                Ok(done())
            }
            ("GET", ["partitions", table]) => Ok(ranges(&self.partitions(table)?)),
            ("POST", ["partitions", table]) => {
                let change: PartitionsForm = read(body)?;
                let partitions = self.partitions(table)?;
                let changed = change.apply_to(&partitions);
                changed.map_err(|error| refused(error.to_string()))?;
                Ok(ranges(&partitions))
            }
            ("GET", ["requests"]) => Ok(json_of_requests(self.journal.requests())),
            ("GET", ["requests", "after", number]) => {
                let after = number.parse().map_err(|_| {
                    let number = cut(number);
                    refused(format!("{number:?} is not the number of a request"))
                })?;
                Ok(json_of_requests(self.journal.newest(after)))
            }
            ("DELETE", ["requests"]) => {
                self.journal.clear();
                Ok(done())
            }
            ("GET", ["cost"]) => Ok(json_of(&CostForm::from(self.journal.requests().cost()))),
            ("GET", ["lints"]) => {
                let lints = self.journal.lints().into_iter();
                Ok(json_of(&lints.map(LintForm::from).collect::<Vec<_>>()))
            }
            ("GET", ["snapshots"]) => Ok(self.snapshots()),
            ("POST", ["snapshots"]) => self.take_snapshot(),
            ("POST", ["snapshots", id, "restore"]) => {
                let find = |state: &mut PortState| {
                    let snapshot = state.snapshots.get(&id.parse().ok()?)?;
                    Some(snapshot.checkpoint.clone())
                };
                let checkpoint = self.with(find).ok_or_else(|| no_snapshot(id))?;
                let is_restored = self.service.restore(&checkpoint);
                is_restored.then(done).ok_or_else(no_snapshots)
            }
            ("DELETE", ["snapshots", id]) => {
                let removed = self.with(|state| state.snapshots.remove(&id.parse().ok()?));
                removed.map(|_| done()).ok_or_else(|| no_snapshot(id))
            }
            _ => Ok(no_operation(method, path, operations)),
        }
    }

    /// A server as it was at its start: without tables, faults and recorded requests, and with a
    /// running clock. No request of before has an effect after it.
    async fn reset(&self) -> Handled {
        if self.service.is_persistent() {
            return Err(no_snapshots());
        }
        let _one_at_a_time = self.resets.lock().await;
        self.clear_faults();
        self.service.kit().drain().await;
        self.with(|state| state.snapshots.clear());
        self.clock.reset();
        self.service.reset();
        self.journal.clear();
        Ok(done())
    }

    fn clear_faults(&self) {
        self.with(|state| {
            self.service.kit().faults().clear();
            state.faults.clear();
        });
    }

    fn set_clock(&self, form: ClockForm) -> Handled {
        match form {
            ClockForm::Freeze {} => self.clock.freeze(),
            ClockForm::Resume {} => self.clock.resume(),
            ClockForm::Advance { seconds: by } => {
                let by = seconds("seconds", by, ADVANCE_SECONDS_MAX).map_err(refused)?;
                self.clock.advance(by);
            }
            ClockForm::Set { time } => {
                let time = time.parse::<Timestamp>();
                self.clock
                    .set(time.map_err(|error| refused(format!("time: {error}")))?);
            }
        }
        Ok(self.time())
    }

    fn time(&self) -> Response<Bytes> {
        let now = self.clock.now().to_string();
        json_of(&json!({ "now": now, "isFrozen": self.clock.is_frozen() }))
    }

    fn add_fault(&self, rule: RuleForm) -> Handled {
        let add = |state: &mut PortState| {
            let fault = rule.add_to(self.service.kit().faults())?;
            let id = fault.id();
            state.faults.insert(id, fault);
            Ok(id)
        };
        self.with(add).map(created).map_err(refused)
    }

    fn partitions(&self, table: &str) -> Result<Partitions, (StatusCode, String)> {
        let (faults, flavor) = (self.service.kit().faults(), self.service.flavor());
        let partitions = Partitions::new(faults, &self.clock, flavor, &self.account, table);
        partitions.map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => (StatusCode::CONFLICT, error.to_string()),
            _ => refused(error.to_string()),
        })
    }

    /// Removes a rule of this port, or of a test in the server's own process. Returns whether there
    /// was one.
    fn remove_fault(&self, id: u64) -> bool {
        let is_known = self.with(|state| state.faults.remove(&id).is_some());
        self.service.kit().faults().remove(id) || is_known
    }

    fn take_snapshot(&self) -> Handled {
        let checkpoint = self.service.engine().checkpoint();
        let snapshot = Snapshot {
            checkpoint: checkpoint.ok_or_else(no_snapshots)?,
            time: self.clock.now(),
            last_request: self.journal.last_number(),
        };
        Ok(created(self.with(|state| {
            state.last_snapshot += 1;
            state.snapshots.insert(state.last_snapshot, snapshot);
            state.last_snapshot
        })))
    }

    fn snapshots(&self) -> Response<Bytes> {
        let last = self.journal.last_number();
        json_of(&self.with(|state| {
            let snapshots = state.snapshots.iter();
            let forms = snapshots.map(|(id, it)| {
                // A request may come while this runs.
                let since = last.saturating_sub(it.last_request);
                json!({ "id": id, "time": it.time, "lastRequest": it.last_request, "requestsSince": since })
            });
            forms.collect::<Vec<_>>()
        }))
    }

    fn with<T>(&self, run: impl FnOnce(&mut PortState) -> T) -> T {
        // Nothing panics while it is locked.
        run(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", tag = "kind")]
enum ClockForm {
    Advance {
        #[serde(deserialize_with = "named::seconds")]
        seconds: f64,
    },
    // With braces, because serde would ignore unknown fields otherwise.
    Freeze {},
    Resume {},
    Set {
        #[serde(deserialize_with = "named::time")]
        time: String,
    },
}

/// A change of a partition map.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", tag = "kind")]
enum PartitionsForm {
    #[serde(rename_all = "camelCase")]
    Merge {
        #[serde(deserialize_with = "named::partition_key")]
        partition_key: String,
    },
    #[serde(rename_all = "camelCase")]
    Move {
        #[serde(deserialize_with = "named::partition_key")]
        partition_key: String,
    },
    #[serde(rename_all = "camelCase")]
    Split {
        #[serde(deserialize_with = "named::partition_key")]
        partition_key: String,
    },
}

impl PartitionsForm {
    fn apply_to(self, partitions: &Partitions) -> io::Result<()> {
        match self {
            Self::Merge { partition_key } => partitions.merge_at(partition_key),
            Self::Move { partition_key } => partitions.move_range(partition_key),
            Self::Split { partition_key } => partitions.split_at(partition_key),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Body,
    Nothing,
}

/// The methods of a path.
fn operations(segments: &[&str]) -> &'static [(&'static str, Takes)] {
    use Takes::{Body, Nothing};

    match segments {
        ["clock" | "entities"] | ["partitions", _] => &[("GET", Nothing), ("POST", Body)],
        ["cost" | "dump" | "lints" | "openapi.json"] | ["requests", "after", _] => {
            &[("GET", Nothing)]
        }
        ["faults"] => &[("DELETE", Nothing), ("GET", Nothing), ("POST", Body)],
        ["faults", _] | ["requests"] => &[("DELETE", Nothing), ("GET", Nothing)],
        ["reset"] | ["snapshots", _, "restore"] => &[("POST", Nothing)],
        ["snapshots"] => &[("GET", Nothing), ("POST", Nothing)],
        ["snapshots", _] => &[("DELETE", Nothing)],
        ["throttle"] => &[("GET", Nothing), ("PUT", Body)],
        _ => &[],
    }
}

/// The response to another method or path.
fn no_operation(method: &Method, path: &str, operations: &[(&str, Takes)]) -> Response<Bytes> {
    let methods: Vec<_> = operations.iter().map(|(method, _)| *method).collect();
    let methods = methods.join(", ");
    let message = format!("there is no such operation as {method} /test{}", cut(path));
    if methods.is_empty() {
        let message = message + ": see GET /test/openapi.json";
        return refusal(StatusCode::NOT_FOUND, &message);
    }
    let message = message + ": its methods are " + &methods;
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, &message);
    if let Ok(methods) = methods.parse() {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    response
}

/// The response to a request with a query string, which no path has.
pub(super) fn no_query(path: &str, query: &str) -> Response<Bytes> {
    let (path, query) = (cut(path), cut(query));
    let message = format!("/test{path} has no query string: {query:?}");
    refusal(StatusCode::BAD_REQUEST, &message)
}

fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, (StatusCode, String)> {
    let object = serde_json::from_slice::<Object<T>>(body);
    let object = object.map_err(|error| {
        refused(match error.classify() {
            Category::Data => error.to_string(),
            _ => format!("the body is not JSON: {error}"),
        })
    })?;
    Ok(object.0)
}

fn refused(message: String) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, message)
}

fn failed(error: &StorageError) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

fn no_fault(id: &str) -> (StatusCode, String) {
    let message = format!("there is no fault with the id {:?}", cut(id));
    (StatusCode::NOT_FOUND, message)
}

fn no_snapshot(id: &str) -> (StatusCode, String) {
    let message = format!("there is no snapshot with the id {:?}", cut(id));
    (StatusCode::NOT_FOUND, message)
}

fn no_snapshots() -> (StatusCode, String) {
    let message = "only a server in memory has snapshots and a reset";
    (StatusCode::CONFLICT, message.to_owned())
}

/// A response that a request is refused.
pub(super) fn refusal(status: StatusCode, message: &str) -> Response<Bytes> {
    let mut response = json_of(&json!({ "error": message }));
    *response.status_mut() = status;
    response
}

/// The maximum size of the body of a request.
pub(super) fn body_bytes_max(path: &str) -> usize {
    match path {
        "/entities" => ENTITIES_BYTES_MAX,
        _ => FORM_BYTES_MAX,
    }
}

fn done() -> Response<Bytes> {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// The response that something is kept under an id.
fn created(id: u64) -> Response<Bytes> {
    let mut response = json_of(&json!({ "id": id }));
    *response.status_mut() = StatusCode::CREATED;
    response
}

fn ranges(partitions: &Partitions) -> Response<Bytes> {
    let ranges = partitions.ranges().into_iter().map(RangeForm::from);
    json_of(&ranges.collect::<Vec<_>>())
}

fn json_of_requests(requests: impl IntoIterator<Item = RecordedRequest>) -> Response<Bytes> {
    let requests = requests.into_iter().map(RequestForm::from);
    json_of(&requests.collect::<Vec<_>>())
}

fn json_of(value: &impl Serialize) -> Response<Bytes> {
    let text = serde_json::to_vec(value).unwrap_or_default();
    content("application/json", text)
}

fn content(kind: &'static str, bytes: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(bytes.into());
    let kind = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

const OPENAPI: &str = include_str!("openapi.json");
/// A hundred years.
const ADVANCE_SECONDS_MAX: u32 = 3_155_760_000;
const ENTITIES_BYTES_MAX: usize = 256 * 1024 * 1024;
const FORM_BYTES_MAX: usize = 1024 * 1024;
