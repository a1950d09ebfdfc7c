//! `move_to`: an entity is written into another table, and then deleted where it was.
//!
//! The rule is that the newest version of the entity is always in one of the two tables. Where no
//! fault happens, no older version is left in the target beside it.

use super::explore::{
    self, Answer, Change, Client, Next, Refusal, Rows, Rules, World, finds, holds,
};
use At::{
    DeleteSource, End, InsertTarget, ReadSource, ReadSourceAgain, ReadTarget, RemoveCopy,
    ReplaceTarget, UpdateSource,
};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Key {
    Source,
    Target,
}

impl explore::Key for Key {
    fn ages(self) -> bool {
        false
    }
}

/// The value of the entity.
type Value = u8;

/// A part of the protocol left out or done otherwise, which the model has to notice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Mutant {
    None,
    DeletedFirst,
    DeletedUnconditionally,
    SourceReadFirst,
    SourceNotReadAgain,
    EqualNotWritten,
    EqualNotTakenOver,
    CopyRemovedUnconditionally,
    CopyRemovedAfterUnknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Role {
    /// Moves the entity, and writes over what the target has.
    Mover,
    /// Reads the entity, and changes its value.
    Writer(Value),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    ReadSource,
    InsertTarget,
    /// Before another version of the target is replaced.
    ReadTarget,
    ReadSourceAgain(u8, Value),
    /// With its ETag, and whether it is equal.
    ReplaceTarget(u8, bool),
    DeleteSource,
    RemoveCopy(u8),
    UpdateSource,
    End,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Move {
    role: Role,
    at: At,
    base: u8,
    /// The version that is moved or updated, with its ETag.
    version: (u8, Value),
    /// The ETag of the copy, if the target had none before, or an equal one.
    copy: Option<u8>,
    mutant: Mutant,
}

impl Move {
    const fn new(role: Role, mutant: Mutant) -> Self {
        Self {
            role,
            at: ReadSource,
            base: 0,
            version: (0, 0),
            copy: None,
            mutant,
        }
    }

    fn end(&mut self) {
        *self = Self {
            at: End,
            ..Self::new(self.role, self.mutant)
        };
    }

    /// The version is in the target.
    fn written(&mut self) {
        self.at = DeleteSource;
        if self.mutant == Mutant::DeletedFirst {
            self.end();
        }
    }
}

impl Client for Move {
    type Key = Key;
    type Row = Value;
    type Rules = Newest;

    fn next(&self) -> Vec<Next<Key, Value>> {
        let (etag, value) = self.version;
        let mutant = self.mutant;
        let change = match self.at {
            End => return Vec::new(),
            ReadSource | ReadTarget | ReadSourceAgain(..) => return vec![Next::Read],
            InsertTarget => Change::Insert(Key::Target, value),
            ReplaceTarget(target, _) => Change::Replace(Key::Target, value, target),
            DeleteSource if mutant == Mutant::DeletedUnconditionally => {
                Change::Delete(Key::Source, None)
            }
            DeleteSource => Change::Delete(Key::Source, Some(etag)),
            RemoveCopy(_) if mutant == Mutant::CopyRemovedUnconditionally => {
                Change::Delete(Key::Target, None)
            }
            RemoveCopy(copy) => Change::Delete(Key::Target, Some(copy)),
            UpdateSource => {
                let Role::Writer(value) = self.role else {
                    unreachable!("only a writer updates")
                };
                Change::Replace(Key::Source, value, etag)
            }
        };
        vec![Next::Send(vec![change])]
    }

    fn read(&mut self, rows: &Rows<Key, Value>) {
        let source = rows.get(Key::Source);
        let target = rows.get(Key::Target);
        match (self.at, source, target) {
            (ReadSource, Some(source), _) => {
                self.version = (source.etag, source.row);
                self.at = match self.role {
                    Role::Writer(_) => UpdateSource,
                    Role::Mover if self.mutant == Mutant::DeletedFirst => DeleteSource,
                    Role::Mover => InsertTarget,
                };
            }
            (ReadTarget, _, Some(target)) if self.mutant == Mutant::SourceNotReadAgain => {
                self.at = ReplaceTarget(target.etag, target.row == self.version.1);
            }
            (ReadTarget, Some(source), _) if self.mutant == Mutant::SourceReadFirst => {
                let is_same = source.etag == self.version.0;
                self.at = if is_same { ReadSourceAgain(0, 0) } else { End };
            }
            (ReadSourceAgain(..), _, Some(target)) if self.mutant == Mutant::SourceReadFirst => {
                self.at = ReplaceTarget(target.etag, target.row == self.version.1);
            }
            (ReadTarget, _, Some(target)) => self.at = ReadSourceAgain(target.etag, target.row),
            (ReadTarget, _, None) => self.at = InsertTarget,
            (ReadSourceAgain(target, value), Some(source), _) if source.etag == self.version.0 => {
                let is_equal = value == self.version.1;
                if self.mutant == Mutant::EqualNotWritten && is_equal {
                    self.written();
                } else {
                    self.at = ReplaceTarget(target, is_equal);
                }
            }
            _ => self.end(),
        }
    }

    fn answer(&mut self, answer: Answer) {
        match (self.at, answer) {
            (InsertTarget, Answer::Done(etag)) => {
                self.copy = Some(etag);
                self.written();
            }
            (ReplaceTarget(_, is_equal), Answer::Done(etag)) => {
                let takes_over = is_equal && self.mutant != Mutant::EqualNotTakenOver;
                self.copy = takes_over.then_some(etag);
                self.written();
            }
            // After a lost response, too: what the target has decides.
            (InsertTarget | ReplaceTarget(..), _) => self.at = ReadTarget,
            (DeleteSource, Answer::Done(_)) if self.mutant == Mutant::DeletedFirst => {
                self.at = InsertTarget;
            }
            (DeleteSource, answer) => {
                let is_kept = match answer {
                    Answer::Refused(_, Refusal::Changed) => false,
                    // It may have been deleted, and the copy is all that there is.
                    Answer::Unknown => self.mutant != Mutant::CopyRemovedAfterUnknown,
                    _ => true,
                };
                match self.copy.filter(|_| !is_kept) {
                    Some(copy) => self.at = RemoveCopy(copy),
                    None => self.end(),
                }
            }
            _ => self.end(),
        }
    }

    fn base(&mut self) -> &mut u8 {
        &mut self.base
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Newest {
    /// The value that was written last.
    value: Value,
    /// True if faults may leave an older value in the target.
    has_faults: bool,
}

impl Rules<Key, Value> for Newest {
    fn observe(
        &mut self,
        before: &Rows<Key, Value>,
        after: &Rows<Key, Value>,
    ) -> Result<(), String> {
        let get = |rows: &Rows<Key, Value>, key| rows.get(key).map(|found| found.row);
        let (source, target) = (get(after, Key::Source), get(after, Key::Target));
        if let Some(value) = source
            && get(before, Key::Source) != source
        {
            self.value = value;
        }
        // What the source has is the newest version.
        let value = self.value;
        if source.or(target) == Some(value) {
            return Ok(());
        }
        Err(format!("the value {value} is lost: {target:?} is left"))
    }

    fn end(&self, rows: &Rows<Key, Value>) -> Result<(), String> {
        let get = |key| rows.get(key).map(|found| found.row);
        match (get(Key::Source), get(Key::Target)) {
            (Some(source), Some(target)) if !self.has_faults => {
                Err(format!("the value {target} is left beside {source}"))
            }
            _ => Ok(()),
        }
    }
}

/// The clients, the number of faults, and what an earlier move has left in the target. The source
/// has the value 1.
struct Scenario(&'static [Role], u8, Option<Value>);

const TWO_MOVERS: Scenario = Scenario(&[Role::Mover, Role::Mover, Role::Writer(2)], 2, None);
const NO_FAULTS: Scenario = Scenario(&[Role::Mover, Role::Mover, Role::Writer(2)], 0, None);
const MANY_MOVERS: Scenario = Scenario(
    &[Role::Mover, Role::Mover, Role::Mover, Role::Writer(2)],
    0,
    None,
);
const UPDATED_BACK: Scenario = Scenario(&[Role::Mover, Role::Mover, Role::Writer(2)], 1, Some(2));

fn world(&Scenario(roles, faults, target): &Scenario, mutant: Mutant) -> World<Move> {
    let clients = roles.iter().map(|&role| Move::new(role, mutant));
    let newest = Newest {
        value: 1,
        has_faults: faults > 0,
    };
    let world = World::new(clients.collect(), faults, newest).with(Key::Source, 1);
    match target {
        Some(value) => world.with(Key::Target, value),
        None => world,
    }
}

#[test]
fn the_newest_version_is_in_one_of_two_tables() {
    holds(world(&TWO_MOVERS, Mutant::None));
    holds(world(&UPDATED_BACK, Mutant::None));
}

#[test]
fn movers_beside_a_writer_leave_no_older_version() {
    holds(world(&NO_FAULTS, Mutant::None));
    holds(world(&MANY_MOVERS, Mutant::None));
}

#[test]
fn the_model_finds_each_mutant() {
    let left = "the value 1 is left beside 2";
    for (mutant, scenario, violation) in [
        (Mutant::DeletedFirst, &TWO_MOVERS, "is lost"),
        (Mutant::DeletedUnconditionally, &TWO_MOVERS, "is lost"),
        (Mutant::SourceReadFirst, &TWO_MOVERS, "is lost"),
        (Mutant::SourceNotReadAgain, &TWO_MOVERS, "is lost"),
        (Mutant::EqualNotWritten, &UPDATED_BACK, "is lost"),
        (Mutant::EqualNotTakenOver, &NO_FAULTS, left),
        (Mutant::CopyRemovedUnconditionally, &TWO_MOVERS, "is lost"),
        (Mutant::CopyRemovedAfterUnknown, &TWO_MOVERS, "is lost"),
    ] {
        finds(mutant, world(scenario, mutant), violation);
    }
}
