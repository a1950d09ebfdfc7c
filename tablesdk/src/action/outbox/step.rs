//! One step: what is to follow a transaction, checked when it is made.

use std::fmt;

use tablesdk_protocol::{Endpoint, EntityKey, TableName, Value};

use super::entry::{
    self, ATTEMPTS, ERROR, ERROR_MAX, Kind, PARTITION_KEY, POINTER, ROW_KEY, STAMP, STEP, TABLE,
    is_own,
};
#[cfg(feature = "json")]
use super::entry::{BODY, MESSAGE};
use crate::action::refused;
use crate::entity::key::IntoEntityKey;
use crate::entity::{Standalone, values_of, write_values};
use crate::error::Error;
use crate::pipeline::Table;

/// What follows a transaction: a change of an entity in any partition and any table of the account, or a message. See
/// [`Batch::then`](crate::action::Batch::then) and [the guide](crate::guide::outbox).
///
/// There is no insert: a step may be tried several times, and an insert that fails could be its own repetition.
#[must_use = "a step does nothing until it is given to `then`"]
pub struct Step {
    prepared: Result<Prepared, Error>,
}

/// A step that can be stored.
pub(super) struct Prepared {
    pub(super) kind: Kind,
    /// Where its entity is; `None` of a message, which has none.
    endpoint: Option<Endpoint>,
    /// The properties of its entry, without those that the commit adds.
    pub(super) values: Vec<(String, Value)>,
}

impl Step {
    pub(crate) fn write<E: Standalone>(table: &Table, is_merge: bool, entity: &E) -> Self {
        let kind = if is_merge { Kind::Merge } else { Kind::Replace };
        Self::of_entity(table, kind, || {
            let key = entity.entity_key().map_err(Error::input)?;
            let mut values = values_of(entity, &key).map_err(Error::input)?;
            // Of an entity that was written by a step before.
            values.retain(|(name, _)| name != STAMP);
            Ok((key, values))
        })
    }

    pub(crate) fn delete_of(table: &Table, key: impl IntoEntityKey) -> Self {
        Self::of_entity(table, Kind::Delete, || {
            let key = key.into_entity_key().map_err(Error::input)?;
            Ok((key, Vec::new()))
        })
    }

    fn of_entity(
        table: &Table,
        kind: Kind,
        encode: impl FnOnce() -> Result<(EntityKey, Vec<(String, Value)>), Error>,
    ) -> Self {
        let prepare = || {
            let name = TableName::new(table.name()).map_err(Error::input)?;
            let (key, mut values) = encode()?;
            let reserved = values.iter().find(|(name, _)| is_own(name));
            if let Some((name, _)) = reserved {
                return Err(Error::input(Problem::Reserved { name: name.clone() }).with_key(&key));
            }
            let text = |text: &str| Value::String(text.to_owned());
            values.push((TABLE.to_owned(), text(name.as_str())));
            values.push((PARTITION_KEY.to_owned(), text(key.partition_key().as_str())));
            values.push((ROW_KEY.to_owned(), text(key.row_key().as_str())));
            let prepared = Prepared::new(kind, Some(table.endpoint().clone()), values);
            prepared.map_err(|error| error.with_key(&key))
        };
        Self {
            prepared: prepare().map_err(|error| error.with_operation(kind.operation())),
        }
    }

    #[cfg(feature = "json")]
    pub(super) fn of_message(name: &str, body: serde_json::Result<String>) -> Self {
        let prepared = body.map_err(Error::input).and_then(|body| {
            let values = vec![
                (MESSAGE.to_owned(), Value::String(name.to_owned())),
                (BODY.to_owned(), Value::String(body)),
            ];
            Prepared::new(Kind::Message, None, values)
        });
        let operation = Kind::Message.operation();
        Self {
            prepared: prepared.map_err(|error| error.with_operation(operation)),
        }
    }

    /// The step, if it can be stored and its entity is in that account.
    pub(super) fn into_prepared(self, account: &Endpoint) -> Result<Prepared, Error> {
        let prepared = self.prepared?;
        match &prepared.endpoint {
            Some(other) if other != account => Err(refused(
                prepared.kind.operation(),
                Problem::Account {
                    step: other.to_string(),
                    account: account.to_string(),
                },
            )),
            _ => Ok(prepared),
        }
    }
}

impl Prepared {
    fn new(
        kind: Kind,
        endpoint: Option<Endpoint>,
        mut values: Vec<(String, Value)>,
    ) -> Result<Self, Error> {
        values.push((STEP.to_owned(), Value::String(kind.as_str().to_owned())));
        let this = Self {
            kind,
            endpoint,
            values,
        };
        this.check()?;
        Ok(this)
    }

    /// Refuses what could not be stored with all that workers add to it.
    fn check(&self) -> Result<(), Error> {
        let longest = EntityKey::new("", "").map_err(Error::input)?;
        let mut values = self.values.clone();
        values.push((
            STAMP.to_owned(),
            Value::String(entry::stamp(&"-".repeat(36), 0)),
        ));
        values.push((POINTER.to_owned(), Value::String("-".repeat(36))));
        values.push((ATTEMPTS.to_owned(), Value::Int32(0)));
        values.push((ERROR.to_owned(), Value::String("-".repeat(ERROR_MAX))));
        write_values(&longest, &values).map_err(Error::input)?;
        Ok(())
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
enum Problem {
    #[error("the property {name:?} of the entity has a name that is reserved for the outbox")]
    Reserved { name: String },
    #[error("the step is for the account {step}, and the transaction is in {account}")]
    Account { step: String, account: String },
}
