//! [`ConnectionState`]: the phase of a connection's current request, as reported by the parts of
//! the connection.
//!
//! The stream reports the first byte of a head and the last byte of a response; the exchange
//! reports the phases between them. The code that closes connections asks here whether a connection
//! is idle.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::idle::{IdleConnection, IdleList};
use crate::request::memory::Transfer;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
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
    /// The phase with this number.
    const fn of(number: u8) -> Self {
        match number {
            HEAD => Self::Head,
            RESPONDING => Self::Responding,
            FLUSHING => Self::Flushing,
            _ => Self::Idle,
        }
    }

    /// Returns true if the connection can be closed now without the loss of a response.
    const fn is_quiet(self) -> bool {
        matches!(self, Self::Idle | Self::Head)
    }
}

const HEAD: u8 = Phase::Head as u8;
const RESPONDING: u8 = Phase::Responding as u8;
const FLUSHING: u8 = Phase::Flushing as u8;

/// The phase of one connection, shared by its parts.
///
/// It changes four times in each request, and is awaited only when the connection ends: so it is a
/// number, and not a channel.
#[derive(Debug)]
pub(super) struct ConnectionState {
    /// A [`Phase`].
    phase: AtomicU8,
    /// True if [`quiet`](Self::quiet) waits. This flag and the phase are in one order for all
    /// threads, so that either the waiting task sees a phase or its change sees the flag.
    quiet_is_awaited: AtomicBool,
    quiet: Notify,
    is_authenticated: AtomicBool,
    idle: Arc<IdleList>,
    connection: Arc<IdleConnection>,
    /// True if `sending` has a response.
    is_sending: AtomicBool,
    /// The response that is being sent, if it uses memory of the budget.
    sending: Mutex<Option<Arc<Transfer>>>,
    cut: Arc<Notify>,
}

impl ConnectionState {
    /// The state of a new connection, which is idle.
    pub(super) fn new(idle: Arc<IdleList>) -> Self {
        let connection = Arc::default();
        idle.enter(&connection, false);
        Self {
            phase: AtomicU8::new(Phase::Idle as u8),
            quiet_is_awaited: AtomicBool::new(false),
            quiet: Notify::new(),
            is_authenticated: AtomicBool::new(false),
            idle,
            connection,
            is_sending: AtomicBool::new(false),
            sending: Mutex::default(),
            cut: Arc::default(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        Phase::of(self.phase.load(Ordering::SeqCst))
    }

    /// Returns true if a credential was accepted on this connection.
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
        self.phase.store(RESPONDING, Ordering::SeqCst);
        self.connection.leave();
    }

    /// hyper has the whole response.
    pub(super) fn end_response(&self) {
        // An unauthenticated client that does not read its responses may be evicted like an idle
        // one.
        if self.advance(Phase::Responding, Phase::Flushing) && !self.is_authenticated() {
            self.enter_idle_list();
        }
    }

    /// From now on this response is being sent.
    pub(super) fn begin_response(&self, response: Arc<Transfer>) {
        response.begin_sending(Arc::clone(&self.cut));
        *lock(&self.sending) = Some(response);
        self.is_sending.store(true, Ordering::Release);
    }

    /// So many bytes were sent.
    pub(super) fn sent(&self, bytes: usize) {
        if self.is_sending.load(Ordering::Acquire)
            && let Some(response) = &*lock(&self.sending)
        {
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
            if self.is_sending.swap(false, Ordering::AcqRel) {
                lock(&self.sending).take();
            }
            self.enter_idle_list();
        }
    }

    /// From now on no response is lost if the connection ends.
    pub(super) fn linger(&self) {
        self.phase.store(Phase::Idle as u8, Ordering::SeqCst);
        self.notify_if_quiet(Phase::Idle);
        self.enter_idle_list();
    }

    /// Resolves when another connection needs the permit of this one.
    pub(super) async fn evicted(&self) {
        self.connection.evicted().await;
    }

    /// Resolves when no response is in flight.
    pub(super) async fn quiet(&self) {
        self.quiet_is_awaited.store(true, Ordering::SeqCst);
        while !self.phase().is_quiet() {
            // A change since then is remembered here.
            self.quiet.notified().await;
        }
    }

    fn advance(&self, from: Phase, to: Phase) -> bool {
        let (from, number) = (from as u8, to as u8);
        let changed =
            self.phase
                .compare_exchange(from, number, Ordering::SeqCst, Ordering::Relaxed);
        if changed.is_ok() {
            self.notify_if_quiet(to);
        }
        changed.is_ok()
    }

    fn notify_if_quiet(&self, phase: Phase) {
        if phase.is_quiet() && self.quiet_is_awaited.load(Ordering::SeqCst) {
            self.quiet.notify_one();
        }
    }

    fn enter_idle_list(&self) {
        self.idle.enter(&self.connection, self.is_authenticated());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for ConnectionState {
    fn drop(&mut self) {
        self.idle.remove(&self.connection);
    }
}
