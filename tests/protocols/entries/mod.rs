//! The entries of an index in other partitions than their entity: written before the entity, and cleaned up after it.
//!
//! A reader of the index must not miss an entity. It reads the entity of each entry, so an entry that no entity has does no harm, until
//! a repair deletes it.

mod client;
mod rules;

use super::explore::{self, Rows, World, explore};
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

/// The clients, the number of faults, and whether the entity exists, with the value 1 and the property 1.
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

fn run(scenario: &Scenario, rules: Complete, mutant: Mutant) -> Result<usize, String> {
    explore(world(scenario, rules, mutant))
}

fn world(
    &Scenario(verbs, faults, exists): &Scenario,
    rules: Complete,
    mutant: Mutant,
) -> World<Index> {
    let last = [Verb::Last];
    let last = last.iter().filter(|_| rules.is_repaired);
    let clients = verbs.iter().chain(last);
    let clients = clients.zip(0..);
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

fn holds(scenario: &Scenario, rules: Complete) {
    let result = run(scenario, rules, Mutant::None);
    let states = result.unwrap_or_else(|violation| panic!("{violation}"));
    println!("{states} states");
}

/// Shows that the model notices the mutant, by a violation that contains this string.
fn finds(mutant: Mutant, scenario: &Scenario, rules: Complete, violation: &str) {
    let found = run(scenario, rules, mutant).expect_err("the fault is found");
    assert!(found.contains(violation), "{found}");
    println!("{found}");
}

#[test]
fn an_entity_that_gains_and_loses_an_entry_has_it() {
    holds(&MOVED_BACK, STRICT);
    holds(&MOVED_BACK_AND_REPAIRED, STRICT);
}

#[test]
fn an_entity_that_is_deleted_has_its_entry() {
    holds(&DELETED, STRICT);
}

#[test]
fn an_entity_that_is_inserted_twice_has_its_entry() {
    holds(&INSERTED_TWICE, STRICT);
}

#[test]
fn properties_are_right_without_a_repair() {
    holds(&COPIED_AND_BACK, UNREPAIRED);
}

#[test]
fn a_late_insert_is_mended() {
    finds(Mutant::None, &INSERTED_AGAIN, STRICT, "has no entry 1");
    holds(&INSERTED_AGAIN, LATE_INSERT);
}

#[test]
fn an_insert_after_a_delete_is_mended_by_its_client() {
    holds(&INSERTED_TWICE_AND_DELETED, UNREPAIRED);
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
fn a_client_writes_an_entity_with_its_entry_where_each_request_comes_twice() {
    for scenario in [&MOVED_ALONE, &INSERTED_ALONE] {
        let world = world(scenario, ALONE, Mutant::None).doubling();
        let states = explore(world).unwrap_or_else(|violation| panic!("{violation}"));
        println!("{states} states");
    }
}

#[test]
fn an_entity_has_its_entry_where_each_request_comes_twice() {
    for scenario in [
        &MOVED_BACK,
        &MOVED_TWICE,
        &INSERTED_TWICE,
        &DELETED,
        &COPIED_AND_BACK,
    ] {
        let world = world(scenario, STRICT, Mutant::None).doubling();
        let states = explore(world).unwrap_or_else(|violation| panic!("{violation}"));
        println!("{states} states");
    }
}

#[test]
fn the_model_finds_that_a_client_gives_up_without_ids() {
    let world = world(&MOVED_ALONE, ALONE, Mutant::WithoutIds).doubling();
    let found = explore(world).expect_err("the fault is found");
    assert!(found.contains("the entity is"), "{found}");
}

/// That an entry is there does not show that it was just written.
#[test]
fn the_model_finds_a_present_entry_taken_for_its_own() {
    finds(Mutant::PresentIsOwn, &MOVED_BACK, STRICT, "has no entry");
}

#[test]
fn the_model_finds_entries_after_the_commit() {
    finds(
        Mutant::EntriesAfterCommit,
        &MOVED_BACK,
        STRICT,
        "has no entry",
    );
}

#[test]
fn the_model_finds_a_pause_before_the_commit_ignored() {
    finds(Mutant::PauseIgnored, &MOVED_BACK, STRICT, "has no entry");
}

#[test]
fn the_model_finds_a_present_entry_not_touched() {
    finds(
        Mutant::PresentNotTouched,
        &MOVED_BACK,
        STRICT,
        "has no entry",
    );
}

#[test]
fn the_model_finds_a_lost_entry_read_after_the_commit() {
    finds(
        Mutant::LostReadAfterCommit,
        &MOVED_BACK,
        STRICT,
        "has no entry",
    );
}

#[test]
fn the_model_finds_a_lost_entry_deleted_without_condition() {
    finds(
        Mutant::LostDeletedUnconditionally,
        &MOVED_BACK,
        STRICT,
        "has no entry",
    );
}

#[test]
fn the_model_finds_a_touched_entry_deleted_after_a_refusal() {
    finds(
        Mutant::RefusedDeletesTouched,
        &INSERTED_TWICE,
        STRICT,
        "has no entry",
    );
}

#[test]
fn the_model_finds_a_touched_entry_deleted_after_an_ambiguous_outcome() {
    finds(Mutant::TouchedIsKnown, &MOVED_BACK, STRICT, "has no entry");
}

#[test]
fn the_model_finds_equal_properties_not_written() {
    finds(
        Mutant::EqualNotTouched,
        &COPIED_AND_BACK,
        UNREPAIRED,
        "entry 1 is",
    );
}

#[test]
fn the_model_finds_an_insert_not_confirmed() {
    finds(
        Mutant::InsertNotConfirmed,
        &INSERTED_TWICE_AND_DELETED,
        UNREPAIRED,
        "entry 1 is None",
    );
}

#[test]
fn the_model_finds_a_young_entry_removed() {
    finds(
        Mutant::YoungRemoved,
        &MOVED_BACK_AND_REPAIRED,
        STRICT,
        "has no entry",
    );
}

#[test]
fn the_model_finds_an_entity_read_before_its_entry() {
    finds(
        Mutant::EntityReadFirst,
        &MOVED_BACK_AND_REPAIRED,
        STRICT,
        "has no entry",
    );
}

#[test]
fn the_model_finds_a_read_entry_deleted_after_an_ambiguous_outcome() {
    finds(Mutant::ReadIsKnown, &MOVED_TWICE, STRICT, "has no entry");
}

#[test]
fn the_model_finds_an_unknown_touch_taken_for_done() {
    finds(
        Mutant::UnknownTouchTaken,
        &MOVED_BACK,
        STRICT,
        "has no entry",
    );
}
