//! A proxy for faults that a server, and its faults (`tablesdk_server::testing`), cannot inject: a
//! client that cannot connect, responses that are not the service's, and the requests exactly as
//! the client sent them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header, response};
use tablesdk::transport::{Transport, TransportError, TransportFuture};
use tablesdk_server::testing::Op;

/// The action of a proxy on a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The request reaches the server, and its response the client.
    Forward,
    /// The client cannot connect, and knows that the request was not sent.
    Refuse,
    /// The server carries out the request, and the client gets this response instead.
    Replace(Response<Bytes>),
    /// The server does not get the request, and this is the response.
    Respond(Response<Bytes>),
}

/// A request as the client sent it.
#[derive(Clone, Debug)]
pub struct SentRequest {
    /// The operation that it asks for.
    pub op: Op,
    /// Its method.
    pub method: Method,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its path, and its query, if it has one.
    pub url: String,
    /// Its body.
    pub body: Bytes,
}

/// A transport that responds in place of a server, and records requests. Clones share everything.
#[derive(Clone)]
pub struct Proxy {
    inner: Arc<dyn Transport>,
    state: Arc<Mutex<State>>,
}

type Choice = Box<dyn FnMut(Op) -> Reply + Send>;

#[derive(Default)]
struct State {
    plan: Vec<(Op, Reply)>,
    choice: Option<Choice>,
    sent: Vec<SentRequest>,
}

impl Proxy {
    /// Forwards all requests, until something else is planned.
    pub fn new(inner: impl Transport + 'static) -> Self {
        Self {
            inner: Arc::new(inner),
            state: Arc::default(),
        }
    }

    /// Plans the replies to the next requests of that operation, in their order.
    pub fn plan(&self, op: Op, replies: impl IntoIterator<Item = Reply>) {
        let replies = replies.into_iter().map(|reply| (op, reply));
        self.lock().plan.extend(replies);
    }

    /// Lets `choose` select the replies to requests for which none is planned.
    pub fn choose(&self, choose: impl FnMut(Op) -> Reply + Send + 'static) {
        self.lock().choice = Some(Box::new(choose));
    }

    /// Removes the planned replies and the `choose` function.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.plan.clear();
        state.choice = None;
    }

    /// The requests so far, in order.
    pub fn sent(&self) -> Vec<SentRequest> {
        self.lock().sent.clone()
    }

    /// How many requests of that operation the client sent.
    pub fn count(&self, op: Op) -> usize {
        let state = self.lock();
        state.sent.iter().filter(|sent| sent.op == op).count()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, request: &Request<Bytes>) -> Reply {
        let op = op_of(request);
        let url = request.uri().path_and_query().map(ToString::to_string);
        let mut state = self.lock();
        state.sent.push(SentRequest {
            op,
            method: request.method().clone(),
            headers: request.headers().clone(),
            url: url.unwrap_or_default(),
            body: request.body().clone(),
        });
        match state.plan.iter().position(|(planned, _)| *planned == op) {
            Some(index) => state.plan.remove(index).1,
            None => state
                .choice
                .as_mut()
                .map_or(Reply::Forward, |choose| choose(op)),
        }
    }
}

/// The operation that a request asks for.
fn op_of(request: &Request<Bytes>) -> Op {
    let (path, query) = (request.uri().path(), request.uri().query());
    let has = |option| query.is_some_and(|query| query.contains(option));
    let of_table = path.contains("/Tables");
    let is_conditional = request.headers().contains_key(header::IF_MATCH);
    match (request.method().as_str(), is_conditional) {
        _ if path.ends_with("/$batch") => Op::Batch,
        ("POST", _) if of_table => Op::CreateTable,
        ("POST", _) if has("comp=userdelegationkey") => Op::GetUserDelegationKey,
        ("POST", _) => Op::InsertEntity,
        ("DELETE", _) if of_table => Op::DeleteTable,
        ("DELETE", _) => Op::DeleteEntity,
        ("GET", _) if path.contains("RowKey=") => Op::QueryEntity,
        ("GET", _) if of_table => Op::QueryTables,
        ("GET", _) if has("comp=acl") => Op::GetTableAcl,
        ("GET", _) if has("comp=properties") => Op::GetTableServiceProperties,
        ("GET", _) if has("comp=stats") => Op::GetTableServiceStats,
        ("GET", _) => Op::QueryEntities,
        (_, _) if has("comp=acl") => Op::SetTableAcl,
        (_, _) if has("comp=properties") => Op::SetTableServiceProperties,
        ("PUT", false) => Op::InsertOrReplaceEntity,
        ("PUT", true) => Op::UpdateEntity,
        (_, false) => Op::InsertOrMergeEntity,
        (_, true) => Op::MergeEntity,
    }
}

impl Transport for Proxy {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            match self.reply(&request) {
                Reply::Forward => self.inner.send(request).await,
                Reply::Refuse => Err(TransportError::not_sent("connection refused")),
                Reply::Replace(response) => self.inner.send(request).await.map(|_| response),
                Reply::Respond(response) => Ok(response),
            }
        })
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
}

/// The headers that every response of the service has. A write succeeds only with a response that
/// has them.
pub const SERVICE_HEADERS: [(&str, &str); 2] = [
    ("x-ms-request-id", "3e315e3a-0002-0066-6584-aee2bb000000"),
    ("x-ms-version", "2019-02-02"),
];

/// A response with the headers that every response of the service has.
pub fn service_response(status: u16) -> response::Builder {
    let response = Response::builder().status(status);
    SERVICE_HEADERS
        .iter()
        .fold(response, |response, (name, value)| {
            response.header(*name, *value)
        })
}

/// An error response of the service.
pub fn refusal(status: u16, code: &str) -> Response<Bytes> {
    let body = format!(
        r#"{{"odata.error":{{"code":"{code}","message":{{"lang":"en-US","value":"Made up."}}}}}}"#
    );
    Response::builder()
        .status(status)
        .body(body.into())
        .expect("the status is one")
}

/// The response of the service to a batch whose change with that index is rejected.
pub fn batch_refusal(index: usize, status: u16, code: &str) -> Response<Bytes> {
    let error = format!(
        r#"{{"odata.error":{{"code":"{code}","message":{{"lang":"en-US","value":"{index}:Made up."}}}}}}"#
    );
    let body = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\n\r\n{error}\r\n--c--\r\n--b--\r\n"
    );
    Response::builder()
        .status(202)
        .header("content-type", "multipart/mixed; boundary=b")
        .body(body.into())
        .expect("the status is one")
}

/// The error page of a proxy, or of another server in front of the service.
pub fn foreign(status: u16) -> Response<Bytes> {
    Response::builder()
        .status(status)
        .header("content-type", "text/html")
        .body(Bytes::from_static(b"<html><h1>Not found</h1></html>"))
        .expect("the status is one")
}
