//! The entities of an outbox as they are stored, and its entries among them.

use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, TableName, Timestamp, Value};

use crate::action::refusal::refused;
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::commit::send_together;
use crate::action::write::encoded::EncodedEntity;
pub(super) use crate::entity::STEP_OF as STAMP;
use crate::entity::{DynamicEntity, Properties, Stored, WritableEntity as _, write_entity};
use crate::error::Error;
use crate::pipeline::OperationRun;

/// An entity of an outbox as it is stored.
pub(super) type Row = Stored<DynamicEntity>;

/// The effect of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Delete,
    Merge,
    Message,
    Replace,
    /// An effect that a later version of this client has stored.
    Unknown,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        self.names().0
    }

    /// The operation in an error of the step.
    pub(super) const fn operation(self) -> &'static str {
        self.names().1
    }

    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Delete => ("delete", "delete step"),
            Self::Merge => ("upsert_merge", "upsert_merge step"),
            Self::Message => ("message", "message step"),
            Self::Replace => ("upsert_replace", "upsert_replace step"),
            Self::Unknown => ("unknown", "unknown step"),
        }
    }
}

/// Which state an entry is in; its row key says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepState {
    /// Set aside.
    Dead,
    /// To be applied.
    Logged,
    /// A delete step that was applied, and is looked at once more.
    Removed,
}

impl StepState {
    /// The states after `Dead` are read together with the head, whose row key sorts between them.
    pub(super) fn prefix(self) -> String {
        let state = match self {
            Self::Dead => "dead",
            Self::Logged => "log",
            Self::Removed => "removed",
        };
        format!("{OUTBOX}{state}.")
    }

    fn row_key(self, number: u64) -> String {
        format!("{}{number:020}", self.prefix())
    }
}

/// An entry of an outbox.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) state: StepState,
    row: Row,
}

impl Entry {
    /// `None` where it is no entry in this state.
    pub(super) fn read(state: StepState, row: &Row) -> Option<Self> {
        let number = row.row_key().strip_prefix(&state.prefix())?;
        Some(Self {
            number: number.parse().ok()?,
            state,
            row: row.clone(),
        })
    }

    pub(super) fn kind(&self) -> Kind {
        let kinds = [Kind::Delete, Kind::Merge, Kind::Message, Kind::Replace];
        let known = kinds
            .into_iter()
            .find(|kind| self.text(STEP) == Some(kind.as_str()));
        known.unwrap_or(Kind::Unknown)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        text(&self.row, name)
    }

    /// The id of the write that committed it, which its pointer has.
    pub(super) fn pointer(&self) -> &str {
        self.text(POINTER).unwrap_or_default()
    }

    /// The id of the outbox and the number. It is also the id of a message.
    pub(super) fn stamp(&self) -> &str {
        self.text(STAMP).unwrap_or_default()
    }

    pub(super) fn attempts(&self) -> i32 {
        self.row.properties().read(ATTEMPTS).unwrap_or_default()
    }

    pub(super) const fn written(&self) -> Option<Timestamp> {
        self.row.timestamp()
    }

    pub(super) const fn key(&self) -> &EntityKey {
        self.row.key()
    }

    /// The table and the key of the entity that the step changes.
    pub(super) fn target(&self) -> Option<(TableName, EntityKey)> {
        let table = TableName::new(self.text(TABLE)?).ok()?;
        let key = EntityKey::new(self.text(PARTITION_KEY)?, self.text(ROW_KEY)?).ok()?;
        Some((table, key))
    }

    /// Returns true if the step creates its table.
    pub(super) fn creates_table(&self) -> bool {
        self.row.properties().read(CREATE).unwrap_or_default()
    }

    /// Returns true if both entries change the same entity. Names of tables are compared without
    /// regard to case.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let key = |entry: &Self| {
            let (table, key) = entry.target()?;
            Some((table.as_str().to_ascii_lowercase(), key))
        };
        let is_same = key(self).is_some_and(|of_this| key(other) == Some(of_this));
        is_same && self.text(ACCOUNT) == other.text(ACCOUNT)
    }

    /// The properties of the entity that the step writes, and its stamp.
    pub(super) fn content(&self) -> Properties {
        let properties = self.row.properties().clone().into_iter();
        properties
            .filter(|(name, _)| !is_own(name) || name == STAMP)
            .collect()
    }

    /// The number of the step that wrote an entity, if it is one of the same outbox.
    pub(super) fn order_of(&self, written: &DynamicEntity) -> Option<u64> {
        let (stream, number) = text(written, STAMP)?.rsplit_once('.')?;
        let (own, _) = self.stamp().rsplit_once('.')?;
        (stream == own).then(|| number.parse().ok()).flatten()
    }

    /// The change that notes these properties in the entry, if it is as it was read.
    pub(super) fn note(
        &self,
        table: &TableName,
        attempts: i32,
        error: &str,
    ) -> Result<EntityChange, Error> {
        self.merge(table, &self.noted(attempts, error))
    }

    /// The change that notes the begin of an attempt with that id.
    pub(super) fn note_attempt(
        &self,
        table: &TableName,
        attempts: i32,
        id: &str,
    ) -> Result<EntityChange, Error> {
        self.merge(table, &self.noted(attempts, "").with(ATTEMPT, id))
    }

    fn noted(&self, attempts: i32, error: &str) -> DynamicEntity {
        let note = DynamicEntity::of_key(self.key());
        note.with(ATTEMPTS, attempts).with(ERROR, error)
    }

    fn merge(&self, table: &TableName, note: &DynamicEntity) -> Result<EntityChange, Error> {
        let kind = ChangeKind::Update(Mode::Merge, Some(self.is_as_read()));
        change(table, kind, note)
    }

    /// An attempt was noted in it.
    pub(super) fn attempted(&mut self, attempts: i32, etag: ETag) {
        self.row.properties_mut().set(ATTEMPTS, attempts);
        self.row.written(etag);
    }

    /// Returns true if the last attempt is the one with that id.
    pub(super) fn is_of_attempt(&self, id: &str) -> bool {
        self.text(ATTEMPT) == Some(id)
    }

    /// Removes the entry, if it is as it was read.
    pub(super) fn delete(&self, table: &TableName) -> EntityChange {
        delete(table, self.key(), self.is_as_read())
    }

    fn is_as_read(&self) -> IfMatch {
        IfMatch::ETag(self.row.etag().clone())
    }

    /// Removes the entry if it is as it was read, and inserts it in another state, after this
    /// change of its properties.
    pub(super) fn moved(
        &self,
        table: &TableName,
        state: StepState,
        set: impl FnOnce(&mut Properties),
    ) -> Result<[EntityChange; 2], Error> {
        let mut properties = self.row.properties().clone();
        if state == StepState::Removed {
            let own = properties.into_iter().filter(|(name, _)| is_own(name));
            properties = own.collect();
        }
        set(&mut properties);
        let partition = self.row.partition_key();
        Ok([
            self.delete(table),
            insert(table, partition, state, self.number, properties)?,
        ])
    }
}

/// The change that inserts an entry.
pub(super) fn insert(
    table: &TableName,
    partition: &str,
    state: StepState,
    number: u64,
    properties: Properties,
) -> Result<EntityChange, Error> {
    let entry = DynamicEntity::new(partition, state.row_key(number));
    let entry = entry.with_properties(properties);
    change(table, ChangeKind::Insert, &entry)
}

/// The change that writes an entity as it is.
pub(super) fn change(
    table: &TableName,
    kind: ChangeKind,
    entity: &DynamicEntity,
) -> Result<EntityChange, Error> {
    let refused = |error| refused(kind.operation(), error);
    let key = entity.entity_key().map_err(refused)?;
    let body = write_entity(entity, &key).map_err(|error| refused(error).with_key(&key))?;
    let entity = EncodedEntity::alone(key, body);
    Ok(EntityChange::of(table.clone(), kind, entity))
}

pub(super) fn delete(table: &TableName, key: &EntityKey, if_match: IfMatch) -> EntityChange {
    let entity = EncodedEntity::of_key(key.clone());
    EntityChange::of(table.clone(), ChangeKind::Delete(if_match), entity)
}

/// Sends changes of the outbox, and returns the new ETags. `None` where one of its entities is not
/// as it was read. What is gone was perhaps moved by another client, and not deleted by a request
/// without a response: so such a delete does not count as done.
pub(super) async fn send(
    run: &mut OperationRun<'_>,
    changes: &[EntityChange],
) -> Result<Option<Vec<Option<ETag>>>, Error> {
    let sent = match changes {
        [change] => change.send_alone(run).await.map(|etag| vec![etag]),
        changes => send_together(run, changes, None).await,
    };
    match sent {
        Err(error) if error.is_out_of_date() || error.is_ambiguous() => {
            run.note_expected_error(&error);
            Ok(None)
        }
        sent => sent.map(Some),
    }
}

pub(super) fn text<'r>(row: &'r DynamicEntity, name: &str) -> Option<&'r str> {
    match row.properties().get(name)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The stamp of an entity that a step has written: the id of the outbox, and the number of the
/// step. No number of an outbox is used twice, and a head that is made anew is another outbox. The
/// stamp has no character that keys cannot have.
pub(super) fn stamp(stream: &str, number: u64) -> String {
    format!("{stream}.{number:020}")
}

/// Returns true if the client stores the property in an entry, and it is not a property of the
/// entity.
pub(super) fn is_own(name: &str) -> bool {
    OWN.contains(&name)
}

const OWN: [&str; 13] = [
    ACCOUNT,
    ATTEMPT,
    ATTEMPTS,
    BODY,
    CREATE,
    ERROR,
    MESSAGE,
    PARTITION_KEY,
    POINTER,
    ROW_KEY,
    STAMP,
    STEP,
    TABLE,
];
/// The endpoint of the account of the entity, if it is not that of the outbox.
pub(super) const ACCOUNT: &str = "TablesdkAccount";
/// The id of the last attempt: its worker finds out whether it is its own.
pub(super) const ATTEMPT: &str = "TablesdkAttempt";
pub(super) const ATTEMPTS: &str = "TablesdkAttempts";
pub(super) const BODY: &str = "TablesdkBody";
/// True if the step creates its table.
pub(super) const CREATE: &str = "TablesdkCreateTable";
/// The error of the last attempt. It is empty during an attempt, so that an attempt which its
/// worker does not survive is known.
pub(super) const ERROR: &str = "TablesdkError";
pub(super) const MESSAGE: &str = "TablesdkMessage";
pub(super) const PARTITION_KEY: &str = "TablesdkPartitionKey";
pub(super) const POINTER: &str = "TablesdkPointer";
pub(super) const ROW_KEY: &str = "TablesdkRowKey";
pub(super) const STEP: &str = "TablesdkStep";
pub(super) const TABLE: &str = "TablesdkTable";
/// The length of an error in an entry, in UTF-16 units.
pub(super) const ERROR_MAX: usize = 1_000;
/// The prefix of the row keys of the outbox.
pub(super) const OUTBOX: &str = "~tablesdk.outbox.";
