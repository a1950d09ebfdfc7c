//! The two servers in this process, each with its own threads, and the choice of the server that is
//! measured.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock, mpsc};
use std::thread;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tablesdk_protocol::Endpoint;
use tablesdk_protocol::auth::SharedKey;
use tablesdk_server::{TableServer, Transport};
use tokio::net::TcpListener;
use tokio::runtime::{self, Runtime};

/// Who asks, and where.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) endpoint: Endpoint,
    pub(crate) key: SharedKey,
}

impl Account {
    pub(crate) fn from_connection_string(text: &str) -> Result<Self, Box<dyn Error>> {
        let setting = |name: &str| {
            let mut pairs = text.split(';').filter_map(|pair| pair.split_once('='));
            let found = pairs.find(|(key, _)| key.trim() == name);
            let found = found.map(|(_, value)| value.trim());
            found.ok_or_else(|| format!("the connection string has no {name}"))
        };
        let endpoint: Endpoint = setting("TableEndpoint")?.parse()?;
        if endpoint.is_https() {
            return Err("the load program speaks http alone".into());
        }
        Ok(Self {
            endpoint,
            key: SharedKey::new(setting("AccountName")?, setting("AccountKey")?)?,
        })
    }
}

/// The server of this workspace.
pub(crate) struct OwnServer {
    connection_string: String,
    transport: Arc<dyn Transport>,
}

impl OwnServer {
    /// Starts the server. It runs until the process ends, but gets no more requests when the next
    /// server starts.
    pub(crate) fn start(threads: usize) -> Result<Self, Box<dyn Error>> {
        let started = on_threads_of_its_own(SERVER, threads, async move |tell| {
            let server = TableServer::start().await;
            let started = server
                .as_ref()
                .map(|server| (server.connection_string(), server.transport()));
            let _ = tell.send(started.map_err(ToString::to_string));
            // Stops with the process.
            std::future::pending::<()>().await;
        })?;
        let (connection_string, transport) = started?;
        Ok(Self {
            connection_string,
            transport,
        })
    }

    pub(crate) fn connection_string(&self) -> &str {
        &self.connection_string
    }

    /// Calls it without a socket.
    pub(crate) fn transport(&self) -> Arc<dyn Transport> {
        self.transport.clone()
    }
}

/// A plain HTTP server: it reads each request to its end, and sends the response that was set.
pub(crate) struct BareServer {
    address: SocketAddr,
    answer: Arc<RwLock<Response<Bytes>>>,
}

impl BareServer {
    pub(crate) fn start(threads: usize) -> Result<Self, Box<dyn Error>> {
        let answer = Arc::new(RwLock::new(Response::new(Bytes::new())));
        let told = Arc::clone(&answer);
        let address = on_threads_of_its_own(BARE, threads, async move |tell| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
            let address = listener.as_ref().map_err(ToString::to_string);
            let address = address
                .and_then(|listener| listener.local_addr().map_err(|error| error.to_string()));
            let _ = tell.send(address);
            let Ok(listener) = listener else { return };
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                let told = Arc::clone(&told);
                let service = service_fn(move |request| answer_one(request, Arc::clone(&told)));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        })?;
        Ok(Self {
            address: address?,
            answer,
        })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives this answer from now on.
    pub(crate) fn answer_with(&self, answer: Response<Bytes>) {
        *self.answer.write().unwrap_or_else(PoisonError::into_inner) = answer;
    }
}

async fn answer_one(
    request: Request<Incoming>,
    told: Arc<RwLock<Response<Bytes>>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    request.into_body().collect().await?;
    let answer = told.read().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(answer.map(Full::new))
}

/// Runs a server until the process ends, and waits for the value that it sends.
fn on_threads_of_its_own<T, F>(name: &str, threads: usize, server: F) -> Result<T, Box<dyn Error>>
where
    T: Send + 'static,
    F: AsyncFnOnce(mpsc::Sender<T>) + Send + 'static,
{
    let runtime = runtime(name, threads)?;
    let (tell, told) = mpsc::channel();
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(move || runtime.block_on(server(tell)))?;
    Ok(told.recv()?)
}

fn runtime(name: &str, threads: usize) -> io::Result<Runtime> {
    match threads {
        1 => runtime::Builder::new_current_thread().enable_all().build(),
        _ => runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name(name)
            .enable_all()
            .build(),
    }
}

/// The name of the threads of the server of this workspace, by which a profiler finds them, too.
pub(crate) const SERVER: &str = "server";
/// The name of the threads of the bare server.
pub(crate) const BARE: &str = "bare";
