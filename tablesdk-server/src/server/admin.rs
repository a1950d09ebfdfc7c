//! The listener for operators: health, metrics and backups, on a separate port of this machine.
//!
//! It has no authentication. So it listens on the loopback address only, and refuses every request
//! that a web page could have sent: requests for another host, and requests with an origin. Of the
//! tables it only knows how to write a backup of them all. It is not a part of the service, because
//! an operator is not a client and has no account key.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
#[cfg(feature = "durable")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
#[cfg(feature = "durable")]
use tokio::runtime::Handle;
#[cfg(feature = "durable")]
use tokio::sync::mpsc::{self, error::SendTimeoutError};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::test_port::{self, TestPort};
use crate::http::stopped;
use crate::request::metrics::Gauge;
use crate::service::Service;
use crate::storage::Connections;

/// The listener. Dropping it ends it, with all that it does.
#[derive(Debug)]
pub(super) struct Admin {
    pub(super) local_addr: SocketAddr,
    task: JoinHandle<()>,
}

impl Admin {
    /// Listens on a port of the loopback address; 0 takes a free one.
    pub(super) async fn start(
        port: u16,
        service: Arc<Service>,
        test_port: Option<TestPort>,
        stopping: watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let in_context = |error: io::Error| {
            let message = format!("cannot listen for operators on {address}: {error}");
            io::Error::new(error.kind(), message)
        };
        let listener = TcpListener::bind(address).await.map_err(in_context)?;
        Ok(Self {
            local_addr: listener.local_addr()?,
            task: tokio::spawn(accept_all(listener, service, test_port, stopping)),
        })
    }

    /// Ends it, and returns when it has dropped the service.
    pub(super) async fn end(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept_all(
    listener: TcpListener,
    service: Arc<Service>,
    test_port: Option<TestPort>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let connections_max = match test_port {
        Some(_) => TEST_CONNECTIONS_MAX,
        None => CONNECTIONS_MAX,
    };
    let permits = Arc::new(Semaphore::new(connections_max));
    let operator = Arc::new(Operator {
        service,
        test_port,
        #[cfg(feature = "durable")]
        backs_up: Arc::default(),
    });
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        let stream = tokio::select! {
            () = stopped(&mut stopping) => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        while connections.try_join_next().is_some() {}
        let operator = Arc::clone(&operator);
        connections.spawn(async move {
            let stalled = Arc::new(Notify::new());
            let service = service_fn(|request| {
                let operator = Arc::clone(&operator);
                let stalled = Arc::clone(&stalled);
                async move { Ok::<_, Infallible>(operator.handle(request, &stalled).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_WAIT_MAX)
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                // An error means that one side closed the connection, so it is not logged.
                _ = connection => {}
                () = stalled.notified() => {}
            }
            drop(permit);
        });
    }
}

struct Operator {
    service: Arc<Service>,
    /// `None` if the server is not for tests.
    test_port: Option<TestPort>,
    /// True if a backup is running. Each backup occupies a thread.
    #[cfg(feature = "durable")]
    backs_up: Arc<AtomicBool>,
}

impl Operator {
    async fn handle(&self, request: Request<Incoming>, stalled: &Arc<Notify>) -> Response<Content> {
        let path = request.uri().path().strip_prefix("/test");
        let path = path.filter(|path| path.is_empty() || path.starts_with('/'));
        let (Some(test_port), Some(path)) = (&self.test_port, path) else {
            return self.respond(&request, stalled).await;
        };
        let in_kit = |response: Response<Bytes>| response.map(|bytes| Content::Text(Some(bytes)));
        if !is_for_this_machine(request.headers()) {
            return in_kit(test_port::refusal(StatusCode::FORBIDDEN, NOT_FOR_WEB_PAGES));
        }
        let (method, path) = (request.method().clone(), path.to_owned());
        if let Some(query) = request.uri().query() {
            return in_kit(test_port::no_query(&path, query));
        }
        let bytes_max = test_port::body_bytes_max(&path);
        let body = Limited::new(request.into_body(), bytes_max).collect();
        in_kit(match body.await {
            Ok(body) => test_port.respond(&method, &path, &body.to_bytes()).await,
            Err(error) if error.is::<LengthLimitError>() => {
                let message = format!("the body has more than {bytes_max} bytes");
                test_port::refusal(StatusCode::PAYLOAD_TOO_LARGE, &message)
            }
            Err(error) => {
                let message = format!("the body cannot be read: {error}");
                test_port::refusal(StatusCode::BAD_REQUEST, &message)
            }
        })
    }

    /// `stalled` is notified when a client has stopped taking its response.
    #[cfg_attr(
        not(feature = "durable"),
        expect(unused, reason = "other responses are short")
    )]
    async fn respond(
        &self,
        request: &Request<Incoming>,
        stalled: &Arc<Notify>,
    ) -> Response<Content> {
        if !is_for_this_machine(request.headers()) {
            return not_for_web_pages();
        }
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/health") => text(StatusCode::OK, "alive\n"),
            (&Method::GET, "/ready") => match self.service.is_writable().await {
                Ok(()) => text(StatusCode::OK, "ready\n"),
                Err(error) => {
                    let message = format!("nothing can be written: {error}\n");
                    text(StatusCode::SERVICE_UNAVAILABLE, message)
                }
            },
            (&Method::GET, "/metrics") => {
                let mut response = text(StatusCode::OK, self.metrics().await);
                let version = header::HeaderValue::from_static("text/plain; version=0.0.4");
                response.headers_mut().insert(header::CONTENT_TYPE, version);
                response
            }
            (&Method::POST, "/backup") if self.service.engine().is_shared() => {
                let message = "The tables are in a database: back it up with its own tools.\n";
                text(StatusCode::NOT_IMPLEMENTED, message)
            }
            #[cfg(feature = "durable")]
            (&Method::POST, "/backup") => self.back_up(Arc::clone(stalled)),
            #[cfg(not(feature = "durable"))]
            (&Method::POST, "/backup") => {
                let message = "This server was built without backups.\n";
                text(StatusCode::NOT_IMPLEMENTED, message)
            }
            (_, "/health" | "/ready" | "/metrics") => {
                text(StatusCode::METHOD_NOT_ALLOWED, "Ask for it with GET.\n")
            }
            (_, "/backup") => text(StatusCode::METHOD_NOT_ALLOWED, "Ask for it with POST.\n"),
            _ => {
                let message = "There are GET /health, GET /ready, GET /metrics and POST /backup.\n";
                text(StatusCode::NOT_FOUND, message)
            }
        }
    }

    /// The metrics as they are now, also while all connections to a database are in use.
    async fn metrics(&self) -> String {
        let connections = self.service.engine().connections();
        let gauges: Vec<_> = connections.map(gauges).into_iter().flatten().collect();
        let writable = timeout(WRITABLE_WAIT_MAX, self.service.is_writable()).await;
        // A database that is late is not one that refuses.
        let is_writable = writable.is_err() || writable.is_ok_and(|writable| writable.is_ok());
        self.service.metrics().text(is_writable, &gauges)
    }

    /// Writes the backup on a separate thread, at the pace of the client.
    ///
    /// The connection of a client that reads nothing for [`STALL_MAX`] is closed, because only one
    /// backup can run at a time.
    #[cfg(feature = "durable")]
    fn back_up(&self, stalled: Arc<Notify>) -> Response<Content> {
        if self.backs_up.swap(true, Ordering::AcqRel) {
            let message = "Another backup is in progress.\n";
            return text(StatusCode::SERVICE_UNAVAILABLE, message);
        }
        let (sender, receiver) = mpsc::channel(4);
        let engine = Arc::clone(self.service.engine());
        let end = EndOfBackup(Arc::clone(&self.backs_up));
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            let _end = end;
            let mut pipe = Pipe {
                buffer: Vec::new(),
                sender,
                runtime,
            };
            if let Err(error) = engine.back_up(&mut pipe, |_| {}) {
                // The response ends with an error, so the client sees that the backup is
                // incomplete.
                tracing::warn!(%error, "a backup was broken off");
                if pipe.sender.try_send(Err(error)).is_err() {
                    stalled.notify_one();
                    // The body must not end before the connection, or the backup would look
                    // complete.
                    pipe.runtime.block_on(pipe.sender.closed());
                }
            }
        });
        let mut response = Response::new(Content::Stream(receiver));
        let kind = header::HeaderValue::from_static("application/octet-stream");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

/// The use of the connections to a database.
const fn gauges(connections: Connections) -> [Gauge; 3] {
    [
        Gauge {
            name: "tablesdk_database_connections",
            help: "Connections to the database.",
            value: connections.open,
        },
        Gauge {
            name: "tablesdk_database_connections_idle",
            help: "Connections to the database that no request uses.",
            value: connections.idle,
        },
        Gauge {
            name: "tablesdk_database_requests_waiting",
            help: "Requests that wait for a connection to the database.",
            value: connections.waiting,
        },
    ]
}

#[cfg(feature = "durable")]
struct EndOfBackup(Arc<AtomicBool>);

#[cfg(feature = "durable")]
impl Drop for EndOfBackup {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Returns true if the host of a request is this machine, and it has no origin. A request that a
/// web page caused has an origin, or the host name of the page.
fn is_for_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "127.0.0.1" | "localhost") && !headers.contains_key(header::ORIGIN)
}

fn not_for_web_pages() -> Response<Content> {
    text(StatusCode::FORBIDDEN, format!("{NOT_FOR_WEB_PAGES}\n"))
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Content> {
    let mut response = Response::new(Content::Text(Some(text.into())));
    *response.status_mut() = status;
    response
}

/// The body of a response.
enum Content {
    #[cfg(feature = "durable")]
    Stream(mpsc::Receiver<io::Result<Bytes>>),
    Text(Option<Bytes>),
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        #[cfg_attr(
            not(feature = "durable"),
            expect(unused, reason = "a text never waits")
        )]
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            #[cfg(feature = "durable")]
            Self::Stream(receiver) => receiver
                .poll_recv(context)
                .map(|part| part.map(|part| part.map(Frame::data))),
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
        }
    }
}

/// Takes bytes on a thread that may wait, and passes them to a task.
#[cfg(feature = "durable")]
struct Pipe {
    buffer: Vec<u8>,
    sender: mpsc::Sender<io::Result<Bytes>>,
    runtime: Handle,
}

#[cfg(feature = "durable")]
impl io::Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PART_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let part = Bytes::from(std::mem::take(&mut self.buffer));
        let sent = self.sender.send_timeout(Ok(part), STALL_MAX);
        self.runtime.block_on(sent).map_err(|error| match error {
            SendTimeoutError::Closed(_) => io::Error::from(io::ErrorKind::BrokenPipe),
            SendTimeoutError::Timeout(_) => io::Error::new(
                io::ErrorKind::TimedOut,
                format!("the client took nothing of the backup for {STALL_MAX:?}"),
            ),
        })
    }
}

const NOT_FOR_WEB_PAGES: &str = "This is for programs on this machine, and not for web pages.";
/// The maximum number of connections. Further ones wait.
const CONNECTIONS_MAX: usize = 16;
/// The same with the kit for tests, to which each of many tests may keep a connection.
const TEST_CONNECTIONS_MAX: usize = 1024;
const HEAD_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long the metrics wait for a database to say whether it can be written.
const WRITABLE_WAIT_MAX: Duration = Duration::from_secs(1);
/// How long the client of a backup may read nothing.
#[cfg(feature = "durable")]
const STALL_MAX: Duration = Duration::from_secs(30);
#[cfg(feature = "durable")]
const PART_BYTES: usize = 256 * 1024;

#[cfg(feature = "durable")]
#[cfg(test)]
mod tests {
    use tablesdk_protocol::{EntityKey, TableName, ValueRef};
    use tokio::time::{Instant, advance};

    use super::*;
    use crate::TableServer;
    use crate::engine::{Action, Change, Command, Properties};

    /// The operator of a server whose backup is longer than the part that is made ahead of its
    /// client.
    async fn operator() -> Operator {
        let service = Arc::clone(&TableServer::in_process().service);
        let table: TableName = "people".parse().unwrap();
        let engine = service.engine();
        let create = Command::CreateTable(&table);
        engine.commit("acct", &create).await.unwrap();
        for number in 0..200 {
            let key = &EntityKey::new("p", number.to_string()).unwrap();
            let value = ValueRef::String("x".repeat(30_000).into());
            let properties = Properties::from_iter([("a", value)]);
            let action = Action::Insert(&properties);
            let insert = Command::Change(&table, Change { key, action });
            engine.commit("acct", &insert).await.unwrap();
        }
        Operator {
            service,
            test_port: None,
            backs_up: Arc::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_backup_is_aborted_for_another() {
        let operator = operator().await;
        let stalled = Arc::new(Notify::new());
        let untaken = operator.back_up(Arc::clone(&stalled));
        assert_eq!(untaken.status(), 200);
        let began = Instant::now();
        let refused = operator.back_up(Arc::default());
        assert_eq!(refused.status(), 503);
        // Time does not pass by itself while a thread works.
        let mut cut = std::pin::pin!(stalled.notified());
        while poll_once(cut.as_mut()).await.is_none() {
            advance(Duration::from_secs(1)).await;
        }
        assert!(began.elapsed() >= STALL_MAX);
        drop(untaken);
        let taken = loop {
            let response = operator.back_up(Arc::default());
            if response.status() == 200 {
                break response;
            }
            tokio::task::yield_now().await;
        };
        let bytes = taken.into_body().collect().await.unwrap().to_bytes();
        assert!(bytes.len() > 3_000_000);
    }

    /// The output of a future that is polled once, if it is ready.
    async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
        std::future::poll_fn(|context| {
            Poll::Ready(match future.as_mut().poll(context) {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            })
        })
        .await
    }
}
