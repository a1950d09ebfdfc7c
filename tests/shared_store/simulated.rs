//! Random histories of a store that is simulated, correct or with a fault. The checker accepts all
//! of the correct ones, finds the faults, and needs a time that grows with the length of the
//! history only.

use std::time::{Duration, Instant};

use fastrand::Rng;
use harness::seeds;

use crate::history::{History, Op};
use crate::linearizable::{Effort, check};
use crate::register::{Action, Condition, Effect, Outcome, Refusal, Seen, Token, Version};

/// The error that the store makes now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// A read finds what was there before the last write.
    StaleRead,
    /// A condition is not checked.
    LostUpdate,
    /// A write is acknowledged and not applied.
    LostWrite,
    /// A write is applied once more, later.
    AppliedTwice,
}

/// A request that a client has sent.
struct Call {
    op: Op,
    /// True if it was applied.
    is_applied: bool,
    /// Its client does not wait for it.
    is_lost: bool,
}

struct Simulation {
    rng: Rng,
    bug: Bug,
    /// How many of the possible faults there were.
    faults: usize,
    entity: Option<Seen>,
    previous: Option<Seen>,
    /// Versions that clients know.
    known: Vec<Version>,
    now: u64,
    next_token: Token,
    version: Version,
    calls: Vec<Call>,
    history: History,
}

impl Simulation {
    /// A history of one entity with that many clients; one of `lost_in` writes gets no response.
    fn run(seed: u64, bug: Bug, operations: usize, clients: usize, lost_in: u32) -> Self {
        let mut it = Self {
            rng: Rng::with_seed(seed),
            bug,
            faults: 0,
            entity: None,
            previous: None,
            known: vec![1],
            now: 0,
            next_token: 1,
            version: 1,
            calls: Vec::new(),
            history: History::default(),
        };
        let mut called = 0;
        while called < operations || !it.calls.is_empty() {
            it.now += 1;
            let waiting = it.calls.iter().filter(|call| !call.is_lost).count();
            if called < operations && waiting < clients && it.rng.bool() {
                it.call(lost_in);
                called += 1;
            } else if !it.calls.is_empty() {
                let index = it.rng.usize(..it.calls.len());
                it.proceed(index, called == operations);
            }
        }
        it
    }

    fn call(&mut self, lost_in: u32) {
        let token = self.next_token;
        self.next_token += 1;
        let recent = self.known.len() - 1 - self.rng.usize(..self.known.len().min(3));
        let version = Condition::Version(self.known[recent]);
        let action = match self.rng.u8(..12) {
            0..=3 => Action::Read,
            4 => Action::Write(Effect::Replace, Condition::Absent),
            5 => Action::Write(Effect::Replace, Condition::Any),
            6 => Action::Write(Effect::Merge, Condition::Any),
            7 => Action::Write(Effect::Merge, version),
            8 => Action::Write(Effect::Delete, Condition::Present),
            9 => Action::Write(Effect::Delete, version),
            _ => Action::Write(Effect::Replace, version),
        };
        let is_lost = action != Action::Read && self.rng.u32(..lost_in) == 0;
        self.calls.push(Call {
            op: Op::new(token, action, Outcome::Unknown, (self.now, self.now)),
            is_applied: false,
            is_lost,
        });
    }

    fn proceed(&mut self, index: usize, is_end: bool) {
        let call = &self.calls[index];
        if call.is_lost {
            let mut op = call.op;
            match self.rng.u8(..6) {
                0 => self.apply(&mut op),
                // It never arrives.
                1 => {}
                _ if !is_end => return,
                _ => {}
            }
            let call = self.calls.swap_remove(index);
            self.note(call.op);
        } else if call.is_applied {
            let mut call = self.calls.swap_remove(index);
            call.op.returned = self.now;
            self.note(call.op);
        } else {
            let mut op = call.op;
            self.apply(&mut op);
            self.calls[index].op = op;
            self.calls[index].is_applied = true;
        }
    }

    fn note(&mut self, op: Op) {
        let versions = match op.outcome {
            Outcome::Done(version) => version,
            Outcome::Saw(seen) => seen.map(|seen| seen.version),
            _ => None,
        };
        self.known.extend(versions);
        self.history.note(("p".to_owned(), "r".to_owned()), op);
    }

    fn goes_wrong(&mut self, bug: Bug) -> bool {
        let does = self.bug == bug && self.rng.u8(..12) == 0;
        self.faults += usize::from(does);
        does
    }

    fn apply(&mut self, op: &mut Op) {
        op.outcome = match op.action {
            Action::Read if self.previous != self.entity && self.goes_wrong(Bug::StaleRead) => {
                Outcome::Saw(self.previous)
            }
            Action::Read => Outcome::Saw(self.entity),
            Action::Write(effect, condition) => self.write(effect, condition, op.token),
        };
    }

    fn write(&mut self, effect: Effect, condition: Condition, token: Token) -> Outcome {
        let refusal = match (condition, self.entity) {
            (Condition::Absent, Some(_)) => Some(Refusal::Exists),
            (Condition::Present | Condition::Version(_), None) => Some(Refusal::Missing),
            (Condition::Version(version), Some(seen)) if version != seen.version => {
                Some(Refusal::Changed).filter(|_| !self.goes_wrong(Bug::LostUpdate))
            }
            _ => None,
        };
        if let Some(refusal) = refusal {
            return Outcome::Refused(refusal);
        }
        let version = self.version + 1 + i64::from(self.rng.u8(..3));
        self.version = version;
        let done = Outcome::Done((effect != Effect::Delete).then_some(version));
        if effect != Effect::Delete && self.goes_wrong(Bug::LostWrite) {
            return done;
        }
        let old = self.entity;
        self.previous = old;
        self.entity = match effect {
            Effect::Delete => None,
            Effect::Replace => Some(Seen::whole(token, version)),
            Effect::Merge => Some(Seen {
                token,
                a: old.and_then(|old| old.a),
                b: Some(token),
                version,
            }),
        };
        if effect == Effect::Replace && self.goes_wrong(Bug::AppliedTwice) {
            self.version += 1;
            self.entity = self.entity.map(|seen| Seen {
                version: self.version,
                ..seen
            });
        }
        done
    }
}

#[test]
fn correct_histories_are_accepted() {
    let mut most = Effort::default();
    for seed in seeds("TABLESDK_LINEARIZABLE_SEED", 300) {
        let clients = 1 + usize::try_from(seed % 12).unwrap();
        let lost_in = [3, 10, 100][usize::try_from(seed / 12 % 3).unwrap()];
        let it = Simulation::run(seed, Bug::None, 150, clients, lost_in);
        let effort = check(&it.history);
        let effort = effort.unwrap_or_else(|it| panic!("TABLESDK_LINEARIZABLE_SEED={seed}: {it}"));
        most.states = most.states.max(effort.states);
        most.steps = most.steps.max(effort.steps);
    }
    println!("at most {most:?}");
}

#[test]
fn faults_of_a_store_are_found() {
    for bug in [
        Bug::StaleRead,
        Bug::LostUpdate,
        Bug::LostWrite,
        Bug::AppliedTwice,
    ] {
        let (mut faulty, mut found) = (0, 0);
        for seed in seeds("TABLESDK_LINEARIZABLE_SEED", 60) {
            let it = Simulation::run(seed, bug, 150, 4, 30);
            faulty += usize::from(it.faults > 0);
            found += usize::from(it.faults > 0 && check(&it.history).is_err());
        }
        println!("{bug:?}: found in {found} of {faulty} histories");
        // Other operations hide some faults: a lost write need not be missed if others overwrite
        // the entity at the same time.
        assert!(found * 2 >= faulty, "{bug:?}: {found} of {faulty}");
    }
}

#[test]
fn long_histories_take_little_time() {
    let began = Instant::now();
    for seed in seeds("TABLESDK_LINEARIZABLE_SEED", 1) {
        for (clients, lost_in) in [(4, 50), (16, 100), (64, 200)] {
            let it = Simulation::run(seed, Bug::None, 4_000, clients, lost_in);
            let alone = Instant::now();
            let effort = check(&it.history).unwrap_or_else(|it| panic!("{it}"));
            println!("{clients} clients: {effort:?} in {:?}", alone.elapsed());
        }
    }
    assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
}

/// Much more than it takes on a slow machine.
const LONGEST: Duration = Duration::from_secs(60);
