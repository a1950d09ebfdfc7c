//! [`TestKit`]: the faults and journals of a server, as the service sees them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use http::Response;
use tablesdk_protocol::operation::Operation;
use tablesdk_protocol::{ServiceError, Timestamp};
use tokio::sync::watch;

use super::fault::{Application, Reaction};
use super::faults::Cleared;
use super::journal::Recording;
use super::place::Place;
use super::request::RequestInfo;
use super::{Fault, Faults, Journal, Op, RecordedRequest};
use crate::flavor::Flavor;
use crate::request::context::Context;
use crate::request::entity_counts::EntityCounts;

/// The faults and journals of a server. A request of a server that uses neither costs two loads of
/// a flag.
#[derive(Debug, Default)]
pub(crate) struct TestKit {
    faults: Faults,
    is_recording: AtomicBool,
    journals: Mutex<Vec<Weak<Recording>>>,
    /// Each observed request has a receiver of the sender that was here when it came.
    in_flight: Mutex<watch::Sender<Held>>,
}

/// The fate of the requests that faults hold back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Held {
    #[default]
    Wait,
    /// Those that are delayed go on at once. Those that are to be carried out later are dropped.
    GoOn,
    /// All are dropped.
    Drop,
}

impl TestKit {
    pub(crate) const fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Starts a journal.
    pub(crate) fn journal(&self) -> Journal {
        let recording = Arc::default();
        self.lock().push(Arc::downgrade(&recording));
        self.is_recording.store(true, Ordering::SeqCst);
        Journal(recording)
    }

    /// The kit's observation of a request; `None` if there are neither rules nor journals.
    pub(crate) fn request(
        self: &Arc<Self>,
        context: &mut Context,
        operation: &Operation,
        bytes_in: usize,
    ) -> Option<Box<Observed>> {
        let is_recording = self.is_recording.load(Ordering::Relaxed);
        if !is_recording && !self.faults.is_active() {
            return None;
        }
        let in_flight = self.in_flight().subscribe();
        let counts = Arc::default();
        context.entity_counts = Some(Arc::clone(&counts));
        let info = RequestInfo::new(context.account(), operation);
        let mut recorded = RecordedRequest::new(&info, context);
        recorded.bytes_in = bytes_in;
        let place = Place::of(&info, operation);
        let (flavor, now) = (context.flavor, context.now);
        let fault = self.faults.fault(&info, place.as_ref(), flavor, now);
        let fault = fault.map(|(rule, fault, cleared)| {
            recorded.rule = rule;
            recorded.fault = Some(fault.clone());
            (fault, cleared)
        });
        context.page_end = self.faults.page_end(&info, place.as_ref());
        // In memory of its own: the future of a request is copied, with or without it.
        Some(Box::new(Observed {
            kit: Arc::clone(self),
            info,
            place,
            fault,
            flavor,
            counts,
            in_flight: InFlight(in_flight),
            has_response: true,
            recorded: Some(recorded),
        }))
    }

    /// Notes the response to a request that was refused before it was decoded.
    pub(crate) fn refused(&self, context: &Context, response: &Response<Bytes>) {
        if self.is_recording.load(Ordering::Relaxed) {
            let info = RequestInfo::unknown(context.account());
            let mut recorded = RecordedRequest::new(&info, context);
            recorded.take_response(response);
            self.record(&recorded);
        }
    }

    /// Returns when all observed requests are complete that are in flight now. Those that are to be
    /// carried out later are not any more.
    pub(crate) async fn drain(&self) {
        self.end_waits(Held::GoOn).closed().await;
    }

    /// Removes the faults. No request is held back any more: those that are delayed go on at once,
    /// and those that are to be carried out later are dropped.
    pub(crate) fn stop(&self) {
        self.faults.clear();
        self.end_waits(Held::GoOn);
    }

    /// Drops the requests that faults hold back.
    pub(crate) fn drop_held(&self) {
        self.end_waits(Held::Drop);
    }

    fn end_waits(&self, held: Held) -> watch::Sender<Held> {
        let before = std::mem::take(&mut *self.in_flight());
        before.send_replace(held);
        before
    }

    fn in_flight(&self) -> MutexGuard<'_, watch::Sender<Held>> {
        // Nothing panics while it is locked.
        self.in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, request: &RecordedRequest) {
        let mut journals = self.lock();
        journals.retain(|journal| journal.strong_count() > 0);
        self.is_recording
            .store(!journals.is_empty(), Ordering::SeqCst);
        for journal in journals.iter().filter_map(Weak::upgrade) {
            journal.add(request.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Recording>>> {
        // Nothing panics while it is locked.
        self.journals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that the kit observes. It is recorded when its response is complete, or when it is
/// dropped without one.
#[derive(Debug)]
pub(crate) struct Observed {
    kit: Arc<TestKit>,
    info: RequestInfo,
    place: Option<Place>,
    /// The fault to inject, and the end of its waits.
    fault: Option<(Fault, Cleared)>,
    flavor: Flavor,
    counts: Arc<EntityCounts>,
    in_flight: InFlight,
    /// True if the operation was carried out, or has an injected error, before the connection ends.
    has_response: bool,
    /// `None` once it is recorded.
    recorded: Option<RecordedRequest>,
}

impl Observed {
    /// The fault to inject, and the end of its waits.
    pub(crate) fn fault(&self) -> Option<(Application, Reaction, Cleared)> {
        let (fault, cleared) = self.fault.clone()?;
        Some((fault.application, fault.reaction, cleared))
    }

    /// The same request, for when it is carried out without a response to its client.
    pub(crate) fn detached(&self) -> Detached {
        Detached {
            kit: Arc::clone(&self.kit),
            in_flight: self.in_flight(),
            recorded: self.recorded.clone(),
        }
    }

    /// Keeps the request in flight, beyond its response.
    pub(crate) fn in_flight(&self) -> InFlight {
        self.in_flight.clone()
    }

    /// Notes the result of the operation, in case that the client gives up before it gets a
    /// response.
    pub(crate) fn carried_out(&mut self, result: &Result<Response<Bytes>, ServiceError>) {
        if let Some(recorded) = &mut self.recorded {
            recorded.take_result(result);
        }
    }

    /// Notes that there is no response.
    pub(crate) const fn has_no_response(&mut self) {
        self.has_response = false;
    }

    /// Notes that the request is dropped: its connection is reset.
    pub(crate) fn is_dropped(&mut self) {
        if let Some((fault, _)) = &mut self.fault {
            *fault = Fault::reset();
        }
    }

    /// Notes the error of the operation.
    pub(crate) fn failed(&mut self, error: &ServiceError) {
        if let Some(recorded) = &mut self.recorded {
            recorded.error_code = Some(error.code().clone());
        }
    }

    /// Records a response, and makes of it what the fault demands.
    pub(crate) fn responded(mut self, response: &mut Response<Bytes>, now: Timestamp) {
        let returned = self.counts.all_returned();
        if self.kit.faults.is_active() {
            // Of a connection that is reset, the response is an empty one.
            let is_success = self.has_response && response.status().is_success();
            if self.info.op == Some(Op::DeleteTable) && is_success {
                self.kit.faults.table_deleted(&self.info);
            }
            let place = self.place.as_ref();
            self.kit.faults.returned(&self.info, place, returned, now);
        }
        if let Some(mut recorded) = self.recorded.take() {
            recorded.entities_returned = returned;
            recorded.entities_examined = self.counts.all_examined();
            recorded.time = now;
            if self.has_response {
                recorded.take_response(response);
            }
            self.kit.record(&recorded);
        }
        if let Some((fault, _)) = &self.fault {
            fault.damage(self.flavor, response);
        }
    }
}

/// A request that is not complete, for [`TestKit::drain`].
#[derive(Clone, Debug)]
pub(crate) struct InFlight(watch::Receiver<Held>);

impl InFlight {
    /// Resolves when no request is held back any more. Returns whether a delayed one goes on.
    pub(crate) async fn drained(&mut self) -> bool {
        // The sender is dropped only after its last value.
        let _ = self.0.changed().await;
        *self.0.borrow() != Held::Drop
    }
}

/// An observed request that is carried out without a response to its client: late, once more, or in
/// spite of an injected error.
#[derive(Debug)]
pub(crate) struct Detached {
    kit: Arc<TestKit>,
    in_flight: InFlight,
    recorded: Option<RecordedRequest>,
}

impl Detached {
    /// Resolves when the kit drains its requests.
    pub(crate) async fn drained(&mut self) {
        self.in_flight.drained().await;
    }

    /// Records the result.
    pub(crate) fn carried_out(
        self,
        result: &Result<Response<Bytes>, ServiceError>,
        now: Timestamp,
    ) {
        if let Some(mut recorded) = self.recorded {
            recorded.time = now;
            recorded.take_result(result);
            self.kit.record(&recorded);
        }
    }
}

/// The client has given up, or the server stops.
impl Drop for Observed {
    fn drop(&mut self) {
        if let Some(recorded) = self.recorded.take() {
            self.kit.record(&recorded);
        }
    }
}
