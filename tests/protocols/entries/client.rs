//! A client of an index with entries in other partitions: a writer of the entity, or a repair.

use super::rules::Complete;
use super::{Entity, Key, Mutant, Row, VALUES, Verb, entity};
use crate::explore::{Answer, Change, Client, Next, Rows};
use At::{
    Begin, Commit, End, InsertEntry, Look, Mend, ReadEntity, ReadEntry, ReadGained,
    ReconcileEntity, ReconcileEntry, Remove, RemoveEntity, RemoveEntry, TouchEntry,
};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    ReadEntity,
    Begin,
    // Before the commit, for the entry of this value.
    ReadEntry(u8),
    InsertEntry(u8),
    ReadGained(u8),
    TouchEntry(u8, Seen),
    Commit,
    // After it.
    ReconcileEntry(u8),
    ReconcileEntity(u8, Option<Seen>),
    Mend(u8, Action),
    /// The entries that no entity has.
    RemoveEntry(u8),
    RemoveEntity(u8, Seen),
    Remove(u8, u8),
    Look,
    End,
}

/// An entry as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Seen {
    etag: u8,
    column: u8,
    written_by: u8,
    is_old: bool,
}

/// The change of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Action {
    Insert(u8),
    Replace(u8, u8),
    Touch(u8),
    /// Touches it, and leaves an id.
    Confirm(u8, u8),
    Delete(u8),
}

/// The entry before the entity is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Before {
    /// It is as it has to be, or has never been there.
    Right,
    Inserted(u8),
    Touched(u8),
    Read(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Outcome {
    Written,
    Refused,
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Index {
    verb: Verb,
    /// The id of its writes of entries before the commit. That of those after it is the next one.
    id: u8,
    /// How many writes of the entry were refused, or got no answer. The next one has an id.
    failed: u8,
    at: At,
    base: u8,
    /// The entity as it was read, with its ETag.
    stored: Option<(u8, Entity)>,
    /// By value.
    before: [Before; VALUES as usize],
    /// That of the commit.
    outcome: Option<Outcome>,
    mutant: Mutant,
}

fn entry(rows: &Rows<Key, Row>, value: u8) -> Option<Seen> {
    let found = rows.get(Key::Entry(value))?;
    match found.row {
        Row::Entry(column, written_by) => Some(Seen {
            etag: found.etag,
            column,
            written_by,
            is_old: found.old,
        }),
        Row::Entity(_) => unreachable!("the key is an entry's"),
    }
}

impl Index {
    pub const fn new(verb: Verb, number: u8, mutant: Mutant) -> Self {
        Self {
            verb,
            id: 2 * number + 1,
            failed: 0,
            at: match verb {
                Verb::Last => Look,
                _ => ReadEntity,
            },
            base: 0,
            stored: None,
            before: [Before::Right; VALUES as usize],
            outcome: None,
            mutant,
        }
    }

    /// Ends this run.
    fn end(&mut self) {
        *self = Self::new(self.verb, self.id / 2, self.mutant);
        self.at = if self.verb == Verb::Last { Look } else { End };
    }

    /// The entity as it is to be.
    fn wanted(&self) -> Option<Entity> {
        match self.verb {
            Verb::Set(entity) | Verb::Insert(entity) => Some(entity),
            Verb::Delete => None,
            Verb::Repair | Verb::Last => self.stored.map(|(_, entity)| entity),
        }
    }

    /// The property that the entry of this value has to have.
    fn wanted_entry(&self, value: u8) -> Option<u8> {
        let entity = self.wanted().filter(|entity| entity.value == value);
        entity.map(|entity| entity.column)
    }

    /// Returns true if the next write of an entry without a change has an id.
    fn has_id(&self) -> bool {
        self.failed > 0 && self.mutant != Mutant::WithoutIds
    }

    fn had_entry(&self, value: u8) -> bool {
        self.stored.is_some_and(|(_, entity)| entity.value == value)
    }

    fn before(&mut self, value: u8) -> &mut Before {
        &mut self.before[usize::from(value) - 1]
    }

    /// Goes on with the preparation of the entry of the next value.
    fn prepare(&mut self, value: u8) {
        self.failed = 0;
        self.at = match (self.had_entry(value), self.wanted_entry(value)) {
            _ if value > VALUES || self.mutant == Mutant::EntriesAfterCommit => {
                let is_needed = self.before != [Before::Right; VALUES as usize];
                if self.wanted() == self.stored.map(|(_, entity)| entity) && !is_needed {
                    return self.clean(VALUES + 1);
                }
                Commit
            }
            (false, Some(_)) => InsertEntry(value),
            (false, None) => return self.prepare(value + 1),
            (true, None) if self.mutant == Mutant::LostReadAfterCommit => {
                return self.prepare(value + 1);
            }
            (true, _) => ReadEntry(value),
        };
    }

    /// Goes on with the entry of the next value after the commit.
    fn clean(&mut self, value: u8) {
        self.failed = 0;
        if value > VALUES {
            match self.verb {
                Verb::Repair => self.at = RemoveEntry(1),
                _ => self.end(),
            }
            return;
        }
        let is_inserted = self.stored.is_none();
        let (before, wanted) = (*self.before(value), self.wanted_entry(value));
        let mutant = self.mutant;
        self.at = match (self.outcome, before) {
            (Some(Outcome::Written), Before::Right) => match (self.had_entry(value), wanted) {
                (false, Some(column)) if mutant == Mutant::EntriesAfterCommit => {
                    Mend(value, Action::Insert(column))
                }
                (true, None) if mutant == Mutant::LostReadAfterCommit => ReadEntry(value),
                _ => return self.clean(value + 1),
            },
            (Some(Outcome::Written), Before::Inserted(etag))
                if is_inserted && mutant != Mutant::InsertNotConfirmed =>
            {
                Mend(value, Action::Touch(etag))
            }
            (Some(Outcome::Written), Before::Read(etag) | Before::Touched(etag)) => match wanted {
                Some(column) => Mend(value, Action::Replace(etag, column)),
                None => Mend(value, Action::Delete(etag)),
            },
            (Some(Outcome::Refused), Before::Inserted(_)) => ReconcileEntry(value),
            (Some(Outcome::Refused), Before::Touched(_))
                if mutant == Mutant::RefusedDeletesTouched =>
            {
                ReconcileEntry(value)
            }
            (Some(Outcome::Unknown), before) if before != Before::Right => ReconcileEntry(value),
            _ => return self.clean(value + 1),
        };
    }

    /// A version of the entry that no later write of the entity relies on.
    fn known(&mut self, value: u8) -> Option<u8> {
        let mutant = self.mutant;
        match (self.outcome, *self.before(value)) {
            (Some(Outcome::Refused), Before::Inserted(etag)) => Some(etag),
            (Some(Outcome::Refused), Before::Touched(etag))
                if mutant == Mutant::RefusedDeletesTouched =>
            {
                Some(etag)
            }
            (Some(Outcome::Unknown), Before::Read(etag)) if mutant == Mutant::ReadIsKnown => {
                Some(etag)
            }
            (Some(Outcome::Unknown), Before::Touched(etag)) if mutant == Mutant::TouchedIsKnown => {
                Some(etag)
            }
            _ => None,
        }
    }

    fn reconcile(&mut self, value: u8, seen: Option<Seen>, entity: Option<Entity>) {
        let known = self.known(value);
        let wanted = entity.filter(|entity| entity.value == value);
        let wanted = wanted.map(|entity| entity.column);
        let action = match (seen, wanted) {
            (None, None) => None,
            (Some(seen), Some(column)) if seen.column == column => {
                let touch = if self.has_id() {
                    Action::Confirm(seen.etag, column)
                } else {
                    Action::Touch(seen.etag)
                };
                Some(touch).filter(|_| self.mutant != Mutant::EqualNotTouched)
            }
            (Some(seen), Some(column)) => Some(Action::Replace(seen.etag, column)),
            (None, Some(column)) => Some(Action::Insert(column)),
            (Some(seen), None) => {
                let may_go = seen.is_old || known == Some(seen.etag);
                may_go.then_some(Action::Delete(seen.etag))
            }
        };
        match action {
            Some(action) => self.at = Mend(value, action),
            None => self.clean(value + 1),
        }
    }

    /// Goes on with the removal of the entry of the next value.
    fn remove(&mut self, value: u8) {
        match (self.verb, value > VALUES) {
            (Verb::Repair, false) => self.at = RemoveEntry(value),
            _ => self.end(),
        }
    }

    fn judge(&mut self, value: u8, seen: Seen, entity: Option<Entity>) {
        let has_entry = entity.is_some_and(|entity| entity.value == value);
        let is_young = !seen.is_old && self.mutant != Mutant::YoungRemoved;
        if has_entry || is_young {
            self.remove(value + 1);
        } else {
            self.at = Remove(value, seen.etag);
        }
    }

    fn look(&mut self, rows: &Rows<Key, Row>) {
        let stored = entity(rows);
        for value in 1..=VALUES {
            let wanted = stored.filter(|(_, entity)| entity.value == value);
            let wanted = wanted.map(|(_, entity)| entity.column);
            match (entry(rows, value), wanted) {
                (seen, Some(column)) if seen.is_none_or(|seen| seen.column != column) => {
                    self.stored = stored;
                    self.at = Begin;
                    return;
                }
                (Some(seen), None) if seen.is_old => {
                    self.at = Remove(value, seen.etag);
                    return;
                }
                _ => {}
            }
        }
    }

    fn has_paused(&self) -> bool {
        self.base == 0 && self.mutant != Mutant::PauseIgnored
    }
}

/// How often an entry is written before the client gives up.
const ROUNDS: u8 = 3;

impl Client for Index {
    type Key = Key;
    type Row = Row;
    type Rules = Complete;

    fn next(&self) -> Vec<Next<Key, Row>> {
        let change = match self.at {
            End => return Vec::new(),
            Commit if self.has_paused() => return vec![Next::Read],
            InsertEntry(value) => {
                let column = self.wanted_entry(value).expect("the entity has the entry");
                Change::Insert(Key::Entry(value), Row::Entry(column, 0))
            }
            TouchEntry(value, seen) if self.has_id() => {
                let row = Row::Entry(seen.column, self.id);
                Change::Replace(Key::Entry(value), row, seen.etag)
            }
            TouchEntry(value, seen) => Change::Touch(Key::Entry(value), Some(seen.etag)),
            Commit => {
                let etag = self.stored.map(|(etag, _)| etag);
                match (etag, self.wanted().map(Row::Entity)) {
                    (Some(etag), Some(Row::Entity(entity)))
                        if self.stored == Some((etag, entity)) =>
                    {
                        Change::Touch(Key::Entity, Some(etag))
                    }
                    (Some(etag), Some(entity)) => Change::Replace(Key::Entity, entity, etag),
                    (None, Some(entity)) => Change::Insert(Key::Entity, entity),
                    (etag, None) => Change::Delete(Key::Entity, etag),
                }
            }
            Mend(value, action) => {
                let key = Key::Entry(value);
                match action {
                    Action::Insert(column) => Change::Insert(key, Row::Entry(column, 0)),
                    Action::Replace(etag, column) => {
                        Change::Replace(key, Row::Entry(column, 0), etag)
                    }
                    Action::Confirm(etag, column) => {
                        Change::Replace(key, Row::Entry(column, self.id + 1), etag)
                    }
                    Action::Touch(etag) => Change::Touch(key, Some(etag)),
                    Action::Delete(_) if self.mutant == Mutant::LostDeletedUnconditionally => {
                        Change::Delete(key, None)
                    }
                    Action::Delete(etag) => Change::Delete(key, Some(etag)),
                }
            }
            Remove(value, etag) => Change::Delete(Key::Entry(value), Some(etag)),
            _ => return vec![Next::Read],
        };
        vec![Next::Send(vec![change])]
    }

    fn read(&mut self, rows: &Rows<Key, Row>) {
        match self.at {
            ReadEntity => {
                self.stored = entity(rows);
                match (self.verb, self.stored) {
                    (Verb::Delete, None) => self.end(),
                    (Verb::Insert(_), _) => {
                        self.stored = None;
                        self.at = Begin;
                    }
                    (Verb::Repair, None) => self.remove(1),
                    _ => self.at = Begin,
                }
            }
            Begin => {
                self.base = rows.now();
                self.prepare(1);
            }
            ReadGained(value) => match entry(rows, value) {
                None => self.at = InsertEntry(value),
                Some(seen) if seen.written_by == self.id || self.mutant == Mutant::PresentIsOwn => {
                    *self.before(value) = Before::Touched(seen.etag);
                    self.prepare(value + 1);
                }
                // It gives up before it has written the entity.
                Some(_) if self.failed == ROUNDS => {
                    self.outcome = Some(Outcome::Refused);
                    self.clean(1);
                }
                Some(seen) => self.at = TouchEntry(value, seen),
            },
            ReadEntry(value) => {
                let is_after_commit = self.outcome.is_some();
                let is_unchanged = self.wanted() == self.stored.map(|(_, entity)| entity);
                match (entry(rows, value), self.wanted_entry(value)) {
                    (Some(seen), None) if is_after_commit => {
                        self.at = Mend(value, Action::Delete(seen.etag));
                        return;
                    }
                    (Some(seen), Some(column)) if seen.column == column && is_unchanged => {}
                    (Some(seen), Some(column))
                        if seen.column == column && self.mutant == Mutant::EqualNotTouched => {}
                    (Some(seen), _) => *self.before(value) = Before::Read(seen.etag),
                    (None, Some(_)) => {
                        self.at = InsertEntry(value);
                        return;
                    }
                    (None, None) => {}
                }
                if is_after_commit {
                    self.clean(value + 1);
                } else {
                    self.prepare(value + 1);
                }
            }
            // The client has paused.
            Commit => {
                self.outcome = Some(Outcome::Refused);
                self.clean(1);
            }
            ReconcileEntry(value)
                if entry(rows, value).is_some_and(|it| it.written_by == self.id + 1) =>
            {
                self.clean(value + 1);
            }
            ReconcileEntry(value) => {
                self.base = rows.now();
                self.at = ReconcileEntity(value, entry(rows, value));
            }
            ReconcileEntity(value, seen) => {
                let entity = entity(rows).map(|(_, entity)| entity);
                self.reconcile(value, seen, entity);
            }
            RemoveEntry(value) if self.mutant == Mutant::EntityReadFirst => {
                let entity = self.stored.map(|(_, entity)| entity);
                match entry(rows, value) {
                    Some(seen) => self.judge(value, seen, entity),
                    None => self.remove(value + 1),
                }
            }
            RemoveEntry(value) => {
                self.base = rows.now();
                match entry(rows, value) {
                    Some(seen) => self.at = RemoveEntity(value, seen),
                    None => self.remove(value + 1),
                }
            }
            RemoveEntity(value, seen) => {
                self.judge(value, seen, entity(rows).map(|(_, entity)| entity));
            }
            Look => self.look(rows),
            at => unreachable!("{at:?} is no read"),
        }
    }

    fn answer(&mut self, answer: Answer) {
        match (self.at, answer) {
            (InsertEntry(value), Answer::Done(etag)) => {
                *self.before(value) = Before::Inserted(etag);
                self.prepare(value + 1);
            }
            (InsertEntry(value), Answer::Refused(..))
                if self.mutant == Mutant::PresentNotTouched =>
            {
                self.prepare(value + 1);
            }
            (InsertEntry(value), _) => self.at = ReadGained(value),
            (TouchEntry(value, _), Answer::Done(etag)) => {
                *self.before(value) = Before::Touched(etag);
                self.prepare(value + 1);
            }
            // The entry is there, but may have the ETag that it had before.
            (TouchEntry(value, _), Answer::Unknown) if self.mutant == Mutant::UnknownTouchTaken => {
                self.at = ReadEntry(value);
            }
            (TouchEntry(value, _), _) => {
                self.failed += 1;
                self.at = InsertEntry(value);
            }
            (Commit, answer) => {
                self.outcome = Some(match answer {
                    Answer::Done(_) => Outcome::Written,
                    Answer::Refused(..) => Outcome::Refused,
                    Answer::Unknown => Outcome::Unknown,
                });
                self.clean(1);
            }
            (Mend(value, _), Answer::Refused(..)) if self.failed == ROUNDS => self.clean(value + 1),
            (Mend(value, _), Answer::Refused(..)) => {
                self.failed += 1;
                self.at = ReconcileEntry(value);
            }
            (Mend(value, _), _) => self.clean(value + 1),
            (Remove(value, _), _) => self.remove(value + 1),
            (at, answer) => unreachable!("{answer:?} at {at:?}"),
        }
    }

    fn base(&mut self) -> &mut u8 {
        &mut self.base
    }

    fn is_last(&self) -> bool {
        self.verb == Verb::Last
    }
}
