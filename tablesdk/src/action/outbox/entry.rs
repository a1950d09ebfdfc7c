//! The entries of an outbox as they are stored: their keys and properties.

use tablesdk_protocol::{ETag, EntityKey, IfMatch, PartitionKey, TableName, Timestamp, Value};

use super::view::Row;
use crate::action::EncodedEntity;
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::reserved::OUTBOX;
pub(super) use crate::entity::STEP_OF as STAMP;
use crate::entity::write_values;
use crate::error::Error;

/// What an entry asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Delete,
    Merge,
    Message,
    Replace,
    /// Of a later version of this client.
    Unknown,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Merge => "upsert_merge",
            Self::Message => "message",
            Self::Replace => "upsert_replace",
            Self::Unknown => "unknown",
        }
    }

    fn read(text: Option<&str>) -> Self {
        let kinds = [Self::Delete, Self::Merge, Self::Message, Self::Replace];
        let known = kinds.into_iter().find(|kind| text == Some(kind.as_str()));
        known.unwrap_or(Self::Unknown)
    }

    /// The operation in an error of the step.
    pub(super) const fn operation(self) -> &'static str {
        match self {
            Self::Delete => "delete step",
            Self::Merge => "upsert_merge step",
            Self::Message => "message step",
            Self::Replace => "upsert_replace step",
            Self::Unknown => "unknown step",
        }
    }
}

/// Which state an entry is in; its row key says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Set aside.
    Dead,
    /// To be applied.
    Logged,
    /// A delete step that was applied, and is looked at once more.
    Removed,
}

impl State {
    /// The states after `Dead` are read together with the head, whose row key sorts between them.
    pub(super) fn prefix(self) -> String {
        let state = match self {
            Self::Dead => "dead",
            Self::Logged => "log",
            Self::Removed => "removed",
        };
        format!("{OUTBOX}{state}.")
    }
}

/// An entry of an outbox.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) kind: Kind,
    pub(super) etag: ETag,
    pub(super) written: Option<Timestamp>,
    /// The id of the write that committed it, which its pointer has.
    pub(super) pointer: String,
    pub(super) attempts: i32,
    key: EntityKey,
    values: Vec<(String, Value)>,
}

/// The entity that a step changes. Names of tables are compared without regard to case.
pub(super) type Target = (String, String, String);

impl Entry {
    /// `None` where it is no entry in this state.
    pub(super) fn read(state: State, row: Row) -> Option<Self> {
        let number = row.key.row_key().as_str().strip_prefix(&state.prefix())?;
        let mut entry = Self {
            number: number.parse().ok()?,
            kind: Kind::Unknown,
            etag: row.etag,
            written: row.timestamp,
            pointer: String::new(),
            attempts: 0,
            key: row.key,
            values: row.values,
        };
        entry.kind = Kind::read(entry.text(STEP));
        entry.pointer = entry.text(POINTER)?.to_owned();
        if let Some(Value::Int32(attempts)) = entry.value(ATTEMPTS) {
            entry.attempts = *attempts;
        }
        Some(entry)
    }

    fn value(&self, name: &str) -> Option<&Value> {
        let mut values = self.values.iter();
        values
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn target(&self) -> Option<Target> {
        let text = |name| self.text(name).map(str::to_owned);
        let table = text(TABLE)?.to_ascii_lowercase();
        Some((table, text(PARTITION_KEY)?, text(ROW_KEY)?))
    }

    /// The table and the key of the entity that the step changes.
    pub(super) fn target_key(&self) -> Option<(TableName, EntityKey)> {
        let table = TableName::new(self.text(TABLE)?).ok()?;
        let key = EntityKey::new(self.text(PARTITION_KEY)?, self.text(ROW_KEY)?).ok()?;
        Some((table, key))
    }

    /// The properties of the entity that the step writes, and its stamp.
    pub(super) fn content(&self) -> Vec<(String, Value)> {
        let mut values = self.values.clone();
        values.retain(|(name, _)| !is_own(name) || name == STAMP);
        values
    }

    /// Whether an entity with this stamp has the effect of this step, or of a later one of the same outbox.
    pub(super) fn is_applied_in(&self, stamp: Option<&str>) -> bool {
        self.order_of(stamp)
            .is_some_and(|number| number >= self.number)
    }

    /// The number in a stamp, if it is of the same outbox.
    pub(super) fn order_of(&self, stamp: Option<&str>) -> Option<u64> {
        let (stream, number) = stamp?.rsplit_once('.')?;
        let (own, _) = self.text(STAMP)?.rsplit_once('.')?;
        (stream == own).then(|| number.parse().ok()).flatten()
    }

    /// Merges these properties into the entry, if it is as it was read.
    pub(super) fn merge(
        &self,
        table: &TableName,
        values: &[(String, Value)],
    ) -> Result<EntityChange, Error> {
        let if_match = Some(IfMatch::ETag(self.etag.clone()));
        let kind = ChangeKind::Update(
            tablesdk_protocol::operation::update_entity::Mode::Merge,
            if_match,
        );
        change(table, &self.key, kind, values)
    }

    /// Removes the entry.
    pub(super) fn delete(&self, table: &TableName, if_match: IfMatch) -> EntityChange {
        let entity = EncodedEntity::of_key(self.key.clone());
        EntityChange::of(table.clone(), ChangeKind::Delete(if_match), entity)
    }

    /// Removes the entry if it is as it was read, and inserts it in another state, with these properties instead of its own.
    pub(super) fn moved(
        &self,
        table: &TableName,
        state: State,
        changed: Vec<(String, Value)>,
    ) -> Result<[EntityChange; 2], Error> {
        let mut values = self.values.clone();
        if state == State::Removed {
            values.retain(|(name, _)| is_own(name));
        }
        values.retain(|(name, _)| changed.iter().all(|(other, _)| name != other));
        values.extend(changed);
        let partition = self.key.partition_key().as_str();
        let key = key(partition, state, self.number)?;
        let if_match = IfMatch::ETag(self.etag.clone());
        Ok([
            self.delete(table, if_match),
            change(table, &key, ChangeKind::Insert, &values)?,
        ])
    }
}

/// The change that commits an entry.
pub(super) fn insert(
    table: &TableName,
    partition: &PartitionKey,
    number: u64,
    values: &[(String, Value)],
) -> Result<EntityChange, Error> {
    let key = key(partition.as_str(), State::Logged, number)?;
    change(table, &key, ChangeKind::Insert, values)
}

pub(super) fn change(
    table: &TableName,
    key: &EntityKey,
    kind: ChangeKind,
    values: &[(String, Value)],
) -> Result<EntityChange, Error> {
    let body = write_values(key, values).map_err(|error| Error::input(error).with_key(key))?;
    let entity = EncodedEntity::standalone(key.clone(), body);
    Ok(EntityChange::of(table.clone(), kind, entity))
}

fn key(partition: &str, state: State, number: u64) -> Result<EntityKey, Error> {
    let row_key = format!("{}{number:020}", state.prefix());
    EntityKey::new(partition, row_key).map_err(Error::input)
}

/// What an entity carries that a step wrote: the id of the outbox, and the number of the step. No number of an outbox is used twice, and
/// a head that is made anew is another outbox. It is also the id of a message, and has no character that keys cannot have.
pub(super) fn stamp(stream: &str, number: u64) -> String {
    format!("{stream}.{number:020}")
}

/// Whether a property of an entry is not one of its entity.
pub(super) fn is_own(name: &str) -> bool {
    OWN.contains(&name)
}

const OWN: [&str; 10] = [
    ATTEMPTS,
    BODY,
    ERROR,
    MESSAGE,
    PARTITION_KEY,
    POINTER,
    ROW_KEY,
    STAMP,
    STEP,
    TABLE,
];
pub(super) const ATTEMPTS: &str = "TablesdkAttempts";
pub(super) const BODY: &str = "TablesdkBody";
pub(super) const ERROR: &str = "TablesdkError";
pub(super) const MESSAGE: &str = "TablesdkMessage";
pub(super) const PARTITION_KEY: &str = "TablesdkPartitionKey";
pub(super) const POINTER: &str = "TablesdkPointer";
pub(super) const ROW_KEY: &str = "TablesdkRowKey";
pub(super) const STEP: &str = "TablesdkStep";
pub(super) const TABLE: &str = "TablesdkTable";
/// The length of an error in an entry, in characters.
pub(super) const ERROR_MAX: usize = 1_000;
