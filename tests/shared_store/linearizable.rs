//! Checks that the operations on an entity can be put in an order in which each of them has the
//! result that it had, each at a moment between its call and its return.
//!
//! The search goes through calls and returns in their order, and keeps all states that the entity
//! may be in, each with the operations in flight that have taken effect in it. At a return, the
//! operation must have taken effect: those in flight are tried in every order that ends with it
//! (Lowe's variant of the search of Wing and Gong). These facts keep the states few, so that the
//! time grows with the length of the history and not with the number of orders:
//!
//! * Reads and rejections take effect as soon as they can, because they change nothing.
//! * Versions order the acknowledged writes: a state is given up if it has passed a version that is
//!   still needed.
//! * Of two ways to one state, the one that used fewer of the writes that nothing forces to take
//!   effect makes the other superfluous.
//! * Of writes that do the same, the one that returns first takes effect first.

use std::collections::HashMap;

use crate::frontier::{Frontier, Possible};
use crate::history::{History, Moment, Name, Op, Violation};
use crate::register::{Action, Condition, Effect, Outcome, State, Token, UNSEEN, Version};

/// A history that needs more states at a time is given up. None of a correct service comes near it.
const STATES_MAX: usize = 20_000;

/// Checks a whole history: each entity, and the batches.
pub(crate) fn check(history: &History) -> Result<Effort, Violation> {
    history.check_origins()?;
    history.check_queries()?;
    let reads = history.first_reads();
    let mut effort = Effort::default();
    for (name, ops) in &history.entities {
        let versions = history.versions(name)?;
        let items = ops.iter().map(|op| Item::new(op, &reads, &versions));
        let mut search = Search {
            name,
            ops,
            items: items.collect(),
            open: Vec::new(),
            possible: vec![Possible::default()],
            effort: Effort::default(),
        };
        search.run()?;
        effort.steps += search.effort.steps;
        effort.states = effort.states.max(search.effort.states);
    }
    Ok(effort)
}

/// How much a search had to try.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effort {
    pub(crate) steps: usize,
    /// The greatest number at a time.
    pub(crate) states: usize,
}

/// An operation as the search needs it.
#[derive(Clone, Copy, Debug)]
struct Item {
    action: Action,
    outcome: Outcome,
    token: Token,
    /// The version that a write gave.
    version: Option<Version>,
    /// By when it took effect: it returned, or was read. `None` if it need not have.
    deadline: Option<Moment>,
}

impl Item {
    fn new(op: &Op, reads: &HashMap<Token, Moment>, versions: &HashMap<Token, Version>) -> Self {
        let read = reads.get(&op.token).copied();
        let is_unknown = op.outcome == Outcome::Unknown;
        Self {
            action: op.action,
            outcome: op.outcome,
            token: if read.is_some() { op.token } else { UNSEEN },
            version: match op.outcome {
                Outcome::Done(version) => version,
                Outcome::Unknown => versions.get(&op.token).copied(),
                _ => None,
            },
            deadline: if is_unknown { read } else { Some(op.returned) },
        }
    }

    /// Returns true if the operation concerns the entity: it may have changed it, or its result
    /// shows something.
    fn matters(&self) -> bool {
        match self.outcome {
            Outcome::Failed => false,
            Outcome::Unknown => self.action != Action::Read,
            _ => true,
        }
    }

    const fn changes(&self) -> bool {
        matches!(self.outcome, Outcome::Done(_) | Outcome::Unknown)
    }

    /// The state after the operation has taken effect, if it can have its result in this one.
    fn after(&self, state: &State) -> Option<State> {
        match (self.action, self.outcome) {
            (_, Outcome::Saw(seen)) => state.shows(seen).then_some(*state),
            (Action::Write(_, condition), Outcome::Refused(refusal)) => {
                state.refuses(condition, refusal).then_some(*state)
            }
            (Action::Write(effect, condition), Outcome::Done(_) | Outcome::Unknown) => {
                state.after(effect, condition, self.token, self.version)
            }
            _ => None,
        }
    }

    /// Returns true if the operation can still take effect after this state.
    fn may_follow(&self, state: &State) -> bool {
        let needs = match (self.action, self.outcome) {
            (_, Outcome::Saw(Some(seen))) => Some(seen.version),
            (Action::Write(_, Condition::Version(version)), _) if self.changes() => Some(version),
            _ => None,
        };
        needs.is_none_or(|version| state.may_reach(version))
            && self.version.is_none_or(|version| state.may_get(version))
    }

    /// Writes of the same kind do the same, so that it does not matter which of them takes effect
    /// first.
    fn kind(&self) -> Option<(Effect, Condition, bool)> {
        match self.action {
            Action::Write(effect, condition)
                if self.deadline.is_none() || effect == Effect::Delete =>
            {
                Some((effect, condition, self.deadline.is_some()))
            }
            _ => None,
        }
    }
}

struct Search<'h> {
    name: &'h Name,
    ops: &'h [Op],
    items: Vec<Item>,
    /// Those that were called and have not returned.
    open: Vec<usize>,
    possible: Vec<Possible>,
    effort: Effort,
}

impl Search<'_> {
    fn run(&mut self) -> Result<(), Violation> {
        let mut events: Vec<(Moment, bool, usize)> = Vec::new();
        for (index, item) in self.items.iter().enumerate() {
            if item.matters() {
                events.push((self.ops[index].called, false, index));
                events.extend(item.deadline.map(|deadline| (deadline, true, index)));
            }
        }
        events.sort_unstable();
        for (_, is_return, index) in events {
            if is_return {
                self.end(index)?;
                self.open.retain(|open| *open != index);
            } else {
                self.open.push(index);
                // The first of a kind is the one that returns first.
                let items = &self.items;
                let deadline = |index: usize| items[index].deadline.unwrap_or(Moment::MAX);
                self.open.sort_by_key(|index| deadline(*index));
            }
        }
        Ok(())
    }

    /// Keeps the states in which the operation has taken effect.
    fn end(&mut self, returned: usize) -> Result<(), Violation> {
        let mut ended = Frontier::default();
        let mut visited = Frontier::default();
        let mut stack = std::mem::take(&mut self.possible);
        let before: Vec<State> = stack.iter().take(4).map(|it| it.state).collect();
        while let Some(mut possible) = stack.pop() {
            self.effort.steps += 1;
            self.settle(&mut possible);
            if possible.has(returned) {
                possible.forget(returned);
                ended.add(&possible);
                continue;
            }
            if !visited.add(&possible) {
                continue;
            }
            self.effort.states = self.effort.states.max(visited.len());
            if visited.len() > STATES_MAX {
                let name = self.name;
                return Err(Violation(format!("{name:?}: too many states")));
            }
            self.extend(&possible, &mut stack);
        }
        self.possible = ended.into_vec();
        if self.possible.is_empty() {
            return Err(self.violation(returned, &before));
        }
        Ok(())
    }

    /// Lets reads and rejections take effect that can.
    fn settle(&self, possible: &mut Possible) {
        for &index in &self.open {
            let item = &self.items[index];
            if !item.changes() && item.after(&possible.state).is_some() {
                possible.settle(index);
            }
        }
    }

    /// Adds the states after one more write.
    fn extend(&self, possible: &Possible, states: &mut Vec<Possible>) {
        let mut tried = Vec::new();
        for &index in &self.open {
            let item = &self.items[index];
            if !item.changes() || possible.has(index) {
                continue;
            }
            if let Some(kind) = item.kind() {
                if tried.contains(&kind) {
                    continue;
                }
                tried.push(kind);
            }
            let Some(state) = item.after(&possible.state) else {
                continue;
            };
            let mut next = possible.clone();
            next.write(index, item.deadline.is_some(), state);
            let mut others = self
                .open
                .iter()
                .filter(|other| self.items[**other].deadline.is_some() && !next.has(**other));
            if others.all(|other| self.items[*other].may_follow(&next.state)) {
                states.push(next);
            }
        }
    }

    fn violation(&self, returned: usize, before: &[State]) -> Violation {
        let op = &self.ops[returned];
        let mut text = format!(
            "{:?}: no order explains {op:?}\n  possible before it: {before:?}\n",
            self.name
        );
        let deadline = self.items[returned].deadline.unwrap_or(Moment::MAX);
        let mut around: Vec<&Op> = self.ops.iter().collect();
        around.retain(|op| op.called <= deadline);
        around.sort_unstable_by_key(|op| op.returned);
        for op in &around[around.len().saturating_sub(SHOWN)..] {
            text += &format!("  {op:?}\n");
        }
        Violation(text)
    }
}

/// The operations before a violation that it shows.
const SHOWN: usize = 24;
