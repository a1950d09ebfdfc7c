//! [`FaultRule`]: which requests a fault is injected into.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tablesdk_protocol::ErrorCode;
use tokio::sync::watch;

use super::draw::{fraction, number};
use super::faults::{Faults, InjectedFault};
use super::json::RuleInForce;
use super::request::RequestInfo;
use super::throttle::Throttled;
use super::{Fault, Op};
use crate::flavor::Flavor;

/// Which requests a fault is injected into; returned by [`Faults::on`] and its siblings.
///
/// A request must fulfill all conditions. Of these requests, [`nth`](Self::nth),
/// [`skip`](Self::skip), [`times`](Self::times) and [`probability`](Self::probability) select some.
#[derive(Clone, Debug)]
#[must_use = "a rule does nothing until `inject`, `inject_each` or `chaos`"]
pub struct FaultRule {
    faults: Faults,
    condition: Condition,
    selection: Selection,
}

#[derive(Clone, Debug, Default)]
struct Condition {
    /// `None` for every operation.
    ops: Option<Vec<Op>>,
    account: Option<String>,
    table: Option<String>,
    partition_key: Option<String>,
    row_key: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Selection {
    skip: u64,
    times: u64,
    probability: f64,
    seed: u64,
}

impl FaultRule {
    pub(super) fn new(faults: &Faults, ops: Option<Vec<Op>>) -> Self {
        Self {
            faults: faults.clone(),
            condition: Condition {
                ops,
                ..Condition::default()
            },
            selection: Selection {
                skip: 0,
                times: u64::MAX,
                probability: 1.0,
                seed: 0,
            },
        }
    }

    /// Only requests to this account.
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.condition.account = Some(account.into());
        self
    }

    /// Only requests to this table and its entities. As in the service, the case of letters does
    /// not matter.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.condition.table = Some(table.into());
        self
    }

    /// Only requests for entities of this partition, and queries that are restricted to it.
    pub fn partition_key(mut self, partition_key: impl Into<String>) -> Self {
        self.condition.partition_key = Some(partition_key.into());
        self
    }

    /// Only requests that name an entity with this row key. A batch names the entities of all its
    /// changes, a query none.
    pub fn row_key(mut self, row_key: impl Into<String>) -> Self {
        self.condition.row_key = Some(row_key.into());
        self
    }

    /// Only the n-th request that fulfills the conditions; the first is 1. The same as
    /// `.skip(n - 1).times(1)`.
    ///
    /// # Panics
    ///
    /// If `n` is zero.
    #[track_caller]
    pub fn nth(self, n: u64) -> Self {
        assert!(n > 0, "the first request is number 1");
        self.skip(n - 1).times(1)
    }

    /// Not the first so many requests that fulfill the conditions. Default: zero.
    pub const fn skip(mut self, count: u64) -> Self {
        self.selection.skip = count;
        self
    }

    /// Only so many requests, after which the rule is removed. Default: no limit.
    pub const fn times(mut self, count: u64) -> Self {
        self.selection.times = count;
        self
    }

    /// Each request with this probability, from 0 to 1. Default: 1.
    ///
    /// The choice is reproducible: it depends on the [`seed`](Self::seed), on what the request asks
    /// for, and on how often that was asked for before. It does not depend on the order of
    /// simultaneous requests for different entities. A program whose tables or keys have random
    /// names asks for other things in each run.
    ///
    /// # Panics
    ///
    /// If it is not between 0 and 1.
    #[track_caller]
    pub fn probability(mut self, probability: f64) -> Self {
        assert!(
            (0.0..=1.0).contains(&probability),
            "a probability is between 0 and 1, and not {probability}"
        );
        self.selection.probability = probability;
        self
    }

    /// The seed of [`probability`](Self::probability) and [`chaos`](Self::chaos). Default: zero.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.selection.seed = seed;
        self
    }

    /// Injects this fault from now on. Of several rules that select a request, the first counts;
    /// later ones do not see it.
    pub fn inject(self, fault: Fault) -> InjectedFault {
        self.add(Choice::One(fault))
    }

    /// Injects these faults, one after the other, each into one of the selected requests. The rule
    /// is removed after the last one, or, if the iterator's size hint does not show its end, by the
    /// next request. The iterator may be endless, and must not call the server: it is advanced
    /// while the rules are locked.
    ///
    /// ```
    /// # use tablesdk_server::testing::{Fault, Op};
    /// # use tablesdk_server::{ErrorCode, TableServer};
    /// # let server = TableServer::in_process();
    /// let busy = Fault::error(ErrorCode::ServerBusy);
    /// server.faults().on(Op::InsertEntity).inject_each([Fault::lost_response(), busy]);
    /// ```
    pub fn inject_each<I>(self, faults: I) -> InjectedFault
    where
        I: IntoIterator<Item = Fault, IntoIter: Send + 'static>,
    {
        self.add(Choice::Each(Box::new(faults.into_iter())))
    }

    /// Injects a fault that is drawn at random into each selected request, so a
    /// [`probability`](Self::probability) should leave most requests alone: errors of the service
    /// with and without an effect, resets, lost responses, short delays, and for reads truncated
    /// responses. Nothing that a client cannot survive by retries and conditions: no request is
    /// applied late or twice, and no byte is changed.
    pub fn chaos(self) -> InjectedFault {
        self.add(Choice::Any)
    }

    fn add(self, choice: Choice) -> InjectedFault {
        let rule = Rule {
            condition: self.condition,
            selection: self.selection,
            choice,
            counts: HashMap::new(),
            matched: 0,
            hits: watch::Sender::new(0),
        };
        self.faults.add(rule)
    }
}

enum Choice {
    One(Fault),
    Each(Box<dyn Iterator<Item = Fault> + Send>),
    Any,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(fault) => fault.fmt(f),
            Self::Each(_) => f.write_str("the faults of a list, one after the other"),
            Self::Any => f.write_str("a random fault"),
        }
    }
}

/// A rule with what it has seen.
pub(super) struct Rule {
    condition: Condition,
    selection: Selection,
    choice: Choice,
    /// How often each thing was asked for, by its hash. Kept only for what is drawn.
    counts: HashMap<u64, u64>,
    matched: u64,
    /// The number of requests into which it has injected a fault.
    pub(super) hits: watch::Sender<u64>,
}

impl Rule {
    /// Returns true if the rule will select no more requests.
    pub(super) fn is_used_up(&self) -> bool {
        let has_no_fault = match &self.choice {
            Choice::Each(faults) => faults.size_hint().1 == Some(0),
            Choice::One(_) | Choice::Any => false,
        };
        has_no_fault || *self.hits.borrow() >= self.selection.times
    }

    /// The rule as the kit shows it, under this id.
    pub(super) fn in_force(&self, id: u64) -> RuleInForce {
        let condition = self.condition.clone();
        let Selection {
            skip,
            times,
            probability,
            seed,
        } = self.selection;
        let ops = condition.ops.map(|ops| ops.into_iter().map(Op::as_str));
        RuleInForce {
            id,
            hits: *self.hits.borrow(),
            operations: ops.map(Iterator::collect),
            account: condition.account,
            table: condition.table,
            partition_key: condition.partition_key,
            row_key: condition.row_key,
            skip,
            times: (times < u64::MAX).then_some(times),
            probability,
            seed,
            fault: self.choice.to_string(),
        }
    }

    /// The fault for a request, if the rule selects it.
    pub(super) fn fault(&mut self, request: &RequestInfo, flavor: Flavor) -> Option<Fault> {
        if !self.condition.holds(request) {
            return None;
        }
        self.matched += 1;
        let Selection {
            skip,
            times: _,
            probability,
            seed,
        } = self.selection;
        if self.matched <= skip {
            return None;
        }
        let draws = probability < 1.0 || matches!(self.choice, Choice::Any);
        let number = if draws { self.count(request) } else { 0 };
        if probability < 1.0 && fraction(seed, (request, number, "selected")) >= probability {
            return None;
        }
        let fault = match &mut self.choice {
            Choice::One(fault) => fault.clone(),
            Choice::Each(faults) => {
                let Some(fault) = faults.next() else {
                    self.selection.times = 0;
                    return None;
                };
                fault
            }
            Choice::Any => any_fault(request, flavor, |what| {
                fraction(seed, (request, number, what))
            }),
        };
        self.hits.send_modify(|hits| *hits += 1);
        Some(fault)
    }

    /// How often this was asked for before.
    fn count(&mut self, request: &RequestInfo) -> u64 {
        if self.counts.len() >= COUNTS_MAX {
            // A long run of the program. The choices remain random, and a second run makes the
            // same.
            self.counts.clear();
        }
        let count = self.counts.entry(number(0, request)).or_default();
        *count += 1;
        *count
    }
}

impl Condition {
    fn holds(&self, request: &RequestInfo) -> bool {
        let ops = self.ops.as_deref();
        let is_one = |known: &Option<String>, wanted: &String| known.as_ref() == Some(wanted);
        let has_row = |row_key: &String| {
            let mut entities = request.entities.iter();
            entities.any(|entity| entity.key.row_key().as_str() == row_key)
        };
        ops.is_none_or(|ops| request.op.is_some_and(|op| ops.contains(&op)))
            && self
                .account
                .as_ref()
                .is_none_or(|it| *it == request.account)
            && self.table.as_ref().is_none_or(|table| {
                let known = request.table.as_ref();
                known.is_some_and(|known| known.eq_ignore_ascii_case(table))
            })
            && self
                .partition_key
                .as_ref()
                .is_none_or(|key| is_one(&request.partition_key, key))
            && self.row_key.as_ref().is_none_or(has_row)
    }
}

/// One of the faults of chaos.
fn any_fault(request: &RequestInfo, flavor: Flavor, draw: impl Fn(&'static str) -> f64) -> Fault {
    let delay = Duration::from_millis(100).mul_f64(draw("delay"));
    let is_write = request.op.is_none_or(Op::is_write);
    let mut faults = vec![
        Throttled::wait(delay).fault(flavor),
        Fault::error(ErrorCode::InternalError),
        Fault::reset(),
        Fault::lost_response(),
        Fault::delay(delay),
        Fault::delayed_response(delay),
    ];
    if is_write {
        faults.push(Fault::error(ErrorCode::OperationTimedOut).applied());
    } else {
        faults.push(Fault::truncated_response(100));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a fraction of a small number"
    )]
    let index = (draw("fault") * faults.len() as f64) as usize;
    faults.swap_remove(index)
}

/// How many different requests a rule remembers.
const COUNTS_MAX: usize = 100_000;
