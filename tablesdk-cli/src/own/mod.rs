//! The entities that the client stores in tables for its own purposes, next to those of programs:
//! which of them go along, and which stay behind.
//!
//! The guide to stored forms describes it. This module knows neither files nor requests.

use serde::{Deserialize, Serialize};
use tablesdk::entity::{EntityError, PropertyReader, PropertyWriter, Schema, Standalone};
use tablesdk::key::EntityKey;
use tablesdk::{DynamicEntity, Guid, TableEntity, WritableEntity};

mod kept;
pub mod outbox;

pub use kept::{EntrySearch, Kept, MARKS};
pub(crate) use kept::{INDEX, RESERVED};

/// How many of the entities are those that the client stores for purposes of its own.
///
/// They go along, so that a copy delivers the same messages and removes the same expired entities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OwnEntities {
    /// Messages of outboxes that wait for a worker, or are poisoned.
    pub messages: u64,
    /// Other steps of outboxes that wait for a worker, or are poisoned.
    pub steps: u64,
    /// Entities that number the steps of a partition, lead workers to them, or remember a delete
    /// step for an hour.
    pub outboxes: u64,
    /// Entries of the buckets in which expired entities are found.
    pub expiry_entries: u64,
}

/// How many entities that the client stores for purposes of its own stay behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LeftBehind {
    /// Markers of `exactly_once`: evidence for a client of this account that waits for the outcome
    /// of a write.
    pub markers: u64,
    /// Intents of writes of wide entities, of which a copy cannot know whether they go on. A
    /// clean-up by one that was copied in the middle of such a write would delete siblings of an
    /// entity that a later copy has completed.
    pub wide_intents: u64,
    /// Steps of transactions that were committed while the tables were read, after the head of
    /// their outbox was read. The next commit of a copy with them would use their numbers again.
    pub late_steps: u64,
}

impl OwnEntities {
    /// Counts an entity that goes along.
    pub(crate) fn count(&mut self, entity: &DynamicEntity) {
        match Kind::of(entity) {
            Kind::Message => self.messages += 1,
            Kind::Step => self.steps += 1,
            Kind::OfOutbox => self.outboxes += 1,
            Kind::ExpiryEntry => self.expiry_entries += 1,
            Kind::Marker | Kind::OfProgram | Kind::WideIntent => {}
        }
    }
}

/// Decides of the entities of a table, in their order, which ones go along.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Selector {
    pub(crate) own: OwnEntities,
    pub(crate) left: LeftBehind,
    /// The partition of the last head of an outbox, and the number of the next step in it.
    head: Option<(String, i64)>,
}

impl Selector {
    pub(crate) fn begin_table(&mut self) {
        self.head = None;
    }

    /// Returns true if an entity goes along, and counts it.
    pub(crate) fn takes(&mut self, entity: &DynamicEntity) -> bool {
        match Kind::of(entity) {
            Kind::Marker => self.left.markers += 1,
            Kind::WideIntent => self.left.wide_intents += 1,
            Kind::Message | Kind::Step if self.is_late(entity) => self.left.late_steps += 1,
            _ => {
                if entity.row_key() == HEAD
                    && let Ok(next) = entity.properties().read(NEXT)
                {
                    self.head = Some((entity.partition_key().to_owned(), next));
                }
                self.own.count(entity);
                return true;
            }
        }
        false
    }

    /// Returns true if the head, which was read before, does not know the number of a step yet.
    fn is_late(&self, step: &DynamicEntity) -> bool {
        let number = step.row_key().strip_prefix(LOG).map(str::parse::<i64>);
        let (Some(Ok(number)), Some((partition, next))) = (number, &self.head) else {
            return false;
        };
        partition == step.partition_key() && number >= *next
    }
}

/// The purpose of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    OfProgram,
    Message,
    Step,
    OfOutbox,
    ExpiryEntry,
    Marker,
    WideIntent,
}

impl Kind {
    fn of(entity: &DynamicEntity) -> Self {
        let row_key = entity.row_key();
        if row_key.starts_with(LOG) || row_key.starts_with(DEAD) {
            let step: Result<String, _> = entity.properties().read(STEP);
            return match step.as_deref() {
                Ok(MESSAGE) => Self::Message,
                _ => Self::Step,
            };
        }
        let is_marker = |id: &str| id.parse::<Guid>().is_ok();
        match row_key {
            _ if row_key.starts_with(OUTBOX) => Self::OfOutbox,
            _ if row_key.starts_with(EXPIRY) => Self::ExpiryEntry,
            _ if row_key.starts_with(WIDE) => Self::WideIntent,
            _ if row_key.strip_prefix(MARKER).is_some_and(is_marker) => Self::Marker,
            _ => Self::OfProgram,
        }
    }
}

/// The entity as one that is put into a table anew. No step of an outbox has written it: else the
/// worker that removes what came back after a delete step would delete an entity that was restored.
pub fn renewed(mut entity: DynamicEntity) -> DynamicEntity {
    if Kind::of(&entity) == Kind::OfProgram {
        entity.properties_mut().remove(STEP_OF);
    }
    entity
}

/// An entity, exactly as it is stored. Queries of it also return what the client stores for
/// purposes of its own.
#[derive(Clone, Debug)]
pub struct AsStored(pub DynamicEntity);

impl TableEntity for AsStored {
    type Columns = <DynamicEntity as TableEntity>::Columns;

    const SCHEMA: Schema = DynamicEntity::SCHEMA;
    const IS_VERBATIM: bool = true;

    fn columns() -> Self::Columns {
        DynamicEntity::columns()
    }

    fn read(reader: &mut PropertyReader<'_, '_>) -> Result<Self, EntityError> {
        DynamicEntity::read(reader).map(Self)
    }
}

impl WritableEntity for AsStored {
    fn entity_key(&self) -> Result<EntityKey, EntityError> {
        self.0.entity_key()
    }

    fn write(&self, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError> {
        self.0.write(writer)
    }
}

impl Standalone for AsStored {}

const OUTBOX: &str = "~tablesdk.outbox.";
const HEAD: &str = "~tablesdk.outbox.head";
const LOG: &str = "~tablesdk.outbox.log.";
const DEAD: &str = "~tablesdk.outbox.dead.";
const EXPIRY: &str = "~tablesdk.expiry.";
const WIDE: &str = "~tablesdk.wide.";
const MARKER: &str = "~tablesdk.once.";
const NEXT: &str = "TablesdkNext";
const STEP: &str = "TablesdkStep";
const STEP_OF: &str = "TablesdkStepOf";
const MESSAGE: &str = "message";
