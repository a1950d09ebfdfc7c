//! [`Faults`]: the rules of a server, and the decision about each request.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tablesdk_protocol::{ErrorCode, Timestamp};
use tokio::sync::watch;

use super::json::RuleInForce;
use super::partition_map::{Availability, PartitionMap, PartitionMaps};
use super::place::{Place, table_of};
use super::request::RequestInfo;
use super::rule::{FaultRule, Rule};
use super::throttle::{Throttle, Throttling};
use super::{Fault, Op};
use crate::flavor::Flavor;

/// Injects faults into the requests of a server: over HTTP and without a socket alike. Clones share
/// everything.
///
/// Returned by [`TableServer::faults`](crate::TableServer::faults). Faults hit authenticated
/// requests that can be decoded; each of them is one that networks and the service cause, so a
/// correct client survives it or reports it truthfully.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tablesdk_server::testing::{Fault, Op};
/// use tablesdk_server::{ErrorCode, TableServer};
///
/// let server = TableServer::in_process();
/// let faults = server.faults();
/// let lost = faults.on(Op::InsertEntity).table("Orders").nth(2).inject(Fault::lost_response());
/// let busy = Fault::error(ErrorCode::ServerBusy).retry_after(Duration::from_secs(1));
/// faults.on_reads().times(3).inject(busy);
/// // … the test …
/// assert_eq!(lost.hits(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Faults(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// True if there is any rule: a server without rules does not lock anything.
    is_active: AtomicBool,
    state: Mutex<FaultState>,
}

#[derive(Default)]
struct FaultState {
    rules: Vec<(u64, Rule)>,
    added: u64,
    throttling: Option<Throttling>,
    partitions: PartitionMaps,
    /// Dropped when the rules are cleared.
    in_force: watch::Sender<()>,
}

impl Faults {
    /// A rule for the requests of an operation.
    pub fn on(&self, op: Op) -> FaultRule {
        FaultRule::new(self, Some(vec![op]))
    }

    /// Injects a fault into the next request of an operation: the same as
    /// `on(op).times(1).inject(fault)`. Called again, it is for the request after that.
    pub fn next(&self, op: Op, fault: Fault) -> InjectedFault {
        self.on(op).times(1).inject(fault)
    }

    /// A rule for all requests.
    pub fn on_any(&self) -> FaultRule {
        FaultRule::new(self, None)
    }

    /// A rule for all operations that change nothing.
    pub fn on_reads(&self) -> FaultRule {
        let reads = Op::ALL.iter().filter(|op| !op.is_write());
        FaultRule::new(self, Some(reads.copied().collect()))
    }

    /// A rule for all operations that change entities, tables or settings, and for batches.
    pub fn on_writes(&self) -> FaultRule {
        let writes = Op::ALL.iter().filter(|op| op.is_write());
        FaultRule::new(self, Some(writes.copied().collect()))
    }

    /// Injects a random fault into every tenth request, on average: [`FaultRule::chaos`]. The same
    /// seed causes the same faults if the requests are the same, with the names of tables, the keys
    /// and the filters.
    pub fn chaos(&self, seed: u64) -> InjectedFault {
        self.on_any().probability(0.1).seed(seed).chaos()
    }

    /// Throttles as the service does: requests beyond the rate are refused with 503 `ServerBusy`;
    /// with the flavor [`CosmosDb`](Flavor::CosmosDb) it is 429 `TooManyRequests` and the time
    /// after which to retry. Replaces an earlier throttle.
    ///
    /// The time is that of [`TableServer::clock`](crate::TableServer::clock).
    pub fn throttle(&self, throttle: Throttle) {
        self.change(|state| state.throttling = Some(Throttling::new(throttle)));
    }

    /// Removes all rules and the throttle, and ends the waits of requests that faults have hit: a
    /// [`Fault::no_response`] ends with a reset of the connection, and a delay at once. The
    /// [partition maps](crate::TableServer::partitions) remain.
    pub fn clear(&self) {
        self.change(|state| {
            state.rules.clear();
            state.throttling = None;
            state.in_force = watch::Sender::new(());
        });
    }

    pub(super) fn add(&self, rule: Rule) -> InjectedFault {
        let hits = rule.hits.subscribe();
        let id = self.change(|state| {
            state.added += 1;
            state.rules.push((state.added, rule));
            state.added
        });
        InjectedFault {
            faults: self.clone(),
            id,
            hits,
        }
    }

    /// Removes a rule. Returns whether it was in force.
    pub(crate) fn remove(&self, id: u64) -> bool {
        self.change(|state| {
            let before = state.rules.len();
            state.rules.retain(|(other, _)| *other != id);
            state.rules.len() < before
        })
    }

    /// The rules in force, in the order in which they are asked.
    pub(crate) fn in_force(&self) -> Vec<RuleInForce> {
        self.change(|state| {
            let rules = state.rules.iter();
            rules.map(|(id, rule)| rule.in_force(*id)).collect()
        })
    }

    /// The throttle; without a limit if there is none.
    pub(crate) fn throttle_in_force(&self) -> Throttle {
        let throttling = &self.lock().throttling;
        throttling
            .as_ref()
            .map_or_else(Throttle::none, Throttling::throttle)
    }

    fn change<T>(&self, change: impl FnOnce(&mut FaultState) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        // Their senders of hits are dropped, too: who waits for more hits need not wait any longer.
        state.rules.retain(|(_, rule)| !rule.is_used_up());
        let is_active =
            !state.rules.is_empty() || state.throttling.is_some() || !state.partitions.is_empty();
        self.0.is_active.store(is_active, Ordering::SeqCst);
        result
    }

    pub(super) fn is_active(&self) -> bool {
        self.0.is_active.load(Ordering::Relaxed)
    }

    /// The fault for a request, with the id of its rule; without one if it is the throttle's.
    pub(super) fn fault(
        &self,
        request: &RequestInfo,
        place: Option<&Place>,
        flavor: Flavor,
        now: Timestamp,
    ) -> Option<(Option<u64>, Fault, Cleared)> {
        self.change(|state| {
            let mut rules = state.rules.iter_mut();
            let found =
                rules.find_map(|(id, rule)| Some((Some(*id), rule.fault(request, flavor)?)));
            let (rule, fault) = match found {
                Some(found) => found,
                None => (None, state.refusal(request, place, flavor, now)?),
            };
            Some((rule, fault, Cleared(state.in_force.subscribe())))
        })
    }

    /// Counts the entities of a response against the throttle, and those of its range.
    pub(super) fn returned(
        &self,
        request: &RequestInfo,
        place: Option<&Place>,
        entities: usize,
        now: Timestamp,
    ) {
        let state = &mut *self.lock();
        let mut range = None;
        if let Some(place) = place
            && let Some(map) = state.partitions.get_mut(place)
        {
            let served = map.range(&place.partition_key);
            if request.query.is_some() {
                served.entities += count(entities);
            }
            range = Some((place, &*served.start));
        }
        if let Some(throttling) = &mut state.throttling {
            throttling.returned(request, range, entities, now);
        }
    }

    /// The partition key before which the page of a query ends, because its range does.
    pub(super) fn page_end(
        &self,
        request: &RequestInfo,
        place: Option<&Place>,
    ) -> Option<Arc<str>> {
        let place = place.filter(|_| request.query.is_some())?;
        let state = &mut *self.lock();
        let map = state.partitions.get_mut(place)?;
        map.end_of(&place.partition_key).map(Into::into)
    }

    /// Changes the partition map of a table.
    pub(super) fn change_partitions<T>(
        &self,
        table: &(String, String),
        change: impl FnOnce(&mut PartitionMap) -> T,
    ) -> T {
        self.change(|state| change(state.partitions.map(table)))
    }

    /// Lets the partition map of a deleted table begin again.
    pub(super) fn table_deleted(&self, request: &RequestInfo) {
        if let Some(table) = &request.table {
            let table = table_of(&request.account, table);
            self.change(|state| state.partitions.table_deleted(&table));
        }
    }

    /// Removes the partition maps of all tables.
    pub(crate) fn clear_partitions(&self) {
        self.change(|state| state.partitions.clear());
    }

    fn lock(&self) -> MutexGuard<'_, FaultState> {
        // Only the iterator of an `inject_each` can panic while it is locked, and the rules are
        // whole then.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultState {
    /// The refusal by the server of the range, or by the throttle.
    fn refusal(
        &mut self,
        request: &RequestInfo,
        place: Option<&Place>,
        flavor: Flavor,
        now: Timestamp,
    ) -> Option<Fault> {
        let throttling = self.throttling.as_mut();
        let limits_ranges = throttling
            .as_ref()
            .is_some_and(|it| it.limits_ranges(flavor));
        let mut map = place.and_then(|place| {
            let map = if limits_ranges {
                self.partitions.map(&place.table)
            } else {
                self.partitions.get_mut(place)?
            };
            Some((place, map))
        });
        if let Some((place, map)) = &mut map {
            let range = map.range(&place.partition_key);
            range.requests += 1;
            range.entities += count(request.entities.len());
            match range.availability(now) {
                Availability::Served => {}
                Availability::Busy => return Some(Fault::error(ErrorCode::ServerBusy)),
                Availability::Gone => return Some(Fault::reset()),
            }
        }
        let range = map
            .as_mut()
            .map(|(place, map)| (*place, &*map.range(&place.partition_key).start));
        let refused = throttling?.admit(request, range, now).err();
        if let Some((place, map)) = map.filter(|_| limits_ranges) {
            let is_exceeded = refused.is_some_and(|refused| refused.is_by_range);
            map.loaded(&place.partition_key, now, is_exceeded);
        }
        Some(refused?.fault(flavor))
    }
}

fn count(entities: usize) -> u64 {
    u64::try_from(entities).unwrap_or(u64::MAX)
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults")
            .field("rules", &self.lock().rules.len())
            .finish_non_exhaustive()
    }
}

/// Resolves when the rules are cleared that were in force when a fault was chosen.
#[derive(Clone, Debug)]
pub(crate) struct Cleared(watch::Receiver<()>);

impl Cleared {
    pub(crate) async fn wait(&mut self) {
        // Nothing is sent: the sender is dropped.
        let _ = self.0.changed().await;
    }
}

/// A rule that is in force; returned by [`FaultRule::inject`](super::FaultRule::inject). Dropping
/// it does not remove the rule.
#[derive(Clone, Debug)]
pub struct InjectedFault {
    faults: Faults,
    id: u64,
    hits: watch::Receiver<u64>,
}

impl InjectedFault {
    /// The id of the rule, as in [`RecordedRequest::rule`](super::RecordedRequest::rule). A server
    /// gives each of its rules another one.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The number of requests that the fault has hit.
    pub fn hits(&self) -> u64 {
        *self.hits.borrow()
    }

    /// Waits until the fault has hit so many requests: a test can act while a request is delayed.
    /// Returns, too, when the rule is removed or can hit no more requests.
    pub async fn wait_for_hits(&mut self, count: u64) {
        // An error means that the rule is gone.
        let _ = self.hits.wait_for(|hits| *hits >= count).await;
    }

    /// Removes the rule. Requests that it has hit are not affected: a delay continues.
    pub fn remove(&self) {
        let _ = self.faults.remove(self.id);
    }
}
