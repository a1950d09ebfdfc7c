//! A network that does what no server can, and its faults therefore cannot.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::channel::oneshot;
use harness::proxy::foreign;
use http::{Request, Response};
use tablesdk::transport::{Transport, TransportError, TransportFuture};
use tokio::time::timeout;

use super::history::{Drawn, History};

/// The treatment of a request by the network.
#[derive(Clone, Copy)]
enum Deed {
    Forward,
    /// The client knows that it was not sent.
    Refuse,
    /// Something in between responds with a page, before or after it passes the request on.
    Page {
        status: u16,
        is_carried_out: bool,
    },
    /// The client gets the response to another request, whose client gets this one's.
    Exchange,
}

/// A transport that the clients of a history share.
#[derive(Clone)]
pub(super) struct Network {
    inner: Arc<dyn Transport>,
    state: Arc<Mutex<State>>,
}

struct State {
    rng: Rng,
    requests: u64,
    history: History,
    drawn: Drawn,
    waits: Option<(Response<Bytes>, oneshot::Sender<Response<Bytes>>)>,
}

impl Network {
    pub(super) fn new(inner: Arc<dyn Transport>, history: &History, drawn: &Drawn) -> Self {
        let state = State {
            rng: Rng::with_seed(!history.seed),
            requests: FIRST,
            history: history.clone(),
            drawn: Arc::clone(drawn),
            waits: None,
        };
        let state = Arc::new(Mutex::new(state));
        Self { inner, state }
    }

    /// Hands the response to a request that waits for another one, and returns that one's. The
    /// first waits.
    async fn exchanged(&self, response: Response<Bytes>) -> Response<Bytes> {
        let waits = self.state.lock().unwrap().waits.take();
        if let Some((other, waiting)) = waits {
            // Its client may have ended.
            drop(waiting.send(response));
            return other;
        }
        let (sender, other) = oneshot::channel();
        let own = response.clone();
        self.state.lock().unwrap().waits = Some((response, sender));
        if let Ok(Ok(other)) = timeout(Duration::from_secs(1), other).await {
            return other;
        }
        self.state.lock().unwrap().waits = None;
        own
    }
}

impl Transport for Network {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let deed = self.state.lock().unwrap().draw();
            match deed {
                Deed::Forward => self.inner.send(request).await,
                Deed::Refuse => Err(TransportError::not_sent("connection refused")),
                Deed::Page {
                    status,
                    is_carried_out,
                } => {
                    if is_carried_out {
                        self.inner.send(request).await?;
                    }
                    Ok(foreign(status))
                }
                Deed::Exchange => {
                    let response = self.inner.send(request).await?;
                    Ok(self.exchanged(response).await)
                }
            }
        })
    }
}

impl State {
    /// The same seed and the same requests get the same deeds.
    fn draw(&mut self) -> Deed {
        self.requests += 1;
        let status = [200, 204, 302, 400, 403, 404, 409, 412, 502, 503][self.rng.usize(..10)];
        let deed = match self.rng.u8(..128) {
            0 => Deed::Refuse,
            number @ 1..3 => Deed::Page {
                status,
                is_carried_out: number == 1,
            },
            3..6 => Deed::Exchange,
            _ => return Deed::Forward,
        };
        if self.history.spared.contains(&self.requests) {
            return Deed::Forward;
        }
        let mut drawn = self.drawn.lock().unwrap();
        drawn.push((self.requests, deed.to_string()));
        deed
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forward => f.write_str("forwarded"),
            Self::Refuse => f.write_str("connection refused"),
            Self::Page {
                status,
                is_carried_out: true,
            } => write!(f, "carried out, and a page with {status}"),
            Self::Page { status, .. } => write!(f, "a page with {status}"),
            Self::Exchange => f.write_str("response exchanged"),
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

/// The requests that reach the network have numbers of their own: not all of them reach the server.
const FIRST: u64 = 1 << 32;
