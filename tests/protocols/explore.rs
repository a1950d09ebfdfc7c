//! Tries every interleaving of the clients of a protocol on a few rows with ETags, and prints the
//! shortest trace to a state that breaks a rule of the protocol. It knows no protocol.
//!
//! A step of a client is one read, or one request that the service applies in that step: a client
//! that waits before it sends is the same as a request that takes long. A limited number of
//! requests meet a fault: the request is applied later, or twice, or not at all, its response is
//! lost or that to its second copy, or its client ends.
//!
//! Time has one step: a row becomes older than H. Requests that rest on an observation made before
//! that row was written are then no longer in flight, and clients notice that such an observation
//! is too old.

use std::collections::{HashSet, VecDeque};
use std::fmt::{Debug, Write};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

/// The row that a key identifies.
pub trait Key: Copy + Ord + Hash + Debug {
    /// Returns true if a client of the protocol looks at the age of this row.
    fn ages(self) -> bool;
}

/// A row as a client reads it.
#[derive(Clone, Copy)]
pub struct Found<R> {
    pub etag: u8,
    /// True if it was written more than H ago.
    pub old: bool,
    pub row: R,
}

/// The ETag of an absent row is that of the last one, so that no ETag is used twice.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Slot<K, R> {
    key: K,
    etag: u8,
    /// The number of the write that was the last of this row; 0 if it was more than H ago.
    born: u8,
    row: Option<R>,
}

/// All rows, in the order of their keys.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Rows<K, R> {
    slots: Vec<Slot<K, R>>,
    /// The greatest number in `born`.
    births: u8,
}

/// One change of a request. The changes of a request are applied together or not at all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Change<K, R> {
    Insert(K, R),
    Upsert(K, R),
    Replace(K, R, u8),
    /// An empty merge, which changes only the ETag and the timestamp. `None` is `If-Match: *`.
    Touch(K, Option<u8>),
    Delete(K, Option<u8>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    Exists,
    Missing,
    Changed,
}

/// The answer that a client gets to its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Applied; with the new ETag of the row of the first change.
    Done(u8),
    /// Not applied, because of the change at this index.
    Refused(usize, Refusal),
    /// The outcome is ambiguous.
    Unknown,
}

impl<K: Key, R: Copy> Rows<K, R> {
    pub fn get(&self, key: K) -> Option<Found<R>> {
        let slot = self.slots.iter().find(|slot| slot.key == key)?;
        slot.found()
    }

    pub fn iter(&self) -> impl Iterator<Item = (K, Found<R>)> {
        self.slots
            .iter()
            .filter_map(|slot| Some((slot.key, slot.found()?)))
    }

    /// The moment of an observation made now, for [`Client::base`].
    pub fn now(&self) -> u8 {
        self.births + 1
    }

    pub fn write(&mut self, key: K, row: Option<R>) -> u8 {
        let index = match self.slots.binary_search_by_key(&key, |slot| slot.key) {
            Ok(index) => index,
            Err(index) => {
                let slot = Slot {
                    key,
                    etag: 0,
                    born: 0,
                    row: None,
                };
                self.slots.insert(index, slot);
                index
            }
        };
        let slot = &mut self.slots[index];
        slot.etag += u8::from(row.is_some());
        slot.row = row;
        slot.born = 0;
        if key.ages() && row.is_some() {
            self.births += 1;
            slot.born = self.births;
        }
        slot.etag
    }

    fn apply(&mut self, changes: &[Change<K, R>]) -> Answer {
        for (index, change) in changes.iter().enumerate() {
            let (key, condition) = match *change {
                Change::Insert(key, _) if self.get(key).is_some() => {
                    return Answer::Refused(index, Refusal::Exists);
                }
                Change::Insert(..) | Change::Upsert(..) => continue,
                Change::Replace(key, _, etag) => (key, Some(etag)),
                Change::Touch(key, condition) | Change::Delete(key, condition) => (key, condition),
            };
            match self.get(key) {
                None => return Answer::Refused(index, Refusal::Missing),
                Some(found) if condition.is_some_and(|etag| etag != found.etag) => {
                    return Answer::Refused(index, Refusal::Changed);
                }
                Some(_) => {}
            }
        }
        let mut etags = changes.iter().map(|change| match *change {
            Change::Insert(key, row) | Change::Upsert(key, row) | Change::Replace(key, row, _) => {
                self.write(key, Some(row))
            }
            Change::Touch(key, _) => {
                let row = self.get(key).map(|found| found.row);
                self.write(key, row)
            }
            Change::Delete(key, _) => self.write(key, None),
        });
        let first = etags.next().expect("a request has a change");
        etags.for_each(drop);
        Answer::Done(first)
    }
}

impl<K, R: Copy> Slot<K, R> {
    fn found(&self) -> Option<Found<R>> {
        self.row.map(|row| Found {
            etag: self.etag,
            old: self.born == 0,
            row,
        })
    }
}

/// The next step of a client.
pub enum Next<K, R> {
    Read,
    Send(Vec<Change<K, R>>),
}

/// A client of the protocol, as a state machine.
pub trait Client: Clone + Eq + Hash + Debug {
    type Key: Key;
    type Row: Copy + Ord + Hash + Debug;
    type Rules: Rules<Self::Key, Self::Row>;

    /// All steps that the client may take. A client without one has ended.
    fn next(&self) -> Vec<Next<Self::Key, Self::Row>>;

    /// One query, or any number of reads of which no other client can see the order.
    fn read(&mut self, rows: &Rows<Self::Key, Self::Row>);

    fn answer(&mut self, answer: Answer);

    /// The moment of the observation on which the next request rests ([`Rows::now`]); 0 once that
    /// was more than H ago, or if it rests on none.
    fn base(&mut self) -> &mut u8;

    /// Returns true if this client takes its steps after all others have ended, and never meets a
    /// fault.
    fn is_last(&self) -> bool {
        false
    }
}

/// The rules of a protocol, with the facts about the past that they need.
pub trait Rules<K, R>: Clone + Eq + Hash {
    /// Checks the effect of one request.
    fn observe(&mut self, before: &Rows<K, R>, after: &Rows<K, R>) -> Result<(), String>;

    /// Checks a state that no step changes any more.
    fn end(&self, rows: &Rows<K, R>) -> Result<(), String>;
}

/// The fate of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Answered,
    /// Applied and answered; a copy of it may be applied later.
    Duplicated,
    /// Applied twice; the second answer is handed on.
    Doubled,
    AnswerLost,
    /// The client waits no longer; the request may be applied later.
    Late,
    NeverApplied,
}

#[derive(Clone, Copy, Debug)]
enum Step<K> {
    Read(usize),
    Send(usize, usize, Fate),
    Arrive(usize),
    Age(K),
    Stop(usize),
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Late<K, R> {
    base: u8,
    changes: Vec<Change<K, R>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct World<C: Client> {
    rows: Rows<C::Key, C::Row>,
    /// `None`: the client was stopped.
    clients: Vec<Option<C>>,
    late: Vec<Late<C::Key, C::Row>>,
    /// How many faults may still happen.
    faults: u8,
    /// True if the network doubles each request.
    doubles: bool,
    rules: C::Rules,
}

impl<C: Client> World<C> {
    pub fn new(clients: Vec<C>, faults: u8, rules: C::Rules) -> Self {
        Self {
            rows: Rows {
                slots: Vec::new(),
                births: 0,
            },
            clients: clients.into_iter().map(Some).collect(),
            late: Vec::new(),
            faults,
            doubles: false,
            rules,
        }
    }

    /// The same world with a row that was written long ago.
    pub fn with(mut self, key: C::Key, row: C::Row) -> Self {
        self.rows.write(key, Some(row));
        self.forget(self.rows.births);
        self
    }

    /// The same world with a network that doubles each request and causes no other fault, and
    /// clients that do not pause.
    pub const fn doubling(mut self) -> Self {
        self.doubles = true;
        self.faults = 0;
        self
    }

    fn steps(&self) -> Vec<Step<C::Key>> {
        use Fate::{AnswerLost, Answered, Doubled, Duplicated, Late, NeverApplied};
        let mut steps = Vec::new();
        let mut is_quiet = true;
        for (index, client) in self.clients.iter().enumerate() {
            let Some(client) = client else { continue };
            let may_fail = self.faults > 0 && !client.is_last();
            if client.is_last() && !is_quiet {
                continue;
            }
            for (choice, next) in client.next().iter().enumerate() {
                is_quiet = false;
                match next {
                    Next::Read => steps.push(Step::Read(index)),
                    Next::Send(_) if self.doubles && !client.is_last() => {
                        steps.push(Step::Send(index, choice, Doubled));
                    }
                    Next::Send(_) => {
                        let fates = [
                            Answered,
                            Duplicated,
                            Doubled,
                            AnswerLost,
                            Late,
                            NeverApplied,
                        ];
                        let possible = if may_fail { fates.len() } else { 1 };
                        let fates = fates.into_iter().take(possible);
                        steps.extend(fates.map(|fate| Step::Send(index, choice, fate)));
                    }
                }
                if may_fail && choice == 0 {
                    steps.push(Step::Stop(index));
                }
            }
        }
        steps.extend((0..self.late.len()).map(Step::Arrive));
        let clients = self.clients.iter().flatten().filter(|it| !it.is_last());
        let has_ended = clients.into_iter().all(|client| client.next().is_empty());
        let ages = has_ended || !self.doubles;
        let young = self.rows.slots.iter();
        let young = young.filter(|slot| ages && slot.born > 0);
        steps.extend(young.map(|slot| Step::Age(slot.key)));
        steps
    }

    /// Takes the step, and says of a request what came of it.
    fn take(&mut self, step: Step<C::Key>) -> Result<Option<Answer>, String> {
        let answer = match step {
            Step::Read(index) => {
                let client = self.clients[index].as_mut();
                client.expect("only a client reads").read(&self.rows);
                None
            }
            Step::Send(index, choice, fate) => {
                let client = self.clients[index].as_mut().expect("only a client sends");
                let Next::Send(changes) = client.next().swap_remove(choice) else {
                    unreachable!("the choice was a request")
                };
                let base = *client.base();
                let is_usual = self.doubles && fate == Fate::Doubled;
                self.faults -= u8::from(fate != Fate::Answered && !is_usual);
                let late = Late {
                    base,
                    changes: changes.clone(),
                };
                if matches!(fate, Fate::Duplicated | Fate::Late) {
                    self.late.push(late);
                    self.late.sort_unstable();
                }
                let applied = match fate {
                    Fate::Late | Fate::NeverApplied => Answer::Unknown,
                    Fate::Doubled => {
                        self.apply(&changes)?;
                        self.apply(&changes)?
                    }
                    _ => self.apply(&changes)?,
                };
                let known = matches!(fate, Fate::Answered | Fate::Duplicated | Fate::Doubled);
                let answer = if known { applied } else { Answer::Unknown };
                let client = self.clients[index].as_mut();
                client.expect("it sent the request").answer(answer);
                Some(applied)
            }
            Step::Arrive(index) => {
                let late = self.late.remove(index);
                Some(self.apply(&late.changes)?)
            }
            Step::Age(key) => {
                let slot = self.rows.slots.iter().find(|slot| slot.key == key);
                self.forget(slot.expect("the row is there").born);
                None
            }
            Step::Stop(index) => {
                self.faults -= 1;
                self.clients[index] = None;
                None
            }
        };
        self.renumber();
        Ok(answer)
    }

    fn apply(&mut self, changes: &[Change<C::Key, C::Row>]) -> Result<Answer, String> {
        let before = self.rows.clone();
        let answer = self.rows.apply(changes);
        if matches!(answer, Answer::Done(_)) {
            self.rules.observe(&before, &self.rows)?;
        }
        Ok(answer)
    }

    /// Makes everything older than H that is not younger than the row of this number.
    fn forget(&mut self, born: u8) {
        for slot in self.rows.slots.iter_mut().filter(|slot| slot.born <= born) {
            slot.born = 0;
        }
        for client in self.clients.iter_mut().flatten() {
            let base = client.base();
            *base = if *base <= born { 0 } else { *base };
        }
        self.late.retain(|late| late.base == 0 || late.base > born);
    }

    /// Leaves no gaps in the numbers, so that states that differ only in them are one.
    fn renumber(&mut self) {
        let slots = self.rows.slots.iter();
        let mut births: Vec<u8> = slots
            .map(|slot| slot.born)
            .filter(|&born| born > 0)
            .collect();
        births.sort_unstable();
        let rank = |number: u8| {
            let rank = births.iter().filter(|&&born| born < number).count();
            if number == 0 {
                0
            } else {
                u8::try_from(rank).expect("few rows") + 1
            }
        };
        for slot in &mut self.rows.slots {
            slot.born = rank(slot.born);
        }
        for client in self.clients.iter_mut().flatten() {
            let base = client.base();
            *base = rank(*base);
        }
        for late in &mut self.late {
            late.base = rank(late.base);
        }
        self.rows.births = u8::try_from(births.len()).expect("few rows");
    }

    fn trace(mut self, steps: impl IntoIterator<Item = Step<C::Key>>) -> String {
        let mut trace = String::new();
        for (number, step) in (1..).zip(steps) {
            let sent = match step {
                Step::Send(index, choice, _) => {
                    let client = self.clients[index].as_ref().map(C::next);
                    client.map(|mut next| next.swap_remove(choice))
                }
                Step::Arrive(index) => Some(Next::Send(self.late[index].changes.clone())),
                _ => None,
            };
            let answer = self.take(step);
            write!(trace, "{number}. {step:?}").unwrap();
            match (step, sent, answer) {
                (Step::Read(index), ..) => write!(trace, " → {:?}", self.clients[index]).unwrap(),
                (_, Some(Next::Send(changes)), Ok(Some(answer))) => {
                    write!(trace, " {changes:?} → {answer:?}").unwrap();
                }
                (_, Some(Next::Send(changes)), _) => write!(trace, " {changes:?}").unwrap(),
                _ => {}
            }
            trace.push('\n');
        }
        trace
    }
}

/// `FxHash`: the hasher of the standard library takes most of the time of a debug build.
#[derive(Default)]
struct FastHasher(u64);

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_usize(number.cast_unsigned());
    }
}

/// Visits every state that the world can reach. Returns their number, or the shortest trace to a
/// violation.
///
/// `TABLESDK_PROTOCOLS_FAULTS` is added to the number of faults, if there are any.
fn explore<C: Client>(mut start: World<C>) -> Result<usize, String> {
    if start.faults > 0
        && let Ok(faults) = std::env::var("TABLESDK_PROTOCOLS_FAULTS")
    {
        start.faults += faults.parse::<u8>().expect("a number of faults");
    }
    let hash = |world: &World<C>| BuildHasherDefault::<FastHasher>::default().hash_one(world);
    let mut visited: HashSet<u64, BuildHasherDefault<FastHasher>> = HashSet::default();
    // The state that the step of a visited state was taken from.
    let mut origins: Vec<(usize, Option<Step<C::Key>>)> = vec![(0, None)];
    let mut queue = VecDeque::from([(0, start.clone())]);
    visited.insert(hash(&start));
    let path =
        |origins: &[(usize, Option<Step<C::Key>>)], mut at: usize, last: Option<Step<C::Key>>| {
            let mut steps: Vec<_> = last.into_iter().collect();
            while let (origin, Some(step)) = origins[at] {
                steps.push(step);
                at = origin;
            }
            steps.into_iter().rev().collect::<Vec<_>>()
        };
    let mut ends = 0;
    while let Some((at, world)) = queue.pop_front() {
        let mut is_end = true;
        for step in world.steps() {
            let mut next = world.clone();
            if let Err(violation) = next.take(step) {
                let steps = path(&origins, at, Some(step));
                return Err(format!("{violation}\n{}", start.trace(steps)));
            }
            is_end = is_end && next == world;
            if visited.insert(hash(&next)) {
                origins.push((at, Some(step)));
                queue.push_back((origins.len() - 1, next));
            }
        }
        ends += usize::from(is_end);
        if is_end && let Err(violation) = world.rules.end(&world.rows) {
            let steps = path(&origins, at, None);
            return Err(format!("at the end: {violation}\n{}", start.trace(steps)));
        }
    }
    if ends == 0 {
        return Err("no state is an end".to_owned());
    }
    Ok(visited.len())
}

/// Shows that the rules hold in every state.
pub fn holds<C: Client>(start: World<C>) {
    let states = explore(start).unwrap_or_else(|violation| panic!("{violation}"));
    println!("{states} states");
}

/// Shows that the model notices the mutant, by a violation that contains this string.
pub fn finds<C: Client>(mutant: impl Debug, start: World<C>, violation: &str) {
    let Err(found) = explore(start) else {
        panic!("{mutant:?} is not found")
    };
    assert!(found.contains(violation), "{mutant:?}: {found}");
    println!("{mutant:?}: {found}");
}
