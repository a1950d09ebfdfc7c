//! [`MemoryBudget`]: the memory that bodies of requests, or responses, may use at a time, and its
//! division among clients.
//!
//! Memory is reserved as bytes arrive, never for an announced length. One client, which is an
//! account at an address (IPv6: at a /64 network), gets at most half of a budget. When memory is
//! short, transfers whose client has stalled are aborted first. This module knows neither sockets
//! nor operations.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tablesdk_protocol::{ErrorCode, ServiceError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// A bound on memory, shared by all transfers in one direction.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    /// Has a permit for each byte.
    total: Arc<Semaphore>,
    /// How many bytes one client may hold.
    share_bytes: usize,
    /// The permits of each client that holds memory or waits for it.
    shares: Mutex<HashMap<Client, Weak<Semaphore>>>,
    transfers: Mutex<Transfers>,
}

/// The client of a transfer: an account, and the address of the connection.
type Client = (String, IpAddr);

#[derive(Debug, Default)]
struct Transfers {
    count: u64,
    list: BTreeMap<u64, Arc<Transfer>>,
}

impl MemoryBudget {
    pub(crate) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            total: Arc::new(Semaphore::new(bytes)),
            share_bytes: bytes / 2,
            shares: Mutex::default(),
            transfers: Mutex::default(),
        })
    }

    /// The part of the budget that a client may hold.
    pub(crate) fn share(self: &Arc<Self>, account: &str, peer: IpAddr) -> Share {
        let mut shares = lock(&self.shares);
        let client = (account.to_owned(), network(peer));
        let permits = match shares.get(&client).and_then(Weak::upgrade) {
            Some(permits) => permits,
            None => {
                // Entries of clients that hold nothing are removed now and then.
                if shares.len().is_power_of_two() {
                    shares.retain(|_, permits| permits.strong_count() > 0);
                }
                let permits = Arc::new(Semaphore::new(self.share_bytes));
                shares.insert(client, Arc::downgrade(&permits));
                permits
            }
        };
        Share {
            budget: Arc::clone(self),
            permits,
        }
    }

    /// Aborts stalled transfers, oldest first, until they free this many bytes: those of all
    /// clients if the budget is short, those of the same client if only its share is short.
    fn cut_stalled_for(&self, share: &Arc<Semaphore>, bytes: usize) {
        let is_short = self.total.available_permits() < bytes;
        let now = Instant::now();
        let mut freed = 0;
        for transfer in lock(&self.transfers).list.values() {
            if freed >= bytes {
                return;
            }
            if (is_short || Arc::ptr_eq(&transfer.share, share)) && transfer.is_stalled(now) {
                transfer.cut();
                freed += transfer.bytes.load(Ordering::Relaxed);
            }
        }
    }

    /// Aborts some stalled transfers, oldest first.
    fn cut_stalled(&self) {
        let now = Instant::now();
        let transfers = lock(&self.transfers);
        let stalled = transfers.list.values().filter(|it| it.is_stalled(now));
        stalled.take(CUT_AT_ONCE).for_each(|it| it.cut());
    }
}

/// The part of a budget that one client may hold.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    budget: Arc<MemoryBudget>,
    permits: Arc<Semaphore>,
}

impl Share {
    /// Reserves memory for a transfer. If it is short, waits and aborts stalled transfers.
    ///
    /// # Errors
    ///
    /// `ServerBusy` when none is available for some time.
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<Reservation, ServiceError> {
        let permits = match self.try_permits(bytes) {
            Some(permits) => permits,
            None => self.wait(bytes).await?,
        };
        Ok(self.reserved(bytes, permits))
    }

    fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let permits = self.try_permits(bytes)?;
        Some(self.reserved(bytes, permits))
    }

    fn reserved(&self, bytes: usize, permits: Permits) -> Reservation {
        let transfer = Transfer::new(&self.permits, bytes);
        let mut transfers = lock(&self.budget.transfers);
        transfers.count += 1;
        let id = transfers.count;
        transfers.list.insert(id, Arc::clone(&transfer));
        drop(transfers);
        Reservation {
            share: self.clone(),
            id,
            permits,
            transfer,
        }
    }

    async fn wait(&self, bytes: usize) -> Result<Permits, ServiceError> {
        let (total, share) = (&self.budget.total, &self.permits);
        let count = self.count(bytes);
        let acquired = async {
            let share = Arc::clone(share).acquire_many_owned(count).await.ok()?;
            let total = Arc::clone(total).acquire_many_owned(count).await.ok()?;
            Some(Permits { total, share })
        };
        let mut acquired = std::pin::pin!(acquired);
        let end = Instant::now() + WAIT_MAX;
        loop {
            self.budget.cut_stalled_for(share, bytes);
            let next = (Instant::now() + CUT_INTERVAL).min(end);
            match timeout_at(next, acquired.as_mut()).await {
                Ok(Some(permits)) => return Ok(permits),
                // The semaphores are never closed.
                Ok(None) => return Err(ErrorCode::ServerBusy.into()),
                Err(_) if next == end => return Err(ErrorCode::ServerBusy.into()),
                Err(_) => {}
            }
        }
    }

    fn try_permits(&self, bytes: usize) -> Option<Permits> {
        let count = self.count(bytes);
        let share = Arc::clone(&self.permits);
        let share = share.try_acquire_many_owned(count).ok()?;
        let total = Arc::clone(&self.budget.total);
        let total = total.try_acquire_many_owned(count).ok()?;
        Some(Permits { total, share })
    }

    /// In practice, no transfer is larger than a share. A larger one could never be reserved.
    fn count(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.min(self.budget.share_bytes)).unwrap_or(u32::MAX)
    }
}

/// The reserved memory of one transfer, which is freed on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    share: Share,
    id: u64,
    permits: Permits,
    transfer: Arc<Transfer>,
}

#[derive(Debug)]
struct Permits {
    total: OwnedSemaphorePermit,
    share: OwnedSemaphorePermit,
}

impl Reservation {
    /// The transfer that holds the memory.
    pub(crate) const fn transfer(&self) -> &Arc<Transfer> {
        &self.transfer
    }

    /// Ends the transfer and keeps its memory for the next one, which has not begun.
    pub(crate) fn end_transfer(&mut self) {
        let bytes = self.transfer.bytes.load(Ordering::Relaxed);
        self.transfer = Transfer::new(&self.share.permits, bytes);
        let mut transfers = lock(&self.share.budget.transfers);
        transfers.list.insert(self.id, Arc::clone(&self.transfer));
    }

    /// Returns true if no memory is reserved: it only tracks its transfer.
    pub(crate) fn is_empty(&self) -> bool {
        self.transfer.bytes.load(Ordering::Relaxed) == 0
    }

    /// Changes the size, if that is possible at once.
    pub(crate) fn try_resize(&mut self, bytes: usize) -> bool {
        let held = self.transfer.bytes.load(Ordering::Relaxed);
        if bytes > held {
            let Some(more) = self.share.try_permits(bytes - held) else {
                return false;
            };
            self.permits.total.merge(more.total);
            self.permits.share.merge(more.share);
        } else {
            drop(self.permits.total.split(held - bytes));
            drop(self.permits.share.split(held - bytes));
        }
        self.transfer.bytes.store(bytes, Ordering::Relaxed);
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        lock(&self.share.budget.transfers).list.remove(&self.id);
    }
}

/// A request body or a response in flight, and its pace.
#[derive(Debug)]
pub(crate) struct Transfer {
    share: Arc<Semaphore>,
    bytes: AtomicUsize,
    moved: AtomicUsize,
    /// When the client's part began. The time to make a response does not count.
    began: OnceLock<Instant>,
    is_cut: AtomicBool,
    cut: Notify,
    /// Notified instead of `cut`, once the connection sends the response.
    connection: OnceLock<Arc<Notify>>,
}

impl Transfer {
    fn new(share: &Arc<Semaphore>, bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            share: Arc::clone(share),
            bytes: AtomicUsize::new(bytes),
            moved: AtomicUsize::new(0),
            began: OnceLock::new(),
            is_cut: AtomicBool::new(false),
            cut: Notify::new(),
            connection: OnceLock::new(),
        })
    }

    /// Starts to measure the pace of the client.
    pub(crate) fn begin(&self) {
        self.began.get_or_init(Instant::now);
    }

    /// The same for a response. To abort it, its connection is notified and closes.
    pub(crate) fn begin_sending(&self, connection: Arc<Notify>) {
        let _ = self.connection.set(connection);
        self.begin();
    }

    /// Notes that the client has sent or received more bytes.
    pub(crate) fn moved(&self, bytes: usize) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Resolves when this transfer has stalled and is aborted because others need the memory.
    pub(crate) async fn until_cut(&self) {
        self.cut.notified().await;
    }

    /// Returns true if this transfer is aborted because it has stalled and others need the memory.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    fn is_stalled(&self, now: Instant) -> bool {
        let Some(began) = self.began.get() else {
            return false;
        };
        let late = now.duration_since(*began).saturating_sub(GRACE);
        let expected = late.as_millis().saturating_mul(PACE_MIN) / 1000;
        !self.is_cut() && expected > self.moved.load(Ordering::Relaxed) as u128
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        self.connection
            .get()
            .map_or(&self.cut, |it| it)
            .notify_one();
    }
}

/// The memory of the current request of a connection: of its body, and of its response. A
/// connection has one request at a time.
#[derive(Debug)]
pub(crate) struct RequestMemory {
    budgets: Arc<MemoryBudgets>,
    peer: IpAddr,
    /// The account of the last request that was authenticated.
    account: Mutex<Option<Arc<str>>>,
    response: Mutex<Option<Reservation>>,
}

/// The memory budgets of a server.
#[derive(Debug)]
pub(crate) struct MemoryBudgets {
    pub(crate) bodies: Arc<MemoryBudget>,
    pub(crate) responses: Arc<MemoryBudget>,
}

impl MemoryBudgets {
    /// Aborts some stalled transfers, because their connections are needed.
    pub(crate) fn cut_stalled(&self) {
        self.bodies.cut_stalled();
        self.responses.cut_stalled();
    }
}

impl Default for MemoryBudgets {
    fn default() -> Self {
        Self {
            bodies: MemoryBudget::new(BODIES_BYTES_MAX),
            responses: MemoryBudget::new(RESPONSES_BYTES_MAX),
        }
    }
}

impl RequestMemory {
    pub(crate) fn new(budgets: &Arc<MemoryBudgets>, peer: IpAddr) -> Arc<Self> {
        Arc::new(Self {
            budgets: Arc::clone(budgets),
            peer,
            account: Mutex::default(),
            response: Mutex::default(),
        })
    }

    /// Charges this account for the memory of the request.
    pub(crate) fn belongs_to(&self, account: &Arc<str>) {
        let mut charged = lock(&self.account);
        if charged.as_ref() != Some(account) {
            *charged = Some(Arc::clone(account));
        }
    }

    /// Reserves memory for the body.
    ///
    /// # Errors
    ///
    /// As [`Share::reserve`].
    pub(crate) async fn reserve_body(&self, bytes: usize) -> Result<Reservation, ServiceError> {
        self.share(&self.budgets.bodies).reserve(bytes).await
    }

    /// Reserves memory for the response before it is made. Only for requests that change nothing,
    /// because it can fail.
    ///
    /// # Errors
    ///
    /// As [`Share::reserve`].
    pub(crate) async fn reserve_response(&self, bytes: usize) -> Result<(), ServiceError> {
        if bytes <= SMALL_BYTES_MAX {
            return Ok(());
        }
        // No memory is held during the wait.
        lock(&self.response).take();
        let reserved = self.share(&self.budgets.responses).reserve(bytes).await?;
        *lock(&self.response) = Some(reserved);
        Ok(())
    }

    /// As [`RequestMemory::reserve_response`], if the memory is available at once.
    pub(crate) fn try_reserve_response(&self, bytes: usize) -> bool {
        if bytes <= SMALL_BYTES_MAX {
            return true;
        }
        let mut response = lock(&self.response);
        if let Some(held) = response.as_mut() {
            return held.try_resize(bytes);
        }
        *response = self.share(&self.budgets.responses).try_reserve(bytes);
        response.is_some()
    }

    /// Changes the memory of the response to this size, if that is possible at once.
    pub(crate) fn try_resize_response(&self, bytes: usize) -> bool {
        let mut response = lock(&self.response);
        response.as_mut().is_none_or(|held| held.try_resize(bytes))
    }

    /// The memory of the response, to be held until it is sent.
    pub(crate) fn take_response(&self, bytes: usize) -> Option<Reservation> {
        let mut response = lock(&self.response).take()?;
        // A response is longer than its reservation by less than a slice of a query.
        response.try_resize(bytes);
        Some(response)
    }

    fn share(&self, budget: &Arc<MemoryBudget>) -> Share {
        let account = lock(&self.account).clone();
        budget.share(account.as_deref().unwrap_or_default(), self.peer)
    }
}

/// The network of a client: the address in IPv4, the /64 network in IPv6, all of which one client
/// commonly has.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bodies and responses up to this size are not counted: they are no larger than the buffers of
/// their connection.
pub(crate) const SMALL_BYTES_MAX: usize = 16 * 1024;
/// The total size of all request bodies at a time.
pub(crate) const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The total size of all responses at a time.
const RESPONSES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The longest wait for memory.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How often a waiting request looks for stalled transfers.
const CUT_INTERVAL: Duration = Duration::from_millis(250);
/// How many stalled transfers are aborted at a time for their connections.
const CUT_AT_ONCE: usize = 16;
/// How long a transfer may be slower than the minimum pace while others wait for its memory or its
/// connection.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
/// The pace, in bytes a second, below which a transfer has stalled while others wait for its
/// memory.
const PACE_MIN: u128 = 128 * 1024;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[tokio::test(start_paused = true)]
    async fn one_client_gets_half_and_another_the_rest() {
        let budget = MemoryBudget::new(100);
        let first = budget.share("first", HERE);
        let held = first.reserve(50).await.unwrap();
        let began = Instant::now();
        let refusal = first.reserve(1).await.unwrap_err();
        assert_eq!(*refusal.code(), ErrorCode::ServerBusy);
        assert_eq!(began.elapsed(), WAIT_MAX);

        let elsewhere = IpAddr::V4(Ipv4Addr::BROADCAST);
        for client in [
            budget.share("second", HERE),
            budget.share("first", elsewhere),
        ] {
            client.reserve(50).await.unwrap();
        }
        assert_eq!(began.elapsed(), WAIT_MAX, "nothing else waited");
        drop(held);
        first.reserve(50).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_transfer_is_aborted_for_its_memory() {
        let budget = MemoryBudget::new(2_000_000);
        let share = budget.share("acct", HERE);
        let stalled = share.reserve(500_000).await.unwrap();
        let moving = share.reserve(500_000).await.unwrap();
        stalled.transfer().begin();
        moving.transfer().begin();
        // No other transfer needs the memory, so both may be slow.
        tokio::time::advance(Duration::from_secs(3)).await;
        moving.transfer().moved(400_000);
        let cut = async {
            let transfer = Arc::clone(stalled.transfer());
            transfer.until_cut().await;
            drop(stalled);
        };
        let began = Instant::now();
        let (reserved, ()) = tokio::join!(share.reserve(400_000), cut);
        reserved.unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO);
        let cut = timeout_at(began, moving.transfer().until_cut()).await;
        assert!(cut.is_err(), "the client keeps up");
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_in_the_making_has_not_stalled() {
        let budget = MemoryBudget::new(2);
        let share = budget.share("acct", HERE);
        let held = share.reserve(1).await.unwrap();
        assert!(share.reserve(1).await.is_err());
        held.transfer().begin();
        let cut = async {
            held.transfer().until_cut().await;
            Instant::now()
        };
        let began = Instant::now();
        let (refused, cut) = tokio::join!(share.reserve(1), cut);
        assert!(refused.is_err(), "the reservation was not returned");
        assert!(cut - began <= GRACE + 2 * CUT_INTERVAL);
    }

    #[tokio::test(start_paused = true)]
    async fn a_complete_body_is_not_aborted() {
        let budget = MemoryBudget::new(2);
        let share = budget.share("acct", HERE);
        let mut held = share.reserve(1).await.unwrap();
        held.transfer().begin();
        held.end_transfer();
        assert!(share.reserve(1).await.is_err());
        assert!(!held.transfer().is_cut());
        // Its response begins anew.
        held.transfer().begin_sending(Arc::default());
        assert!(!held.transfer().is_stalled(Instant::now()));
        assert!(held.transfer().is_stalled(Instant::now() + 2 * GRACE));
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let same = |one: &str, other: &str| {
            network(one.parse().unwrap()) == network(other.parse().unwrap())
        };
        assert!(same("2001:db8::1", "2001:db8::ffff:1"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("::ffff:192.0.2.7", "192.0.2.7"));
        assert!(!same("192.0.2.7", "192.0.2.8"));
    }

    #[tokio::test]
    async fn a_reservation_frees_unneeded_memory() {
        let budget = MemoryBudget::new(20);
        let share = budget.share("acct", HERE);
        let mut held = share.reserve(10).await.unwrap();
        assert!(held.try_resize(3) && held.try_resize(7) && !held.try_resize(11));
        assert_eq!(budget.total.available_permits(), 13);
        drop(held);
        assert_eq!(budget.total.available_permits(), 20);
        assert!(lock(&budget.transfers).list.is_empty());
        drop(share);
        budget.share("another", HERE);
        assert_eq!(
            lock(&budget.shares).len(),
            1,
            "who holds nothing is forgotten"
        );
    }
}
