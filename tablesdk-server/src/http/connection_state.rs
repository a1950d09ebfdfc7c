//! [`ConnectionState`]: the phase of a connection's current request, as reported by the parts of the connection.
//!
//! The stream reports the first byte of a head and the last byte of a response; the exchange reports the phases between them.
//! The code that closes connections asks here whether a connection is idle.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::idle::{IdleList, IdlePosition};
use crate::request::memory::Transfer;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No request is in flight.
    Idle,
    /// A part of a head was received.
    Head,
    /// A request is being read or processed.
    Responding,
    /// hyper has the whole response, but may not have sent it.
    Flushing,
}

impl Phase {
    /// Whether the connection can be closed now without the loss of a response.
    const fn is_quiet(self) -> bool {
        matches!(self, Self::Idle | Self::Head)
    }
}

/// The phase of one connection, shared by its parts.
#[derive(Debug)]
pub(super) struct ConnectionState {
    phase: watch::Sender<Phase>,
    is_authenticated: AtomicBool,
    idle: Arc<IdleList>,
    position: Mutex<Option<IdlePosition>>,
    evict: Arc<Notify>,
    /// The response that is being sent, if it uses memory of the budget.
    sending: Mutex<Option<Arc<Transfer>>>,
    cut: Arc<Notify>,
}

impl ConnectionState {
    /// The state of a new connection, which is idle.
    pub(super) fn new(idle: Arc<IdleList>) -> Self {
        let evict = Arc::new(Notify::new());
        let position = idle.enter(false, Arc::clone(&evict));
        Self {
            phase: watch::Sender::new(Phase::Idle),
            is_authenticated: AtomicBool::new(false),
            idle,
            position: Mutex::new(Some(position)),
            evict,
            sending: Mutex::default(),
            cut: Arc::default(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Whether a credential was accepted on this connection.
    pub(super) fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    /// A credential was accepted.
    pub(super) fn set_authenticated(&self) {
        self.is_authenticated.store(true, Ordering::Relaxed);
    }

    /// The first bytes of a head were received.
    pub(super) fn begin_head(&self) {
        self.advance(Phase::Idle, Phase::Head);
    }

    /// A request was received.
    pub(super) fn begin_request(&self) {
        self.phase.send_replace(Phase::Responding);
        self.leave_idle_list();
    }

    /// hyper has the whole response.
    pub(super) fn end_response(&self) {
        // An unauthenticated client that does not read its responses may be evicted like an idle one.
        if self.advance(Phase::Responding, Phase::Flushing) && !self.is_authenticated() {
            self.enter_idle_list();
        }
    }

    /// From now on this response is being sent.
    pub(super) fn begin_response(&self, response: Arc<Transfer>) {
        response.begin_sending(Arc::clone(&self.cut));
        *lock(&self.sending) = Some(response);
    }

    /// So many bytes were sent.
    pub(super) fn sent(&self, bytes: usize) {
        if let Some(response) = &*lock(&self.sending) {
            response.moved(bytes);
        }
    }

    /// Resolves when other responses need the memory of this one, and the client does not read it.
    pub(super) async fn cut_off(&self) {
        loop {
            self.cut.notified().await;
            // It may have been an earlier response, which is complete.
            if lock(&self.sending).as_ref().is_some_and(|it| it.is_cut()) {
                return;
            }
        }
    }

    /// hyper has sent all it had.
    pub(super) fn flushed(&self) {
        if self.advance(Phase::Flushing, Phase::Idle) {
            lock(&self.sending).take();
            self.enter_idle_list();
        }
    }

    /// From now on no response is lost if the connection ends.
    pub(super) fn linger(&self) {
        self.phase.send_replace(Phase::Idle);
        self.enter_idle_list();
    }

    /// Resolves when another connection needs the permit of this one.
    pub(super) async fn evicted(&self) {
        self.evict.notified().await;
    }

    /// Resolves when no response is in flight.
    pub(super) async fn quiet(&self) {
        let mut phase = self.phase.subscribe();
        // It does not fail: the sender is borrowed.
        let _ = phase.wait_for(|phase| phase.is_quiet()).await;
    }

    fn advance(&self, from: Phase, to: Phase) -> bool {
        self.phase.send_if_modified(|phase| {
            let advances = *phase == from;
            if advances {
                *phase = to;
            }
            advances
        })
    }

    fn enter_idle_list(&self) {
        let position = self
            .idle
            .enter(self.is_authenticated(), Arc::clone(&self.evict));
        self.set_position(Some(position));
    }

    fn leave_idle_list(&self) {
        self.set_position(None);
    }

    fn set_position(&self, position: Option<IdlePosition>) {
        let mut current = lock(&self.position);
        if let Some(previous) = std::mem::replace(&mut *current, position) {
            self.idle.remove(previous);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for ConnectionState {
    fn drop(&mut self) {
        self.leave_idle_list();
    }
}
