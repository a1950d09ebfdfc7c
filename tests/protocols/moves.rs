//! `move_to` and `move_key`: an entity is written into another table, or under another key, and
//! then deleted where it was.
//!
//! The rule is that the newest version of the entity is always in one of the places. Where no fault
//! happens, it is in one place at the end, and no older version is in another.
//!
//! Movers of `move_key` may have different targets, so they must know who has deleted the entity:
//! the delete has a marker.

use super::explore::{
    self, Answer, Change, Client, Next, Refusal, Rows, Rules, World, finds, holds,
};
use At::{
    CompareSource, Decide, DeleteSource, End, InsertTarget, ReadSource, ReadSourceAgain,
    ReadTarget, RemoveCopy, ReplaceTarget, UpdateSource,
};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Key {
    Source,
    Target,
    /// The target of another mover.
    Other,
    /// The marker of the delete of a mover.
    Marker(u8),
}

const PLACES: [Key; 3] = [Key::Source, Key::Target, Key::Other];

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
    GoneByItself,
    GoneByOthers,
    EqualRemovedWhenGone,
    NotDecided,
    EqualRemovedUnread,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Role {
    /// Moves the entity, and writes over what the target has.
    Mover,
    /// Moves the entity to a key, where another entity is written over. It has a marker of that
    /// number.
    ToKey(Key, u8),
    /// Moves the entity from the target to the source, with a marker of that number.
    Back(u8),
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
    /// Before an equal copy is removed.
    CompareSource,
    /// The marker shows whether the source was deleted.
    Decide,
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
    /// True if it had an equal one.
    was_equal: bool,
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
            was_equal: false,
            mutant,
        }
    }

    const fn source(&self) -> Key {
        match self.role {
            Role::Back(_) => Key::Target,
            Role::Mover | Role::ToKey(..) | Role::Writer(_) => Key::Source,
        }
    }

    const fn target(&self) -> Key {
        match self.role {
            Role::ToKey(target, _) => target,
            Role::Back(_) => Key::Source,
            Role::Mover | Role::Writer(_) => Key::Target,
        }
    }

    /// The marker of the delete.
    fn marker(&self) -> Option<Key> {
        match self.role {
            Role::ToKey(..) | Role::Back(_)
                if matches!(self.mutant, Mutant::GoneByItself | Mutant::GoneByOthers) =>
            {
                None
            }
            Role::ToKey(_, number) | Role::Back(number) => Some(Key::Marker(number)),
            Role::Mover | Role::Writer(_) => None,
        }
    }

    /// The version was not deleted at the source.
    fn withdraw(&mut self) {
        match self.copy {
            Some(copy) => self.at = RemoveCopy(copy),
            None => self.end(),
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
            ReadSource | ReadTarget | ReadSourceAgain(..) | CompareSource => {
                return vec![Next::Read];
            }
            InsertTarget => Change::Insert(self.target(), value),
            ReplaceTarget(target, _) => Change::Replace(self.target(), value, target),
            Decide => Change::Insert(self.marker().expect("it has one"), 0),
            DeleteSource if mutant == Mutant::DeletedUnconditionally => {
                Change::Delete(self.source(), None)
            }
            DeleteSource => {
                let delete = Change::Delete(self.source(), Some(etag));
                let marker = self.marker().map(|marker| Change::Insert(marker, 0));
                return vec![Next::Send(marker.into_iter().chain([delete]).collect())];
            }
            RemoveCopy(_) if mutant == Mutant::CopyRemovedUnconditionally => {
                Change::Delete(self.target(), None)
            }
            RemoveCopy(copy) => Change::Delete(self.target(), Some(copy)),
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
        let source = rows.get(self.source());
        let target = rows.get(self.target());
        match (self.at, source, target) {
            (ReadSource, Some(source), _) => {
                self.version = (source.etag, source.row);
                self.at = match self.role {
                    Role::Writer(_) => UpdateSource,
                    Role::Mover if self.mutant == Mutant::DeletedFirst => DeleteSource,
                    Role::Mover | Role::ToKey(..) | Role::Back(_) => InsertTarget,
                };
            }
            (CompareSource, Some(source), _) if source.row != self.version.1 => self.withdraw(),
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
                self.was_equal = is_equal;
                self.written();
            }
            // After a lost response, too: what the target has decides.
            (InsertTarget | ReplaceTarget(..), _) => self.at = ReadTarget,
            (DeleteSource, Answer::Done(_)) if self.mutant == Mutant::DeletedFirst => {
                self.at = InsertTarget;
            }
            (DeleteSource, Answer::Unknown)
                if self.marker().is_some() && self.mutant != Mutant::NotDecided =>
            {
                self.at = Decide;
            }
            // It has met its own marker.
            (DeleteSource, Answer::Refused(0, Refusal::Exists)) => self.end(),
            // Not carried out, and never will be.
            (Decide, Answer::Done(_)) if !self.was_equal => self.withdraw(),
            (DeleteSource, answer) => {
                let by_key = matches!(self.role, Role::ToKey(..) | Role::Back(_));
                let is_kept = match answer {
                    Answer::Refused(_, Refusal::Missing) if by_key => match self.mutant {
                        Mutant::GoneByItself => true,
                        Mutant::EqualRemovedWhenGone => false,
                        _ => self.was_equal,
                    },
                    Answer::Unknown if self.mutant == Mutant::NotDecided => false,
                    Answer::Refused(_, Refusal::Changed) => false,
                    // It may have been deleted, and the copy is all that there is.
                    Answer::Unknown => self.mutant != Mutant::CopyRemovedAfterUnknown,
                    _ => true,
                };
                if is_kept {
                    self.end();
                } else if self.was_equal
                    && matches!(answer, Answer::Refused(_, Refusal::Changed))
                    && self.mutant != Mutant::EqualRemovedUnread
                {
                    self.at = CompareSource;
                } else {
                    self.withdraw();
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
        let source = get(after, Key::Source);
        if let Some(value) = source
            && get(before, Key::Source) != source
        {
            self.value = value;
        }
        // What the source has is the newest version.
        let value = self.value;
        if PLACES.iter().any(|&place| get(after, place) == Some(value)) {
            return Ok(());
        }
        let left = PLACES.map(|place| get(after, place));
        Err(format!("the value {value} is lost: {left:?} is left"))
    }

    fn end(&self, rows: &Rows<Key, Value>) -> Result<(), String> {
        let found = PLACES.iter().filter_map(|&place| rows.get(place));
        let found: Vec<_> = found.map(|found| found.row).collect();
        match found[..] {
            [first, second, ..] if !self.has_faults => {
                Err(format!("the value {second} is left beside {first}"))
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

/// Two keys to which an entity is moved at the same time.
const TWO_KEYS: &[Role] = &[
    Role::ToKey(Key::Target, 0),
    Role::ToKey(Key::Other, 1),
    Role::Writer(2),
];
const ONE_KEY: &[Role] = &[
    Role::ToKey(Key::Target, 0),
    Role::ToKey(Key::Target, 1),
    Role::Writer(2),
];

/// One entity is under both keys, and two clients finish different moves.
const OPPOSITE: &[Role] = &[Role::ToKey(Key::Target, 0), Role::Back(1)];

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
fn the_newest_version_is_under_one_of_three_keys() {
    holds(world(&Scenario(TWO_KEYS, 1, None), Mutant::None));
    holds(world(&Scenario(ONE_KEY, 1, None), Mutant::None));
    holds(world(&Scenario(OPPOSITE, 1, None), Mutant::None));
    holds(world(&Scenario(OPPOSITE, 1, Some(1)), Mutant::None));
}

#[test]
fn movers_to_different_keys_leave_one_entity() {
    holds(world(&Scenario(TWO_KEYS, 0, None), Mutant::None));
    holds(world(&Scenario(ONE_KEY, 0, None), Mutant::None));
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
    for (mutant, roles, faults, violation) in [
        (Mutant::GoneByItself, TWO_KEYS, 0, "is left beside"),
        (Mutant::GoneByOthers, TWO_KEYS, 1, "is lost"),
        (Mutant::EqualRemovedWhenGone, ONE_KEY, 0, "is lost"),
        (Mutant::NotDecided, TWO_KEYS, 1, "is lost"),
        (Mutant::EqualRemovedUnread, OPPOSITE, 0, "is lost"),
    ] {
        let left = (mutant == Mutant::EqualRemovedUnread).then_some(1);
        let scenario = Scenario(roles, faults, left);
        finds(mutant, world(&scenario, mutant), violation);
    }
}
