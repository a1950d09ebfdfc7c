//! The outbox: the steps of a write are stored with it, and are applied to their targets in order,
//! by its writer and by workers.
//!
//! Here, a write has one step, and all steps have one target. The user's own changes do not matter:
//! they are in the same request as the step. Leases are left out: no rule depends on them, and
//! clients that disregard them meet more often.

mod client;
mod history;
mod view;

use super::explore::{self, World, finds, holds};
use client::Outbox;
use history::History;

const POINTERS: u8 = 6;
/// One more than the greatest number of an entry.
const NUMBERS: u8 = 5;

/// Pointers and entries are numbered from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Key {
    Pointer(u8),
    Head,
    Entry(u8),
    Dead(u8),
    Grave(u8),
    Target,
    /// An entity of the user's, which a refused write inserts.
    Entity,
}

impl explore::Key for Key {
    fn ages(self) -> bool {
        matches!(self, Self::Grave(_))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Row {
    Pointer,
    Head(Head),
    Entry(Entry),
    Target(Target),
    Entity,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Head {
    /// The number of the next entry.
    next: u8,
    /// How often entries were set aside or put back.
    moves: u8,
    /// The pointers of all commits, as bits.
    commits: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Entry {
    pointer: u8,
    step: Step,
}

/// A target has two properties; 0 is an absent one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Target {
    stamp: u8,
    properties: (u8, u8),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Step {
    /// Replaces both properties.
    Replace(u8),
    /// Sets the second property.
    Merge(u8),
    Delete,
}

impl Step {
    fn on(self, properties: Option<(u8, u8)>) -> Option<(u8, u8)> {
        match self {
            Self::Replace(value) => Some((value, 0)),
            Self::Merge(value) => Some((properties.map_or(0, |(first, _)| first), value)),
            Self::Delete => None,
        }
    }
}

/// A part of the protocol left out or done otherwise, which the model has to notice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Mutant {
    None,
    PointerAfterCommit,
    PointerBeforeHead,
    PointerNotWrittenAgain,
    UnknownPointerTaken,
    PointerDeletedUnconditionally,
    HeadNotMoved,
    HeadNotInCommit,
    OwnCommitNotSought,
    RefusalNotFenced,
    GravesNotCounted,
    GraveDropped,
    GravesIgnored,
    StampsComparedByGreater,
    TargetUnconditional,
    TargetReadIsBase,
    DeleteBeforeRemoval,
    DeadOvertaken,
    ViewReadOnce,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Writes {
    /// It applies the step after its commit.
    AndDrains,
    /// It leaves the step to workers.
    AndEnds,
    /// Its change of an entity of the user's is refused, unless the deleter was first.
    WhatIsRefused,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Role {
    Writer(Step, Writes),
    Worker {
        sets_aside: bool,
    },
    /// Puts the dead entries back.
    Operator,
    /// Deletes the entity of the user's that refuses a write.
    Deleter,
    /// Drains after all others have ended, for as long as it takes.
    Last,
}

const REPLACE: Step = Step::Replace(1);
const MERGE: Step = Step::Merge(2);
const DELETE: Step = Step::Delete;

const fn writer(step: Step) -> Role {
    Role::Writer(step, Writes::AndDrains)
}

const LATER: Role = Role::Writer(MERGE, Writes::AndEnds);
const REFUSED: Role = Role::Writer(REPLACE, Writes::WhatIsRefused);
const WORKER: Role = Role::Worker { sets_aside: false };
const SETS_ASIDE: Role = Role::Worker { sets_aside: true };

/// Steps that were committed before, clients, and the number of faults.
struct Scenario(&'static [Step], &'static [Role], u8);

const TWO_WRITERS: Scenario = Scenario(&[], &[writer(REPLACE), LATER, WORKER], 0);
const TWO_WRITERS_ALONE: Scenario = Scenario(&[], &[writer(REPLACE), writer(MERGE)], 1);
const ONE_WRITER: Scenario = Scenario(&[], &[writer(REPLACE), WORKER], 2);
const REFUSED_WRITER: Scenario = Scenario(&[], &[REFUSED, Role::Deleter, WORKER], 1);
const REPLACED: Scenario = Scenario(&[REPLACE, MERGE, REPLACE], &[WORKER, WORKER], 2);
const DELETED: Scenario = Scenario(&[REPLACE, MERGE, DELETE], &[WORKER, WORKER], 2);
const DELETED_TWICE: Scenario = Scenario(&[DELETE, REPLACE, DELETE], &[WORKER, WORKER], 1);
const MERGED_AGAIN: Scenario = Scenario(&[REPLACE, DELETE, MERGE], &[WORKER, WORKER], 1);
const SET_ASIDE: Scenario = Scenario(&[REPLACE, MERGE], &[SETS_ASIDE, WORKER], 1);
const PUT_BACK: Scenario = Scenario(&[REPLACE, MERGE], &[SETS_ASIDE, Role::Operator], 1);

/// With a client that drains in the end.
fn world(&Scenario(steps, roles, faults): &Scenario, mutant: Mutant) -> World<Outbox> {
    let owns = (1..).step_by(2);
    let roles = roles.iter().chain([&Role::Last]);
    let clients = owns
        .zip(roles)
        .map(|(own, &role)| Outbox::new(role, own, mutant));
    let world = World::new(clients.collect(), faults, History::new(steps));
    let mut world = world.with(Key::Entity, Row::Entity);
    for (number, &step) in (1..).zip(steps) {
        let pointer = POINTERS;
        let entry = Row::Entry(Entry { pointer, step });
        world = world.with(Key::Pointer(pointer), Row::Pointer);
        let head = Head {
            next: number + 1,
            moves: 0,
            commits: 0,
        };
        world = world.with(Key::Head, Row::Head(head));
        world = world.with(Key::Entry(number), entry);
    }
    world
}

#[test]
fn steps_have_their_effect_once_and_in_order() {
    for scenario in [
        &TWO_WRITERS,
        &TWO_WRITERS_ALONE,
        &ONE_WRITER,
        &REFUSED_WRITER,
        &REPLACED,
        &DELETED,
        &DELETED_TWICE,
        &MERGED_AGAIN,
        &SET_ASIDE,
        &PUT_BACK,
    ] {
        holds(world(scenario, Mutant::None));
    }
}

#[test]
fn the_model_finds_entries_without_a_pointer() {
    for (mutant, scenario, entry) in [
        (Mutant::PointerAfterCommit, &ONE_WRITER, "Entry"),
        (Mutant::PointerBeforeHead, &ONE_WRITER, "Entry"),
        (Mutant::PointerNotWrittenAgain, &ONE_WRITER, "Entry"),
        (Mutant::UnknownPointerTaken, &ONE_WRITER, "Entry"),
        (Mutant::PointerDeletedUnconditionally, &ONE_WRITER, "Entry"),
        (Mutant::HeadNotMoved, &ONE_WRITER, "Entry"),
        (Mutant::HeadNotInCommit, &TWO_WRITERS_ALONE, "Entry"),
        (Mutant::RefusalNotFenced, &REFUSED_WRITER, "Entry"),
        (Mutant::GravesNotCounted, &DELETED, "Grave"),
    ] {
        let violation = format!("no pointer leads to {entry}");
        finds(mutant, world(scenario, mutant), &violation);
    }
}

#[test]
fn the_model_finds_steps_with_another_effect() {
    let twice = "the write of pointer 1 is committed twice";
    for (mutant, scenario, violation) in [
        (Mutant::OwnCommitNotSought, &ONE_WRITER, twice),
        (Mutant::StampsComparedByGreater, &REPLACED, LATE),
        (Mutant::TargetUnconditional, &REPLACED, LATE),
        (Mutant::TargetReadIsBase, &DELETED, LATE_AFTER_DELETE),
        (Mutant::GraveDropped, &DELETED, LATE_AFTER_DELETE),
        (Mutant::DeleteBeforeRemoval, &DELETED, LATE),
        (
            Mutant::GravesIgnored,
            &MERGED_AGAIN,
            "instead of Some((0, 2))",
        ),
        (Mutant::DeadOvertaken, &SET_ASIDE, "instead of Some((1, 2))"),
        (Mutant::ViewReadOnce, &PUT_BACK, "instead of"),
    ] {
        finds(mutant, world(scenario, mutant), violation);
    }
}

const LATE: &str = "has its effect after step";
const LATE_AFTER_DELETE: &str = "has its effect after step 3";
