//! The calls and results of clients, in the order of calls and returns, and the contradictions in
//! them that need no search.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::register::{Action, Effect, Outcome, Seen, Token, Version};

/// The place of a call or a return in the order of all of them.
pub(crate) type Moment = u64;

/// An operation on one entity. A batch has one for each of its changes, all with the same token and
/// the same moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) token: Token,
    pub(crate) action: Action,
    pub(crate) outcome: Outcome,
    pub(crate) called: Moment,
    pub(crate) returned: Moment,
}

/// Partition key and row key.
pub(crate) type Name = (String, String);

/// All operations of a run.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) entities: BTreeMap<Name, Vec<Op>>,
    /// The entities of a partition, as single queries saw them.
    pub(crate) queries: Vec<(String, BTreeMap<String, Option<Seen>>)>,
}

/// A contradiction in a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation(pub(crate) String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Op {
    pub(crate) const fn new(
        token: Token,
        action: Action,
        outcome: Outcome,
        (called, returned): (Moment, Moment),
    ) -> Self {
        Self {
            token,
            action,
            outcome,
            called,
            returned,
        }
    }

    /// The content of the entity that the operation read.
    pub(crate) const fn seen(&self) -> Option<Seen> {
        match self.outcome {
            Outcome::Saw(seen) => seen,
            _ => None,
        }
    }
}

impl History {
    /// Notes an operation on an entity.
    pub(crate) fn note(&mut self, name: Name, op: Op) {
        self.entities.entry(name).or_default().push(op);
    }

    /// Notes what a query saw of all entities of a partition that this run uses.
    pub(crate) fn note_query(
        &mut self,
        partition: &str,
        rows: BTreeMap<String, Option<Seen>>,
        moments: (Moment, Moment),
    ) {
        for (row, seen) in &rows {
            let op = Op::new(0, Action::Read, Outcome::Saw(*seen), moments);
            self.note((partition.to_owned(), row.clone()), op);
        }
        self.queries.push((partition.to_owned(), rows));
    }

    /// The operations whose content was read, of any entity, and when: by then they were applied,
    /// completely.
    pub(crate) fn first_reads(&self) -> HashMap<Token, Moment> {
        let mut first = HashMap::new();
        let ops = self.entities.values().flatten();
        for (op, seen) in ops.filter_map(|op| Some((op, op.seen()?))) {
            for token in [Some(seen.token), seen.a, seen.b].into_iter().flatten() {
                let moment = first.entry(token).or_insert(op.returned);
                *moment = op.returned.min(*moment);
            }
        }
        first
    }

    /// The versions that writes gave an entity, as far as a response had them.
    pub(crate) fn versions(&self, name: &Name) -> Result<HashMap<Token, Version>, Violation> {
        let mut versions = HashMap::new();
        let mut tokens = HashMap::new();
        for op in self.entities.get(name).into_iter().flatten() {
            let (token, version) = match (op.outcome, op.seen()) {
                (Outcome::Done(Some(version)), _) => (op.token, version),
                (_, Some(seen)) => (seen.token, seen.version),
                _ => continue,
            };
            let other = versions.insert(token, version);
            if other.is_some_and(|other| other != version) {
                return Err(Violation(format!(
                    "{name:?}: write {token} was applied twice: its versions are {version} and {other:?}"
                )));
            }
            let other = tokens.insert(version, token);
            if other.is_some_and(|other| other != token) {
                return Err(Violation(format!(
                    "{name:?}: version {version} is of two writes: {token} and {other:?}"
                )));
            }
        }
        Ok(versions)
    }

    /// Checks that all content that was read is of writes that may have been applied.
    pub(crate) fn check_origins(&self) -> Result<(), Violation> {
        for (name, ops) in &self.entities {
            let writes = ops.iter().filter(|op| op.action != Action::Read);
            let writes: HashMap<Token, &Op> = writes.map(|op| (op.token, op)).collect();
            let seen = ops.iter().filter_map(|op| Some((op, op.seen()?)));
            for (read, seen) in seen {
                for token in [Some(seen.token), seen.a, seen.b].into_iter().flatten() {
                    let write = writes.get(&token);
                    let is_possible = write.is_some_and(|write| {
                        matches!(write.outcome, Outcome::Done(_) | Outcome::Unknown)
                            && !matches!(write.action, Action::Write(Effect::Delete, _))
                            && write.called < read.returned
                    });
                    if !is_possible {
                        return Err(Violation(format!(
                            "{name:?}: {read:?} shows write {token}, which was not applied: {write:?}"
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that each query saw all changes of a batch or none. A query that saw a later write of
    /// an entity saw the batch there.
    pub(crate) fn check_queries(&self) -> Result<(), Violation> {
        let mut batches: BTreeMap<(&str, Token), Vec<(&str, Version)>> = BTreeMap::new();
        for name in self.entities.keys() {
            for (token, version) in self.versions(name)? {
                let changes = batches.entry((&name.0, token)).or_default();
                changes.push((&name.1, version));
            }
        }
        batches.retain(|_, changes| changes.len() > 1);
        for (partition, rows) in &self.queries {
            let of_partition = batches.iter().filter(|((of, _), _)| of == partition);
            for ((_, token), changes) in of_partition {
                let seen = |(row, version): &(&str, Version)| {
                    let seen = (*rows.get(*row)?)?;
                    Some(seen.version >= *version)
                };
                let is_seen = changes.iter().any(|change| seen(change) == Some(true));
                let is_not = changes.iter().any(|change| seen(change) == Some(false));
                if is_seen && is_not {
                    return Err(Violation(format!(
                        "partition {partition}: a query saw a part of batch {token}: {changes:?} in {rows:?}"
                    )));
                }
            }
        }
        Ok(())
    }
}
