//! The entries of a unique index in other partitions than their entities: each is reserved, the
//! entity is written, and the entry is confirmed.
//!
//! No two stored entities have one value, and a stored entity has its entry at any time. A ticket
//! in the partition of the entity makes this certain: the write of the entity deletes it, so a
//! client that deletes it first has stopped that write for ever.

mod client;
mod rules;

use super::explore::{self, Rows, World, finds, holds};
use client::Claim;
use rules::Unique;

/// The indexed values are 1 and 2.
const VALUES: u8 = 2;
/// The entities are 0 and 1.
const ENTITIES: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Key {
    Entity(u8),
    Ticket(u8),
    /// The entry for this value.
    Entry(u8),
}

impl explore::Key for Key {
    fn ages(self) -> bool {
        false
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Row {
    /// With its value.
    Entity(u8),
    Ticket,
    /// The entity that it names, and the ticket of the write that has not confirmed it.
    Entry(u8, Option<u8>),
}

/// An entity as it was read: its ETag and its value.
fn entity(rows: &Rows<Key, Row>, entity: u8) -> Option<(u8, u8)> {
    let found = rows.get(Key::Entity(entity))?;
    match found.row {
        Row::Entity(value) => Some((found.etag, value)),
        row => unreachable!("{row:?} is no entity"),
    }
}

/// An entry as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Seen {
    etag: u8,
    owner: u8,
    ticket: Option<u8>,
}

fn entry(rows: &Rows<Key, Row>, value: u8) -> Option<Seen> {
    let found = rows.get(Key::Entry(value))?;
    match found.row {
        Row::Entry(owner, ticket) => Some(Seen {
            etag: found.etag,
            owner,
            ticket,
        }),
        row => unreachable!("{row:?} is no entry"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Verb {
    /// Inserts the entity with the value.
    Insert(u8, u8),
    /// Reads the entity, and replaces it: another value is gained, the same is kept.
    Set(u8, u8),
    /// Reads the entity, and deletes it.
    Delete(u8),
    /// Deletes the entry of this value if its entity does not have it.
    Repair(u8),
    /// Repairs after all others have ended, for as long as it takes.
    Last,
}

/// A part of the protocol left out or done otherwise, which the model has to notice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Mutant {
    None,
    CommitWithoutTicket,
    TicketAfterReservation,
    TicketUsedUnconditionally,
    TakenWithoutFence,
    TakenWithoutSecondRead,
    FencedAfterSecondRead,
    TakenUnconditionally,
    EntryAloneIsConflict,
    ConfirmedUnconditionally,
    ReleasedUnconditionally,
    ReleasedAsReadAfterCommit,
    KeptTicketIgnored,
    SettledWithoutFence,
    WithdrawnUnconditionally,
    RepairedWithoutFence,
}

/// The clients, the number of faults, and what is stored.
struct Scenario(&'static [Verb], u8, &'static [(Key, Row)]);

const NOTHING: &[(Key, Row)] = &[];
const STORED: &[(Key, Row)] = &[
    (Key::Entity(0), Row::Entity(1)),
    (Key::Entry(1), Row::Entry(0, None)),
];
/// A client has stopped before it has written the entity 1.
const RESERVED: &[(Key, Row)] = &[
    (Key::Ticket(9), Row::Ticket),
    (Key::Entry(1), Row::Entry(1, Some(9))),
];
/// A client has stopped before it has confirmed the entry.
const UNCONFIRMED: &[(Key, Row)] = &[
    (Key::Entity(0), Row::Entity(1)),
    (Key::Entry(1), Row::Entry(0, Some(9))),
];
/// A program that does not know the index has written the entity.
const UNINDEXED: &[(Key, Row)] = &[(Key::Entity(0), Row::Entity(1))];

use Verb::{Delete, Insert, Repair, Set};

const TWO_OWNERS: Scenario = Scenario(&[Insert(0, 1), Insert(1, 1)], 1, NOTHING);
const INSERTED_TWICE: Scenario = Scenario(&[Insert(0, 1), Insert(0, 1)], 1, NOTHING);
const PASSED_ON: Scenario = Scenario(&[Set(0, 2), Insert(1, 1)], 1, STORED);
const DELETED: Scenario = Scenario(&[Delete(0), Insert(1, 1)], 1, STORED);
const INSERTED_AGAIN: Scenario = Scenario(&[Delete(0), Insert(0, 1)], 1, STORED);
const KEPT: Scenario = Scenario(&[Set(0, 1), Insert(1, 1)], 1, STORED);
const REPAIRED: Scenario = Scenario(&[Insert(0, 1), Repair(1)], 1, NOTHING);
const MENDED: Scenario = Scenario(&[Set(0, 1), Delete(0)], 1, UNINDEXED);
const INSERTED_AND_DELETED: Scenario = Scenario(&[Insert(0, 1), Delete(0)], 1, UNINDEXED);
const KEPT_UNCONFIRMED: Scenario = Scenario(&[Set(0, 1), Delete(0)], 1, UNCONFIRMED);
const ALL: [&Scenario; 10] = [
    &TWO_OWNERS,
    &INSERTED_TWICE,
    &PASSED_ON,
    &DELETED,
    &INSERTED_AGAIN,
    &KEPT,
    &REPAIRED,
    &MENDED,
    &INSERTED_AND_DELETED,
    &KEPT_UNCONFIRMED,
];

/// Three clients, in a network without faults.
const PASSED_BACK: Scenario = Scenario(&[Delete(0), Insert(1, 1), Insert(0, 1)], 0, STORED);
const SWAPPED_AND_REPAIRED: Scenario =
    Scenario(&[Insert(0, 1), Insert(1, 1), Repair(1)], 0, NOTHING);
const DELETED_BETWEEN: Scenario = Scenario(&[Insert(0, 1), Insert(0, 1), Delete(0)], 0, NOTHING);

const PASSED_ON_AT_ONCE: Scenario = Scenario(&[Insert(0, 1), Delete(0), Insert(1, 1)], 0, NOTHING);
const RESERVATION_TAKEN: Scenario = Scenario(&[Insert(0, 1), Insert(1, 1)], 0, RESERVED);

/// One client, which is not hindered by others.
const OVER_RESERVATION: Scenario = Scenario(&[Insert(0, 1)], 0, RESERVED);
const MOVED_ALONE: Scenario = Scenario(&[Set(0, 2)], 0, STORED);

fn world(&Scenario(verbs, faults, stored): &Scenario, mutant: Mutant) -> World<Claim> {
    let clients = verbs.iter().chain(&[Verb::Last]).zip(0..);
    let clients = clients.map(|(&verb, number)| Claim::new(verb, number, mutant));
    let rules = Unique {
        is_indexed: stored != UNINDEXED,
        written: match (verbs, faults) {
            ([Insert(entity, value) | Set(entity, value)], 0) => Some((*entity, *value)),
            _ => None,
        },
    };
    let world = World::new(clients.collect(), faults, rules);
    let stored = stored.iter();
    stored.fold(world, |world, &(key, row)| world.with(key, row))
}

#[test]
fn one_entity_has_a_value_and_has_its_entry() {
    for scenario in ALL {
        holds(world(scenario, Mutant::None));
    }
    for scenario in [
        &PASSED_BACK,
        &SWAPPED_AND_REPAIRED,
        &DELETED_BETWEEN,
        &RESERVATION_TAKEN,
    ] {
        holds(world(scenario, Mutant::None));
    }
}

#[test]
fn one_entity_has_a_value_where_each_request_comes_twice() {
    for scenario in ALL.into_iter().chain([&OVER_RESERVATION, &MOVED_ALONE]) {
        holds(world(scenario, Mutant::None).doubling());
    }
}

#[test]
fn a_reservation_blocks_no_value() {
    for scenario in [&OVER_RESERVATION, &MOVED_ALONE] {
        holds(world(scenario, Mutant::None));
    }
    let mutant = Mutant::EntryAloneIsConflict;
    finds(mutant, world(&OVER_RESERVATION, mutant), "is not written");
}

#[test]
fn the_model_finds_each_mutant() {
    for (mutant, scenario) in [
        (Mutant::CommitWithoutTicket, &TWO_OWNERS),
        (Mutant::TicketAfterReservation, &TWO_OWNERS),
        (Mutant::TicketUsedUnconditionally, &TWO_OWNERS),
        (Mutant::TakenWithoutFence, &TWO_OWNERS),
        (Mutant::TakenWithoutSecondRead, &TWO_OWNERS),
        (Mutant::FencedAfterSecondRead, &TWO_OWNERS),
        (Mutant::TakenUnconditionally, &RESERVATION_TAKEN),
        (Mutant::ConfirmedUnconditionally, &PASSED_ON_AT_ONCE),
        (Mutant::ReleasedUnconditionally, &DELETED),
        (Mutant::ReleasedAsReadAfterCommit, &INSERTED_AGAIN),
        (Mutant::KeptTicketIgnored, &INSERTED_AND_DELETED),
        (Mutant::SettledWithoutFence, &REPAIRED),
        (Mutant::WithdrawnUnconditionally, &TWO_OWNERS),
        (Mutant::RepairedWithoutFence, &REPAIRED),
    ] {
        finds(mutant, world(scenario, mutant), "has no entry");
    }
}
