//! The same types as in `memory.rs`, without the feature `network`: bodies and responses have as
//! much memory as they need.
//!
//! Modules with this suffix take the places of the defence against a hostile network, so that no
//! caller knows the difference: a test's server has one client, which is in its own process.

#![expect(clippy::unused_self, reason = "the methods of the other type")]

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tablesdk_protocol::ServiceError;
use tokio::sync::Notify;

/// The memory budgets of a server, which has none.
#[derive(Debug, Default)]
pub(crate) struct MemoryBudgets;

impl MemoryBudgets {
    pub(crate) const fn cut_stalled(&self) {}
}

/// The memory of the current request of a connection.
#[derive(Debug)]
pub(crate) struct RequestMemory;

impl RequestMemory {
    pub(crate) fn new(_: &Arc<MemoryBudgets>, _: IpAddr) -> Arc<Self> {
        Arc::new(Self)
    }

    pub(crate) const fn belongs_to(&self, _: &Arc<str>) {}

    pub(crate) fn reserve_body(
        &self,
        _: usize,
    ) -> std::future::Ready<Result<Reservation, ServiceError>> {
        std::future::ready(Ok(Reservation(Arc::new(Transfer))))
    }

    pub(crate) fn reserve_response(
        &self,
        _: usize,
    ) -> std::future::Ready<Result<(), ServiceError>> {
        std::future::ready(Ok(()))
    }

    pub(crate) const fn try_reserve_response(&self, _: usize) -> bool {
        true
    }

    pub(crate) const fn try_resize_response(&self, _: usize) -> bool {
        true
    }

    pub(crate) const fn take_response(&self, _: usize) -> Option<Reservation> {
        None
    }
}

/// The memory of one transfer.
#[derive(Debug)]
pub(crate) struct Reservation(Arc<Transfer>);

impl Reservation {
    pub(crate) const fn transfer(&self) -> &Arc<Transfer> {
        &self.0
    }

    pub(crate) const fn end_transfer(&mut self) {}

    pub(crate) const fn is_empty(&self) -> bool {
        false
    }

    pub(crate) const fn try_resize(&mut self, _: usize) -> bool {
        true
    }
}

/// A request body or a response in flight.
#[derive(Debug)]
pub(crate) struct Transfer;

impl Transfer {
    pub(crate) const fn begin(&self) {}

    pub(crate) fn begin_sending(&self, _: Arc<Notify>) {}

    pub(crate) const fn moved(&self, _: usize) {}

    pub(crate) fn until_cut(&self) -> std::future::Pending<()> {
        std::future::pending()
    }

    pub(crate) const fn is_cut(&self) -> bool {
        false
    }
}

/// The bodies and responses up to this size use the buffers of their connection.
pub(crate) const SMALL_BYTES_MAX: usize = 16 * 1024;
/// How long a body may take until its pace is measured.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
