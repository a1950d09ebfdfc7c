//! [`Progress`]: the phase of a connection's current request, as reported by the parts of the connection.
//!
//! The stream reports the first byte of a head and the last byte of a response; the exchange reports the phases between them.
//! The code that closes connections asks here whether a connection is idle.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::idle::{IdleList, Place};
use crate::request::memory::Transfer;

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for a request.
    Idle,
    /// Some of a head has come.
    Head,
    /// A request is being read or answered.
    Answering,
    /// hyper has the whole answer, but the client may not.
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
pub(super) struct Progress {
    phase: watch::Sender<Phase>,
    is_known: AtomicBool,
    idle: Arc<IdleList>,
    place: Mutex<Option<Place>>,
    leave: Arc<Notify>,
    /// The response that is sent, if it is one that others may need the memory of.
    sending: Mutex<Option<Arc<Transfer>>>,
    cut: Arc<Notify>,
}

impl Progress {
    /// Of a connection that is new, and as such idle.
    pub(super) fn new(idle: Arc<IdleList>) -> Self {
        let leave = Arc::new(Notify::new());
        let place = idle.enter(false, Arc::clone(&leave));
        Self {
            phase: watch::Sender::new(Phase::Idle),
            is_known: AtomicBool::new(false),
            idle,
            place: Mutex::new(Some(place)),
            leave,
            sending: Mutex::default(),
            cut: Arc::default(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Whether a request with an acceptable credential came on this connection.
    pub(super) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// A request's credential was accepted.
    pub(super) fn became_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// Some bytes have come.
    pub(super) fn received(&self) {
        self.advance(Phase::Idle, Phase::Head);
    }

    /// A request has come.
    pub(super) fn began(&self) {
        self.phase.send_replace(Phase::Answering);
        self.leave_idle_list();
    }

    /// The answer is with hyper.
    pub(super) fn answered(&self) {
        // An unauthenticated client that does not take its refusals can be spared as one that is idle.
        if self.advance(Phase::Answering, Phase::Flushing) && !self.is_known() {
            self.enter_idle_list();
        }
    }

    /// From here on the client takes this response.
    pub(super) fn sends(&self, response: Arc<Transfer>) {
        response.begin_sending(Arc::clone(&self.cut));
        *lock(&self.sending) = Some(response);
    }

    /// The system has taken so many bytes.
    pub(super) fn sent(&self, bytes: usize) {
        if let Some(response) = &*lock(&self.sending) {
            response.moved(bytes);
        }
    }

    /// Resolves when others need the memory of the response that is sent, and the client does not take it.
    pub(super) async fn is_cut(&self) {
        loop {
            self.cut.notified().await;
            // It may have been an earlier response, which is through.
            if lock(&self.sending).as_ref().is_some_and(|it| it.is_cut()) {
                return;
            }
        }
    }

    /// All that hyper had is with the system.
    pub(super) fn flushed(&self) {
        if self.advance(Phase::Flushing, Phase::Idle) {
            lock(&self.sending).take();
            self.enter_idle_list();
        }
    }

    /// Whatever happens now, no answer depends on it.
    pub(super) fn lingers(&self) {
        self.phase.send_replace(Phase::Idle);
        self.enter_idle_list();
    }

    /// Resolves when the place of this connection is needed for another.
    pub(super) async fn is_evicted(&self) {
        self.leave.notified().await;
    }

    /// Resolves when no answer is under way.
    pub(super) async fn is_quiet(&self) {
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
        let place = self.idle.enter(self.is_known(), Arc::clone(&self.leave));
        self.replace(Some(place));
    }

    fn leave_idle_list(&self) {
        self.replace(None);
    }

    fn replace(&self, place: Option<Place>) {
        let mut current = lock(&self.place);
        if let Some(previous) = std::mem::replace(&mut *current, place) {
            self.idle.remove(previous);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.leave_idle_list();
    }
}
