//! A server of fixed bytes: the responses of our server to one request of each kind, recorded
//! before, and sent again without a look at the request.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tokio::net::TcpListener;

use crate::entity::Employee;

/// A response to each kind of request.
pub(crate) struct Responses {
    read: Response<Bytes>,
    insert: Response<Bytes>,
    page: Response<Bytes>,
    batch: Response<Bytes>,
}

impl Responses {
    /// Asks our server.
    pub(crate) async fn record() -> Result<Self, Box<dyn Error>> {
        let server = TableServer::in_process();
        let recorder = Recorder {
            server: server.transport(),
            last: Arc::default(),
        };
        let last = Arc::clone(&recorder.last);
        let last = || {
            let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
            last.ok_or("no response was recorded")
        };
        let client = TableServiceClient::builder(server.endpoint())
            .credential(server.credential())
            .transport(recorder)
            .build()?;
        let table = client.table("people");
        table.create_table().await?;
        let employees: Vec<_> = (0..PAGE).map(Employee::new).collect();
        for employees in employees.chunks(100) {
            insert_all(&table, employees).await?;
        }
        let batch = last()?;
        table
            .query::<Employee>()
            .partition("sales")
            .collect()
            .await?;
        let page = last()?;
        table.get::<Employee>(("sales", "0000000007")).await?;
        let read = last()?;
        table.insert(&Employee::new(PAGE)).await?;
        let insert = last()?;
        Ok(Self {
            read,
            insert,
            page,
            batch,
        })
    }

    fn to(&self, request: &Request<Incoming>) -> Response<Bytes> {
        let path = request.uri().path();
        let response = match *request.method() {
            Method::GET if path.ends_with("')") => &self.read,
            Method::GET => &self.page,
            _ if path.ends_with("$batch") => &self.batch,
            _ => &self.insert,
        };
        response.clone()
    }
}

/// Inserts entities with one batch of our client.
pub(crate) async fn insert_all(
    table: &TableClient,
    employees: &[Employee],
) -> Result<usize, tablesdk::Error> {
    let mut batch = table.batch("sales");
    for employee in employees {
        batch = batch.insert(employee);
    }
    Ok(batch.await?.etags().len())
}

/// Sends requests to a server in this process, and keeps the last response.
#[derive(Debug)]
struct Recorder {
    server: Arc<dyn Transport>,
    last: Arc<Mutex<Option<Response<Bytes>>>>,
}

impl Transport for Recorder {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let mut response = self.server.send(request).await?;
            // It will be the response to other requests, too.
            response.headers_mut().remove("x-ms-client-request-id");
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            *last = Some(response.clone());
            Ok(response)
        })
    }
}

/// Starts the server of fixed bytes on a thread of its own. It runs until the process ends.
pub(crate) fn start(responses: Responses) -> Result<SocketAddr, Box<dyn Error>> {
    let (tell, told) = mpsc::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    thread::spawn(move || {
        runtime.block_on(async move {
            let responses = Arc::new(responses);
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let _ = tell.send(listener.local_addr()?);
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let responses = Arc::clone(&responses);
                let service = service_fn(move |request: Request<Incoming>| {
                    let mut response = responses.to(&request);
                    async move {
                        request.into_body().collect().await?;
                        // hyper writes it itself.
                        response.headers_mut().remove(header::CONTENT_LENGTH);
                        Ok::<_, hyper::Error>(response.map(Full::new))
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
            #[expect(unreachable_code, reason = "gives the block its type")]
            Ok::<_, std::io::Error>(())
        })
    });
    Ok(told.recv()?)
}

/// The account that requests are signed for. The server of fixed bytes checks no signature.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";
pub(crate) const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// How many entities the page has.
pub(crate) const PAGE: u32 = 1000;
