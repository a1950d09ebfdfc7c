//! The entries of an index in other partitions than their entity: written before the entity, and
//! cleaned up after it.
//!
//! A reader of the index must not miss an entity. It reads the entity of each entry, so an entry
//! that no entity has does no harm, until a repair deletes it.

mod client;
mod rules;

use super::explore::{self, Rows, World, finds, holds};
use client::Index;
use rules::Complete;

/// The indexed values are 1 and 2.
const VALUES: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Key {
    Entity,
    /// The entry for this value.
    Entry(u8),
}

impl explore::Key for Key {
    fn ages(self) -> bool {
        matches!(self, Self::Entry(_))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Row {
    Entity(Entity),
    /// With the property that it repeats, and the id of the last write that had one, or 0.
    Entry(u8, u8),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Entity {
    /// The indexed value.
    value: u8,
    /// The property that the entry repeats.
    column: u8,
}

/// The entity and its ETag.
fn entity(rows: &Rows<Key, Row>) -> Option<(u8, Entity)> {
    let found = rows.get(Key::Entity)?;
    match found.row {
        Row::Entity(entity) => Some((found.etag, entity)),
        Row::Entry(..) => unreachable!("the key is the entity's"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Verb {
    /// Reads the entity, and replaces or inserts it.
    Set(Entity),
    Insert(Entity),
    /// Reads the entity, and deletes it.
    Delete,
    /// Mends the entry of the entity, then deletes entries that no entity has.
    Repair,
    /// Repairs after all others have ended, for as long as it takes.
    Last,
}

/// A part of the protocol left out or done otherwise, which the model has to notice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Mutant {
    None,
    EntriesAfterCommit,
    PauseIgnored,
    PresentNotTouched,
    PresentIsOwn,
    WithoutIds,
    UnknownTouchTaken,
    LostReadAfterCommit,
    LostDeletedUnconditionally,
    RefusedDeletesTouched,
    TouchedIsKnown,
    ReadIsKnown,
    EqualNotTouched,
    InsertNotConfirmed,
    YoungRemoved,
    EntityReadFirst,
}

const fn set(value: u8, column: u8) -> Verb {
    Verb::Set(Entity { value, column })
}

const fn insert(value: u8, column: u8) -> Verb {
    Verb::Insert(Entity { value, column })
}

/// The clients, the number of faults, and whether the entity exists, with the value 1 and the
/// property 1.
struct Scenario(&'static [Verb], u8, bool);

const MOVED_BACK: Scenario = Scenario(&[set(2, 1), set(1, 2)], 1, true);
const MOVED_BACK_AND_REPAIRED: Scenario = Scenario(&[set(2, 1), set(1, 2), Verb::Repair], 0, true);
/// The first client has read the entity before the others.
const MOVED_TWICE: Scenario = Scenario(&[Verb::Delete, set(2, 1), set(1, 2)], 1, true);
const INSERTED_TWICE: Scenario = Scenario(&[insert(1, 1), insert(1, 2)], 1, false);
const DELETED: Scenario = Scenario(&[set(2, 1), Verb::Delete], 1, true);
/// The insert may come after the delete.
const INSERTED_AGAIN: Scenario = Scenario(&[insert(1, 2), Verb::Delete], 1, true);
const INSERTED_TWICE_AND_DELETED: Scenario =
    Scenario(&[insert(1, 1), insert(1, 2), Verb::Delete], 0, false);
const COPIED_AND_BACK: Scenario = Scenario(&[set(1, 2), set(1, 1), set(1, 3)], 0, true);

/// An entity always has its entry, and a repair mends the rest.
const STRICT: Complete = Complete {
    allows_late_insert: false,
    is_repaired: true,
    was_deleted: false,
    written: None,
};
const LATE_INSERT: Complete = Complete {
    allows_late_insert: true,
    ..STRICT
};
const UNREPAIRED: Complete = Complete {
    is_repaired: false,
    ..LATE_INSERT
};

fn world(
    &Scenario(verbs, faults, exists): &Scenario,
    rules: Complete,
    mutant: Mutant,
) -> World<Index> {
    let last = [Verb::Last];
    let last = last.iter().filter(|_| rules.is_repaired);
    let clients = verbs.iter().chain(last).zip(0..);
    let clients = clients.map(|(&verb, number)| Index::new(verb, number, mutant));
    let mut world = World::new(clients.collect(), faults, rules);
    if exists {
        let entity = Entity {
            value: 1,
            column: 1,
        };
        world = world.with(Key::Entry(1), Row::Entry(1, 0));
        world = world.with(Key::Entity, Row::Entity(entity));
    }
    world
}

#[test]
fn an_entity_always_has_its_entry() {
    for (scenario, rules) in [
        (&MOVED_BACK, STRICT),
        (&MOVED_BACK_AND_REPAIRED, STRICT),
        (&DELETED, STRICT),
        (&INSERTED_TWICE, STRICT),
        // Properties are right without a repair, and an insert after a delete is mended by its
        // client.
        (&COPIED_AND_BACK, UNREPAIRED),
        (&INSERTED_TWICE_AND_DELETED, UNREPAIRED),
    ] {
        holds(world(scenario, rules, Mutant::None));
    }
}

#[test]
fn a_late_insert_is_mended() {
    let start = |rules| world(&INSERTED_AGAIN, rules, Mutant::None);
    finds("a late insert", start(STRICT), "has no entry 1");
    holds(start(LATE_INSERT));
}

const MOVED_ALONE: Scenario = Scenario(&[set(2, 1)], 0, true);
const INSERTED_ALONE: Scenario = Scenario(&[set(2, 1)], 0, false);
/// One client, which is not hindered by others.
const ALONE: Complete = Complete {
    written: Some(Entity {
        value: 2,
        column: 1,
    }),
    ..STRICT
};

#[test]
fn an_entity_has_its_entry_where_each_request_comes_twice() {
    for (scenario, rules) in [
        // A client alone also writes the entity.
        (&MOVED_ALONE, ALONE),
        (&INSERTED_ALONE, ALONE),
        (&MOVED_BACK, STRICT),
        (&MOVED_TWICE, STRICT),
        (&INSERTED_TWICE, STRICT),
        (&DELETED, STRICT),
        (&COPIED_AND_BACK, STRICT),
    ] {
        holds(world(scenario, rules, Mutant::None).doubling());
    }
    // Without ids it gives up.
    let mutant = Mutant::WithoutIds;
    let start = world(&MOVED_ALONE, ALONE, mutant).doubling();
    finds(mutant, start, "the entity is");
}

#[test]
fn the_model_finds_each_mutant() {
    for (mutant, scenario) in [
        (Mutant::EntriesAfterCommit, &MOVED_BACK),
        (Mutant::PauseIgnored, &MOVED_BACK),
        (Mutant::PresentNotTouched, &MOVED_BACK),
        // That an entry is there does not show that it was just written.
        (Mutant::PresentIsOwn, &MOVED_BACK),
        (Mutant::UnknownTouchTaken, &MOVED_BACK),
        (Mutant::LostReadAfterCommit, &MOVED_BACK),
        (Mutant::LostDeletedUnconditionally, &MOVED_BACK),
        (Mutant::RefusedDeletesTouched, &INSERTED_TWICE),
        (Mutant::TouchedIsKnown, &MOVED_BACK),
        (Mutant::ReadIsKnown, &MOVED_TWICE),
        (Mutant::YoungRemoved, &MOVED_BACK_AND_REPAIRED),
        (Mutant::EntityReadFirst, &MOVED_BACK_AND_REPAIRED),
    ] {
        finds(mutant, world(scenario, STRICT, mutant), "has no entry");
    }
    for (mutant, scenario, violation) in [
        (Mutant::EqualNotTouched, &COPIED_AND_BACK, "entry 1 is"),
        (
            Mutant::InsertNotConfirmed,
            &INSERTED_TWICE_AND_DELETED,
            "entry 1 is None",
        ),
    ] {
        finds(mutant, world(scenario, UNREPAIRED, mutant), violation);
    }
}
