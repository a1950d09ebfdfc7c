//! One step: what is to follow a transaction, checked when it is made.

use std::fmt;

use tablesdk_protocol::limits::KEY_UNITS_MAX;
use tablesdk_protocol::{Endpoint, EntityKey, TableName};

use super::entry::{
    ACCOUNT, ATTEMPT, ATTEMPTS, CREATE, ERROR, ERROR_MAX, Kind, PARTITION_KEY, POINTER, ROW_KEY,
    STAMP, STEP, TABLE, is_own, stamp,
};
#[cfg(feature = "json")]
use super::entry::{BODY, MESSAGE};
use crate::action::refusal::refused;
use crate::client::TableClient;
use crate::entity::encrypted::check_not_encrypted;
use crate::entity::key::{IntoEntityKey, check_standalone_key};
use crate::entity::{
    DynamicEntity, Properties, Standalone, WritableEntity as _, values_of, write_entity,
};
use crate::error::Error;
use crate::patterns::encryption::check_not_resolved;
use crate::pipeline::{PipelineHandle, Table};

/// A step that follows a transaction: a change of an entity in any partition, table or account, or
/// a message. See [`Batch::step`](crate::action::Batch::step) and [the
/// guide](crate::guide::outbox).
///
/// There is no insert: a step may be tried several times, and an insert that fails could be its own
/// repetition.
#[must_use = "a step does nothing until a batch or a transaction has it"]
pub struct Step {
    prepared: Result<Prepared, Error>,
}

/// A step that can be stored.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) kind: Kind,
    /// The account of its entity; `None` of a message, which has none, and of the account of the
    /// transaction.
    pub(super) account: Option<PipelineHandle>,
    /// The properties of its entry, without those that the commit adds.
    pub(super) properties: Properties,
}

impl Step {
    /// Inserts an entity, or replaces the existing one. The table may be any, also of another
    /// account: see [`Outbox::account`](crate::outbox::Outbox::account).
    pub fn upsert_replace<E: Standalone>(table: &TableClient, entity: &E) -> Self {
        Self::write(table.table(), false, entity)
    }

    /// Inserts an entity, or merges it into the existing one.
    pub fn upsert_merge<E: Standalone>(table: &TableClient, entity: &E) -> Self {
        Self::write(table.table(), true, entity)
    }

    /// Deletes an entity, if it exists.
    pub fn delete<K: IntoEntityKey>(table: &TableClient, key: K) -> Self {
        const { check_standalone_key::<K>() }
        Self::delete_of(table.table(), key)
    }

    /// Creates the table of the entity if it does not exist when the step is applied, such as that
    /// of a new period of a [`RollingTable`](crate::rolling::RollingTable). Otherwise such a step
    /// is [set aside](crate::outbox::Outbox::poisoned).
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// use tablesdk::Timestamp;
    /// use tablesdk::outbox::Step;
    /// use tablesdk::rolling::{Period, RollingTable};
    ///
    /// let log = RollingTable::new(&service, "HiredIn", Period::Month);
    /// let ada = Employee::new("Sales", "1", "Ada");
    /// let month: Timestamp = "2024-03-15T10:20:30Z".parse()?;
    /// let step = Step::upsert_replace(&log.at(month), &ada).create_table();
    /// table.batch("Sales").insert(&ada).step(step).await?;
    /// assert_eq!(service.table("HiredIn202403").query::<Employee>().count().await?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) of the transaction, for a delete step and for
    /// a message.
    pub fn create_table(mut self) -> Self {
        self.prepared = self.prepared.and_then(|mut prepared| {
            if !matches!(prepared.kind, Kind::Merge | Kind::Replace) {
                let kind = prepared.kind.as_str();
                return Err(refused(
                    prepared.kind.operation(),
                    StepProblem::NoTable { kind },
                ));
            }
            prepared.properties.set(CREATE, true);
            prepared.checked()
        });
        self
    }

    pub(crate) fn write<E: Standalone>(table: &Table, is_merge: bool, entity: &E) -> Self {
        const { check_not_encrypted::<E>() }
        let kind = if is_merge { Kind::Merge } else { Kind::Replace };
        Self::of_entity(table, kind, || {
            check_not_resolved(const { &E::SCHEMA }, table)?;
            let key = entity.entity_key().map_err(Error::input)?;
            let values = values_of(entity, &key, None).map_err(Error::input)?;
            Ok((key, values.into_iter().collect()))
        })
    }

    pub(crate) fn delete_of(table: &Table, key: impl IntoEntityKey) -> Self {
        Self::of_entity(table, Kind::Delete, || {
            let key = key.into_entity_key().map_err(Error::input)?;
            Ok((key, Properties::new()))
        })
    }

    fn of_entity(
        table: &Table,
        kind: Kind,
        encode: impl FnOnce() -> Result<(EntityKey, Properties), Error>,
    ) -> Self {
        Self::new(kind, || {
            let name = TableName::new(table.name()).map_err(Error::input)?;
            let (key, mut properties) = encode()?;
            let reserved = properties.iter().find(|(name, _)| is_own(name));
            if let Some((name, _)) = reserved {
                let name = name.to_owned();
                return Err(Error::input(StepProblem::Reserved { name }).with_key(&key));
            }
            properties.set(TABLE, name.as_str());
            properties.set(PARTITION_KEY, key.partition_key().as_str());
            properties.set(ROW_KEY, key.row_key().as_str());
            let account = Some(table.pipeline.clone());
            let prepared = Prepared::new(kind, account, properties);
            prepared.map_err(|error| error.with_key(&key))
        })
    }

    #[cfg(feature = "json")]
    pub(super) fn of_message(name: &str, body: serde_json::Result<String>) -> Self {
        Self::new(Kind::Message, || {
            let mut properties = Properties::new();
            properties.set(MESSAGE, name);
            properties.set(BODY, body.map_err(Error::input)?);
            Prepared::new(Kind::Message, None, properties)
        })
    }

    fn new(kind: Kind, prepare: impl FnOnce() -> Result<Prepared, Error>) -> Self {
        Self {
            prepared: prepare().map_err(|error| error.with_operation(kind.operation())),
        }
    }

    /// The step as it is stored in an outbox of that account, if it can be stored.
    pub(super) fn into_prepared(self, own: &Endpoint) -> Result<Prepared, Error> {
        let mut prepared = self.prepared?;
        prepared.account = prepared.account.filter(|account| account.endpoint != *own);
        let Some(account) = &prepared.account else {
            return Ok(prepared);
        };
        let account = account.endpoint.as_str().to_owned();
        prepared.properties.set(ACCOUNT, account);
        prepared.checked()
    }
}

impl Prepared {
    /// Returns true if the step creates its table.
    pub(super) fn creates_table(&self) -> bool {
        self.properties.get(CREATE).is_some()
    }

    fn new(
        kind: Kind,
        account: Option<PipelineHandle>,
        mut properties: Properties,
    ) -> Result<Self, Error> {
        properties.set(STEP, kind.as_str());
        let prepared = Self {
            kind,
            account,
            properties,
        };
        prepared.checked()
    }

    /// Refuses what could not be stored with all that the commit and workers add to it.
    fn checked(self) -> Result<Self, Error> {
        let (guid, error) = ("-".repeat(36), "-".repeat(ERROR_MAX));
        let longest = DynamicEntity::new("-".repeat(KEY_UNITS_MAX), "-".repeat(ROW_KEY_MAX))
            .with_properties(self.properties.clone())
            .with(STAMP, stamp(&guid, 0))
            .with(POINTER, guid.as_str())
            .with(ATTEMPT, guid)
            .with(ATTEMPTS, 0)
            .with(ERROR, error);
        let refused = |error| refused(self.kind.operation(), error);
        let key = longest.entity_key().map_err(refused)?;
        write_entity(&longest, &key).map_err(refused)?;
        Ok(self)
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.prepared {
            Ok(prepared) => f.debug_tuple("Step").field(&prepared.kind).finish(),
            Err(error) => f.debug_tuple("Step").field(error).finish(),
        }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
enum StepProblem {
    #[error("the property {name:?} of the entity has a name that is reserved for the outbox")]
    Reserved { name: String },
    #[error("a {kind} step does not create a table")]
    NoTable { kind: &'static str },
}

/// More than the length of the row key of an entry.
const ROW_KEY_MAX: usize = 64;
