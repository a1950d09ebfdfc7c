//! `patch`: sets some properties of an entity that exists, without reading it.

use std::fmt;
use std::marker::PhantomData;

use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, KeyKind, Value};

use super::EncodedEntity;
use super::update_entity::send;
use super::write::change::ChangeKind;
use crate::entity::{EntityError, Field, TableEntity, ValueError, write_values};
use crate::error::Error;
use crate::pipeline::Table;
use crate::query::{Column, Literal};

/// Sets some properties of an entity. See [`TableClient::patch`](crate::TableClient::patch).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// table.patch(Employee::key("Sales", "1")).set(|e| e.name, "Ada Lovelace").await?;
///
/// // It makes no entity.
/// let missing = table.patch(Employee::key("Sales", "2")).set(|e| e.name, "Grace");
/// assert!(missing.await.unwrap_err().is_not_found());
/// # Ok(())
/// # }
/// ```
#[must_use = "actions do nothing until awaited"]
pub struct Patch<E> {
    table: Table,
    key: Result<EntityKey, EntityError>,
    values: Result<Vec<(String, Value)>, PatchProblem>,
    marker: PhantomData<fn() -> E>,
}

impl<E: TableEntity> Patch<E> {
    pub(crate) const fn new(table: Table, key: Result<EntityKey, EntityError>) -> Self {
        Self {
            table,
            key,
            values: Ok(Vec::new()),
            marker: PhantomData,
        }
    }

    /// Sets a property to a value. If a property is set twice, the later value counts.
    pub fn set<F: Field>(
        mut self,
        column: impl FnOnce(E::Columns) -> Column<E, F>,
        value: impl Literal<F::Value>,
    ) -> Self {
        let column = column(E::columns());
        let name = column.name().into_owned();
        let is_key = column.is_of_key()
            || [KeyKind::PartitionKey, KeyKind::RowKey]
                .iter()
                .any(|part| part.property() == name);
        let value = match value.into_value() {
            Ok(_) if is_key => Err(PatchProblem::Key { name: name.clone() }),
            Ok(_) if name == "Timestamp" => Err(PatchProblem::Timestamp),
            Ok(value) => Ok(value),
            Err(error) => Err(PatchProblem::Value {
                name: name.clone(),
                error,
            }),
        };
        self.values = match (self.values, value) {
            (Ok(mut values), Ok(value)) => {
                values.retain(|(known, _)| *known != name);
                values.push((name, value));
                Ok(values)
            }
            (Err(problem), _) | (_, Err(problem)) => Err(problem),
        };
        self
    }

    async fn run(self) -> Result<ETag, Error> {
        let refused = |error: Error| error.with_operation(OPERATION);
        let key = self.key.map_err(|error| refused(Error::input(error)))?;
        let values = match self.values {
            Ok(values) if values.is_empty() => Err(PatchProblem::Nothing),
            values => values,
        };
        let failed = |error: Error| refused(error).with_key(&key);
        let values = values.map_err(|error| failed(Error::input(error)))?;
        let body = write_values(&key, &values).map_err(|error| failed(Error::input(error)))?;
        let entity = EncodedEntity { key, body };
        let mut run = self.table.begin(OPERATION);
        let kind = ChangeKind::Update(Mode::Merge, Some(IfMatch::Any));
        let etag = send(&mut run, &self.table, kind, entity, None).await;
        run.end(etag)
    }
}

action!(impl[E: TableEntity] Patch<E>, table.pipeline => ETag);

impl<E> fmt::Debug for Patch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Patch");
        shown.field("table", &self.table).field("key", &self.key);
        match &self.values {
            // Without the values, which are private.
            Ok(values) => {
                let names: Vec<_> = values.iter().map(|(name, _)| name).collect();
                shown.field("properties", &names)
            }
            Err(problem) => shown.field("values", problem),
        };
        shown.finish()
    }
}

#[derive(Clone, Debug, thiserror::Error)]
enum PatchProblem {
    #[error("`{name}` is part of the key, which cannot change")]
    Key { name: String },
    #[error("a patch sets at least one property")]
    Nothing,
    #[error("`Timestamp` is set by the service alone")]
    Timestamp,
    #[error("property {name:?}: {error}")]
    Value { name: String, error: ValueError },
}

const OPERATION: &str = "patch entity";
