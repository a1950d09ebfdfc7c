//! The proxy between the client and the server: it does to whole requests and responses what
//! networks do.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::fault::{BUSY, End, Fault, Faults, Passing, Which};
use crate::network::Swap;
use crate::record::{Delivery, Fate, Pending, Registry};
use crate::wire::{self, Message};

/// The proxy. It stops when it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    faults: Faults,
    registry: Registry,
    server: Upstream,
    swap: Swap,
    /// How many requests went by.
    passed: watch::Sender<u64>,
}

impl Proxy {
    pub(crate) async fn start(faults: Faults, registry: Registry, server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            faults,
            registry,
            server: Upstream {
                address: server,
                generation: AtomicU64::new(0),
                idle: Mutex::new(Vec::new()),
            },
            swap: Swap::default(),
            passed: watch::Sender::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            accepting,
        }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Forgets the connections to a server that is gone.
    pub(crate) fn server_was_killed(&self) {
        let server = &self.shared.server;
        server.generation.fetch_add(1, Ordering::SeqCst);
        server.idle.lock().unwrap().clear();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(mut listener: TcpListener, shared: Arc<Shared>) {
    let address = listener.local_addr().unwrap();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let connection = Arc::clone(&shared);
        // A connection that fails is what this is for.
        tokio::spawn(async move { connection.serve(stream).await.ok() });
        if let Some(pause) = shared.faults.pause_of_listening() {
            drop(listener);
            sleep(pause).await;
            listener = loop {
                match TcpListener::bind(address).await {
                    Ok(listener) => break listener,
                    Err(_) => sleep(Duration::from_millis(5)).await,
                }
            };
        }
    }
}

/// The bytes that the client gets, and then the end of the connection, unless it goes on.
struct Reply(Bytes, Option<End>);

impl Reply {
    /// The response, if there is one, or else that end.
    fn of(response: Option<Message>, otherwise: End) -> Self {
        match response {
            Some(response) => Self(response.bytes, None),
            None => Self::end(otherwise),
        }
    }

    const fn end(end: End) -> Self {
        Self(Bytes::new(), Some(end))
    }
}

impl Shared {
    async fn serve(self: Arc<Self>, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = Vec::new();
        while let Some(message) = wire::read(&mut stream, &mut buffer).await? {
            let id = message.header(OPERATION_HEADER);
            let id = id.and_then(|id| id.parse().ok()).unwrap_or_default();
            let fault = self.faults.next(id, self.registry.requests(id));
            let pending = self.registry.note(id, &message, format!("{fault:?}"));
            let shared = Arc::clone(&self);
            let Reply(bytes, end) = match pending {
                Some(pending) => {
                    let request = Request {
                        shared,
                        message,
                        pending,
                    };
                    request.go(fault, &mut stream).await?
                }
                None => Reply::end(End::Silence),
            };
            // Unless it was to arrive later, nothing of it can reach the server any more, whatever
            // the client does now.
            stream.write_all(&bytes).await?;
            self.passed.send_modify(|passed| *passed += 1);
            if let Some(end) = end {
                return finish(stream, end).await;
            }
        }
        Ok(())
    }
}

async fn finish(mut stream: TcpStream, end: End) -> io::Result<()> {
    match end {
        End::Close => stream.shutdown().await,
        // When it is dropped, the other side gets a reset, not an end.
        End::Reset => stream.set_zero_linger(),
        End::Silence => {
            // Until the client has had enough.
            let until_closed =
                async { while stream.read(&mut [0; 1024]).await.is_ok_and(|n| n > 0) {} };
            let _ = timeout(SILENCE, until_closed).await;
            Ok(())
        }
    }
}

/// A request in flight to the server.
struct Request {
    shared: Arc<Shared>,
    message: Message,
    pending: Pending,
}

impl Request {
    async fn go(self, fault: Fault, stream: &mut TcpStream) -> io::Result<Reply> {
        Ok(match fault {
            Fault::Pass => self.pass().await,
            Fault::PassAndClose => Reply(self.pass().await.0, Some(End::Close)),
            Fault::Drop(end) => Reply::end(end),
            Fault::Delay(time) => {
                sleep(time).await;
                Reply::of(self.deliver_when_up().await, End::Reset)
            }
            Fault::Straggle(end, time) => {
                self.later(time);
                Reply::end(end)
            }
            Fault::Reorder(count) => {
                let mut passed = self.shared.passed.subscribe();
                let until = *passed.borrow() + count;
                let passed = passed.wait_for(|passed| *passed >= until);
                let _ = timeout(REORDER, passed).await;
                self.pass().await
            }
            Fault::LoseResponse(end) => {
                self.deliver().await;
                Reply::end(end)
            }
            Fault::Cut(thousandths, end) => {
                let Reply(mut bytes, _) = Reply::of(self.deliver().await.flatten(), end);
                bytes.truncate(bytes.len() * thousandths / 1000);
                Reply(bytes, Some(end))
            }
            Fault::Duplicate(gap, Which::First) => {
                let response = self.deliver().await.flatten();
                self.later(gap);
                Reply::of(response, End::Close)
            }
            Fault::Duplicate(gap, Which::Second) => {
                self.deliver().await;
                sleep(gap).await;
                self.pass().await
            }
            Fault::Busy => Reply(Bytes::from_static(BUSY.as_bytes()), None),
            Fault::Impostor(passing, impostor) => {
                self.pass_on(passing).await;
                Reply(impostor.response, None)
            }
            Fault::Interim(passing) => {
                self.pass_on(passing).await;
                for round in 0..INTERIM_RESPONSES {
                    let line = ["100 Continue", "102 Processing", "103 Early Hints"][round % 3];
                    let text = format!("HTTP/1.1 {line}\r\n\r\n");
                    stream.write_all(text.as_bytes()).await?;
                    sleep(INTERIM_PAUSE).await;
                }
                Reply::end(End::Reset)
            }
            Fault::Exchange => match self.deliver().await.flatten() {
                None => Reply::end(End::Close),
                Some(response) => {
                    let shared = Arc::clone(&self.shared);
                    drop(self);
                    Reply(shared.swap.with_another(response).await.bytes, None)
                }
            },
        })
    }

    async fn pass(self) -> Reply {
        match self.deliver().await {
            Some(response) => Reply::of(response, End::Close),
            None => match self.shared.faults.without_server() {
                Some(page) => Reply(page.response, None),
                None => Reply::end(End::Close),
            },
        }
    }

    async fn pass_on(self, passing: Passing) {
        match passing {
            Passing::Never => {}
            Passing::Before => {
                self.deliver().await;
            }
            Passing::After(time) => self.later(time),
        }
    }

    /// Delivers it after that time, whatever becomes of the connection.
    fn later(self, time: Duration) {
        tokio::spawn(async move {
            sleep(time).await;
            self.deliver_when_up().await;
        });
    }

    /// Delivers it; where the server is down, once it is up again.
    async fn deliver_when_up(&self) -> Option<Message> {
        for _ in 0..ATTEMPTS_UNTIL_UP {
            if let Some(response) = self.deliver().await {
                return response;
            }
            sleep(PAUSE_UNTIL_UP).await;
        }
        None
    }

    /// Delivers it. `None` when there is no server; a response of `None` when the server ended in
    /// between.
    async fn deliver(&self) -> Option<Option<Message>> {
        let began = Instant::now();
        let response = self.shared.server.send(&self.message.bytes).await?;
        self.pending.delivered(Delivery {
            began,
            ended: Instant::now(),
            fate: Fate::of(response.as_ref()),
        });
        Some(response)
    }
}

/// The server, and connections to it that are free.
struct Upstream {
    address: SocketAddr,
    generation: AtomicU64,
    idle: Mutex<Vec<(u64, TcpStream)>>,
}

impl Upstream {
    /// Sends a request. `None` when there is no connection; a response of `None` when the
    /// connection ended before it.
    async fn send(&self, bytes: &[u8]) -> Option<Option<Message>> {
        let generation = self.generation.load(Ordering::SeqCst);
        let idle = self.idle.lock().unwrap().pop();
        let mut stream = match idle {
            Some((of, stream)) if of == generation => stream,
            _ => {
                let stream = TcpStream::connect(self.address).await.ok()?;
                stream.set_nodelay(true).ok()?;
                stream
            }
        };
        let exchange = async {
            stream.write_all(bytes).await?;
            wire::read(&mut stream, &mut Vec::new()).await
        };
        let response = exchange.await.ok().flatten();
        let is_open = |response: &Message| response.header("connection") != Some("close");
        if response.as_ref().is_some_and(is_open) {
            self.idle.lock().unwrap().push((generation, stream));
        }
        Some(response)
    }
}

/// The header that says which operation a request belongs to.
pub(crate) const OPERATION_HEADER: &str = "x-hostile-operation";
const SILENCE: Duration = Duration::from_secs(5);
const REORDER: Duration = Duration::from_millis(500);
const INTERIM_RESPONSES: usize = 200;
const INTERIM_PAUSE: Duration = Duration::from_millis(5);
const ATTEMPTS_UNTIL_UP: usize = 250;
const PAUSE_UNTIL_UP: Duration = Duration::from_millis(20);
