//! A transport that injects faults on demand: it loses and delays requests and responses, and forges responses.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, response};
use tablesdk::transport::{Transport, TransportError, TransportFuture};

/// A fault of a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// It never leaves, and the client knows.
    Refuse,
    /// It is lost on the way to the service; the client does not know where.
    LoseRequest,
    /// It is carried out, and the answer is lost.
    LoseAnswer,
    /// It is carried out, and the answer never comes.
    Hang,
    /// It is carried out later.
    Delay(Duration),
    /// It is carried out twice, and the second answer comes.
    Duplicate,
    /// It is carried out and answered, and a copy of it arrives after that time.
    DuplicateLater(Duration),
    /// The connection is lost, and the request arrives all the same, after that time.
    Straggle(Duration),
    /// It is lost on the way to the service, and no answer ever comes.
    Swallow,
    /// It is carried out, and another answer comes.
    CarryOutAndAnswer(Response<Bytes>),
    /// It is not carried out, and this is the answer.
    Answer(Response<Bytes>),
    /// Nothing.
    Pass,
}

/// The kind of a request, derived from its method and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A batch.
    Batch,
    /// The creation of a table.
    CreateTable,
    /// The deletion of an entity.
    Delete,
    /// The deletion of a table.
    DeleteTable,
    /// The reading of one entity.
    Get,
    /// The insertion of an entity.
    Insert,
    /// A query.
    Query,
    /// A replace, merge or upsert of an entity.
    Update,
}

impl Op {
    /// The kind of a request.
    pub fn of(request: &Request<Bytes>) -> Self {
        let path = request.uri().path();
        let (of_entity, of_table) = (path.contains("RowKey="), path.contains("/Tables"));
        match *request.method() {
            _ if path.ends_with("/$batch") => Self::Batch,
            Method::POST if of_table => Self::CreateTable,
            Method::DELETE if of_table => Self::DeleteTable,
            Method::POST if !of_entity => Self::Insert,
            Method::DELETE => Self::Delete,
            Method::GET if of_entity => Self::Get,
            Method::GET => Self::Query,
            _ => Self::Update,
        }
    }
}

/// A request that the client sent.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its kind.
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

/// A transport that injects faults on demand. Clones share everything.
pub struct Faults<T> {
    inner: Arc<T>,
    state: Arc<Mutex<State>>,
}

type Choice = Box<dyn FnMut(Op) -> Fault + Send>;

#[derive(Default)]
struct State {
    plan: Vec<(Op, Fault)>,
    choice: Option<Choice>,
    seen: Vec<Seen>,
}

impl<T: Transport + 'static> Faults<T> {
    /// A transport that uses another one, without any fault yet.
    pub fn new(inner: T) -> Self {
        Self {
            inner: Arc::new(inner),
            state: Arc::default(),
        }
    }

    /// Plans the faults of the next requests of that kind, in their order.
    pub fn plan(&self, op: Op, faults: impl IntoIterator<Item = Fault>) {
        let faults = faults.into_iter().map(|fault| (op, fault));
        self.with(|state| state.plan.extend(faults));
    }

    /// Lets `choose` select the faults of requests for which nothing is planned.
    pub fn choose(&self, choose: impl FnMut(Op) -> Fault + Send + 'static) {
        self.with(|state| state.choice = Some(Box::new(choose)));
    }

    /// Removes the planned faults and the `choose` function.
    pub fn clear(&self) {
        self.with(|state| {
            state.plan.clear();
            state.choice = None;
        });
    }

    /// How many requests of that kind were sent.
    pub fn count(&self, op: Op) -> usize {
        self.with(|state| state.seen.iter().filter(|seen| seen.op == op).count())
    }

    /// All requests that were sent, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.with(|state| state.seen.clone())
    }

    fn with<R>(&self, use_state: impl FnOnce(&mut State) -> R) -> R {
        use_state(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn next(&self, request: &Request<Bytes>) -> Fault {
        let op = Op::of(request);
        let headers = request.headers().clone();
        let url = request.uri().path_and_query().map(ToString::to_string);
        let url = url.unwrap_or_default();
        self.with(|state| {
            state.seen.push(Seen {
                op,
                method: request.method().clone(),
                headers,
                url,
                body: request.body().clone(),
            });
            match state.plan.iter().position(|(planned, _)| *planned == op) {
                Some(index) => state.plan.remove(index).1,
                None => state
                    .choice
                    .as_mut()
                    .map_or(Fault::Pass, |choose| choose(op)),
            }
        })
    }

    fn deliver_later(&self, time: Duration, request: Request<Bytes>) {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            // The response is not used.
            let _ = inner.send(request).await;
        });
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let lost = || TransportError::maybe_sent("the connection was reset");
        match self.next(&request) {
            Fault::Pass => self.inner.send(request).await,
            Fault::Refuse => Err(TransportError::not_sent("connection refused")),
            Fault::LoseRequest => Err(lost()),
            Fault::LoseAnswer => {
                self.inner.send(request).await?;
                Err(lost())
            }
            Fault::Hang => {
                self.inner.send(request).await?;
                std::future::pending().await
            }
            Fault::Delay(time) => {
                tokio::time::sleep(time).await;
                self.inner.send(request).await
            }
            Fault::Duplicate => {
                self.inner.send(request.clone()).await?;
                self.inner.send(request).await
            }
            Fault::DuplicateLater(time) => {
                let response = self.inner.send(request.clone()).await;
                self.deliver_later(time, request);
                response
            }
            Fault::Straggle(time) => {
                self.deliver_later(time, request);
                Err(lost())
            }
            Fault::Swallow => std::future::pending().await,
            Fault::CarryOutAndAnswer(answer) => {
                self.inner.send(request).await?;
                Ok(answer)
            }
            Fault::Answer(answer) => Ok(answer),
        }
    }
}

impl<T: Transport + 'static> Transport for Faults<T> {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(self.exchange(request))
    }
}

impl<T> Clone for Faults<T> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            state: Arc::clone(&self.state),
        }
    }
}

impl<T> fmt::Debug for Faults<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").finish_non_exhaustive()
    }
}

/// The headers that every response of the service has. A write succeeds only with a response that has them.
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
