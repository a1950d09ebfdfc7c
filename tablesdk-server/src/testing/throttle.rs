//! [`Throttle`]: the rates at which the service refuses requests.
//!
//! See <https://learn.microsoft.com/azure/storage/tables/scalability-targets>.

use std::collections::HashMap;
use std::time::Duration;

use tablesdk_protocol::{ErrorCode, Timestamp};

use super::Fault;
use super::place::Place;
use super::request::RequestInfo;
use crate::flavor::Flavor;

/// The number of entities per second that the server reads and writes before it refuses requests.
///
/// An entity that is written, read or returned counts as one, and so does a request without
/// entities. Unused rate is kept for one second. A query is counted after it has returned its page.
///
/// ```
/// use tablesdk_server::TableServer;
/// use tablesdk_server::testing::Throttle;
///
/// let server = TableServer::in_process();
/// server.faults().throttle(Throttle::documented());
/// server.faults().throttle(Throttle::none().per_partition(10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a throttle does nothing until it is passed to `Faults::throttle`"]
#[expect(
    clippy::struct_field_names,
    reason = "the names of the methods that set them"
)]
pub struct Throttle {
    pub(super) per_partition: Option<u32>,
    pub(super) per_account: Option<u32>,
    pub(super) per_range: Option<u32>,
}

impl Throttle {
    /// No limit.
    pub const fn none() -> Self {
        Self {
            per_partition: None,
            per_account: None,
            per_range: None,
        }
    }

    /// The documented targets of the service: 2,000 entities per second and partition, and 20,000
    /// per second and account.
    ///
    /// A new table reaches the target of the account only when the service has divided it: it has
    /// one [range](super::Partitions), and the rate of one server, 5,000 entities per second. That
    /// rate is a guess, because it is not documented.
    pub const fn documented() -> Self {
        // SERVICE: there is a target of a partition and of an account, and none of a server.
        let targets = Self::none().per_partition(2_000).per_account(20_000);
        targets.per_range(5_000)
    }

    /// Limits the entities of one partition of a table.
    pub const fn per_partition(mut self, entities_per_second: u32) -> Self {
        self.per_partition = Some(entities_per_second);
        self
    }

    /// Limits the entities of an account.
    pub const fn per_account(mut self, entities_per_second: u32) -> Self {
        self.per_account = Some(entities_per_second);
        self
    }

    /// Limits the entities of one [range](super::Partitions) of a table, as the one server does
    /// that serves the range. It is ignored with the flavor [`CosmosDb`](Flavor::CosmosDb).
    ///
    /// Requests that exceed the rate for a minute of the server's clock split the range in the
    /// middle of the load, and the upper half moves to another server. A load of one partition, and
    /// of keys that grow at the end, is not divided by that.
    pub const fn per_range(mut self, entities_per_second: u32) -> Self {
        self.per_range = Some(entities_per_second);
        self
    }
}

/// A request exceeds a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Throttled {
    /// When the rate admits a request again.
    pub(super) after: Duration,
    /// True if the rate is that of a range.
    pub(super) is_by_range: bool,
}

impl Throttled {
    /// A refusal until a rate of no range admits requests again.
    pub(super) const fn wait(after: Duration) -> Self {
        Self {
            after,
            is_by_range: false,
        }
    }

    /// The refusal of the request.
    pub(super) fn fault(self, flavor: Flavor) -> Fault {
        match flavor.throttling_error() {
            // SERVICE: only the error of Cosmos DB says when to retry.
            code @ ErrorCode::TooManyRequests => Fault::error(code).retry_after(self.after),
            code => Fault::error(code),
        }
    }
}

/// The remaining part of each rate.
#[derive(Debug)]
pub(super) struct Throttling {
    throttle: Throttle,
    buckets: HashMap<Scope, Bucket>,
    /// The number of buckets at which those with their full rate are forgotten.
    clean_up_at: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Scope {
    Account(String),
    /// Account, table in lower case, partition key.
    Partition(String, String, String),
    /// Account and table, and the first key of the range.
    Range((String, String), String),
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Negative after a response with more entities than were left.
    left: f64,
    at: Timestamp,
}

impl Bucket {
    /// The remaining part of its rate at a time.
    fn left_at(self, now: Timestamp, rate: f64) -> f64 {
        if now <= self.at {
            return self.left;
        }
        let seconds = now.abs_diff(self.at).as_secs_f64();
        (self.left + seconds * rate).min(rate)
    }
}

impl Throttling {
    pub(super) const fn throttle(&self) -> Throttle {
        self.throttle
    }

    pub(super) fn new(throttle: Throttle) -> Self {
        Self {
            throttle,
            buckets: HashMap::new(),
            clean_up_at: BUCKETS_MIN,
        }
    }

    /// Returns true if each range has a rate of its own.
    pub(super) const fn limits_ranges(&self, flavor: Flavor) -> bool {
        self.throttle.per_range.is_some() && !flavor.is_cosmos_db()
    }

    /// Counts a request to a range, unless the rate of one of its scopes is used up.
    pub(super) fn admit(
        &mut self,
        request: &RequestInfo,
        range: Option<(&Place, &str)>,
        now: Timestamp,
    ) -> Result<(), Throttled> {
        let cost = request.entities.len().max(1);
        let cost = u32::try_from(cost).map_or(f64::MAX, f64::from);
        let scopes = self.scopes(request, range);
        if self.buckets.len() >= self.clean_up_at {
            self.clean_up(now);
        }
        for (scope, rate) in &scopes {
            let left = self.bucket(scope, *rate, now).left;
            if left < 1.0 {
                // A rate of zero never admits it.
                let seconds = ((1.0 - left) / rate).min(RETRY_SECONDS_MAX);
                let after = Duration::from_secs_f64(seconds);
                let is_by_range = matches!(scope, Scope::Range(..));
                return Err(Throttled { after, is_by_range });
            }
        }
        for (scope, rate) in &scopes {
            self.bucket(scope, *rate, now).left -= cost;
        }
        Ok(())
    }

    /// Counts the entities of a response beyond the first, which the request counted.
    pub(super) fn returned(
        &mut self,
        request: &RequestInfo,
        range: Option<(&Place, &str)>,
        entities: usize,
        now: Timestamp,
    ) {
        if request.query.is_none() {
            return;
        }
        let more = u32::try_from(entities.saturating_sub(1)).map_or(f64::MAX, f64::from);
        for (scope, rate) in self.scopes(request, range) {
            self.bucket(&scope, rate, now).left -= more;
        }
    }

    fn scopes(&self, request: &RequestInfo, range: Option<(&Place, &str)>) -> Vec<(Scope, f64)> {
        let account = request.account.clone();
        let partition = request.table.as_ref().zip(request.partition_key.as_ref());
        let partition = partition.zip(self.throttle.per_partition);
        let partition = partition.map(|((table, key), rate)| {
            let table = table.to_ascii_lowercase();
            let scope = Scope::Partition(account.clone(), table, key.clone());
            (scope, f64::from(rate))
        });
        let whole = self.throttle.per_account;
        let whole = whole.map(|rate| (Scope::Account(account.clone()), f64::from(rate)));
        let range = range.zip(self.throttle.per_range);
        let range = range.map(|((place, start), rate)| {
            let scope = Scope::Range(place.table.clone(), start.to_owned());
            (scope, f64::from(rate))
        });
        partition.into_iter().chain(range).chain(whole).collect()
    }

    /// The remaining part of a rate now.
    fn bucket(&mut self, scope: &Scope, rate: f64, now: Timestamp) -> &mut Bucket {
        let new = Bucket {
            left: rate,
            at: now,
        };
        let bucket = self.buckets.entry(scope.clone()).or_insert(new);
        bucket.left = bucket.left_at(now, rate);
        bucket.at = now;
        bucket
    }

    /// Forgets the buckets that are like new ones.
    fn clean_up(&mut self, now: Timestamp) {
        let throttle = self.throttle;
        self.buckets.retain(|scope, bucket| {
            let rate = match scope {
                Scope::Account(_) => throttle.per_account,
                Scope::Partition(..) => throttle.per_partition,
                Scope::Range(..) => throttle.per_range,
            };
            rate.is_some_and(|rate| bucket.left_at(now, rate.into()) < rate.into())
        });
        // Not at each request while many partitions are in use.
        self.clean_up_at = (2 * self.buckets.len()).max(BUCKETS_MIN);
    }
}

/// The most that a client is asked to wait.
const RETRY_SECONDS_MAX: f64 = 3600.0;

/// How many buckets are kept at least before those with their full rate are forgotten.
const BUCKETS_MIN: usize = 10_000;

#[cfg(test)]
mod tests {
    use tablesdk_protocol::EntityKey;

    use super::super::Op;
    use super::super::request::RequestedEntity;
    use super::*;

    fn insert(partition_key: &str, entities: usize) -> RequestInfo {
        let key = EntityKey::new(partition_key, "1").unwrap();
        let entity = RequestedEntity {
            op: Op::InsertEntity,
            key,
        };
        RequestInfo {
            op: Some(Op::Batch),
            account: "acct".to_owned(),
            table: Some("People".to_owned()),
            entities: vec![entity; entities],
            partition_key: Some(partition_key.to_owned()),
            query: None,
        }
    }

    fn at(milliseconds: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH.saturating_add(Duration::from_millis(milliseconds))
    }

    #[test]
    fn a_partition_has_a_rate_of_its_own() {
        let mut throttling = Throttling::new(Throttle::none().per_partition(10));
        for _ in 0..10 {
            assert_eq!(throttling.admit(&insert("a", 1), None, at(0)), Ok(()));
        }
        assert!(throttling.admit(&insert("a", 1), None, at(0)).is_err());
        assert_eq!(throttling.admit(&insert("b", 1), None, at(0)), Ok(()));
        assert!(throttling.admit(&insert("a", 1), None, at(99)).is_err());
        assert_eq!(throttling.admit(&insert("a", 1), None, at(100)), Ok(()));
        assert!(throttling.admit(&insert("a", 1), None, at(100)).is_err());
        // Unused rate is kept for one second.
        for _ in 0..10 {
            assert_eq!(throttling.admit(&insert("a", 1), None, at(60_000)), Ok(()));
        }
        assert!(throttling.admit(&insert("a", 1), None, at(60_000)).is_err());
    }

    #[test]
    fn a_refusal_says_when_to_retry() {
        let after = |rate| {
            let mut throttling = Throttling::new(Throttle::none().per_partition(rate));
            let _ = throttling.admit(&insert("a", 1), None, at(0));
            let refused = throttling.admit(&insert("a", 1), None, at(0));
            refused.unwrap_err().after
        };
        assert_eq!(after(1), Duration::from_secs(1));
        assert_eq!(after(0), Duration::from_secs(3600));
    }

    #[test]
    fn an_account_has_one_rate_for_all_partitions() {
        let throttle = Throttle::none().per_partition(10).per_account(15);
        let mut throttling = Throttling::new(throttle);
        assert_eq!(throttling.admit(&insert("a", 10), None, at(0)), Ok(()));
        assert_eq!(throttling.admit(&insert("b", 5), None, at(0)), Ok(()));
        assert!(throttling.admit(&insert("c", 1), None, at(0)).is_err());
    }

    #[test]
    fn a_large_batch_uses_rate_of_the_future() {
        let mut throttling = Throttling::new(Throttle::none().per_partition(10));
        assert_eq!(throttling.admit(&insert("a", 100), None, at(0)), Ok(()));
        assert!(throttling.admit(&insert("a", 1), None, at(9_000)).is_err());
        assert_eq!(throttling.admit(&insert("a", 1), None, at(9_100)), Ok(()));
    }

    #[test]
    fn documented_targets_are_those_of_the_guide() {
        let mut throttling = Throttling::new(Throttle::documented());
        for number in 0..200 {
            let partition = (number % 10).to_string();
            assert_eq!(
                throttling.admit(&insert(&partition, 100), None, at(0)),
                Ok(())
            );
        }
        assert!(throttling.admit(&insert("0", 1), None, at(0)).is_err());
        assert!(throttling.admit(&insert("new", 1), None, at(0)).is_err());
    }

    #[test]
    fn an_account_keeps_its_rate_beyond_many_partitions() {
        let mut throttling = Throttling::new(Throttle::documented());
        let mut admit =
            |number: u32| throttling.admit(&insert(&number.to_string(), 1), None, at(0));
        let admitted = (0..25_000).filter(|number| admit(*number).is_ok());
        assert_eq!(admitted.count(), 20_000);
    }

    #[test]
    fn partitions_with_their_full_rate_are_forgotten() {
        let mut throttling = Throttling::new(Throttle::none().per_partition(1));
        for number in 0..5 * BUCKETS_MIN as u64 {
            let partition = number.to_string();
            assert_eq!(
                throttling.admit(&insert(&partition, 1), None, at(number)),
                Ok(())
            );
        }
        let remembered = throttling.buckets.len();
        assert!(remembered <= 2 * BUCKETS_MIN, "{remembered}");
    }
}
