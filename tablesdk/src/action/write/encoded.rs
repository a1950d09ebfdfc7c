//! An entity as it is encoded: its content, and what goes along with it. And the change that sends
//! it.

use std::fmt;

use bytes::Bytes;
use tablesdk_protocol::operation::batch::Change;
use tablesdk_protocol::operation::{
    EntityBody, Prefer, delete_entity, insert_entity, update_entity,
};
use tablesdk_protocol::wire::json::MetadataLevel;
use tablesdk_protocol::{EntityKey, TableName, Value};

use super::change::{ChangeKind, EntityChange};
use crate::action::extend::extension::{Extensions, LeftOut};
use crate::action::extend::ride::Riders;
use crate::action::refusal::refused;
use crate::entity::attached::{Attach, Memory};
use crate::entity::{
    EntityError, Stored, TableEntity, WritableEntity, values_of, write_stamped, write_values,
};
use crate::error::Error;
use crate::pipeline::Table;

/// An entity ready to be sent, but for what its riders make of the content.
#[derive(Clone)]
pub(crate) struct EncodedEntity {
    pub(crate) key: EntityKey,
    pub(crate) body: Bytes,
    pub(crate) riders: Riders,
}

/// Without the values, which are private.
impl fmt::Debug for EncodedEntity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedEntity")
            .field("key", &self.key)
            .field("bytes", &self.body.len())
            .field("riders", &self.riders)
            .finish()
    }
}

impl EncodedEntity {
    /// Nothing but a key: of what is to be deleted.
    pub(crate) const fn of_key(key: EntityKey) -> Self {
        Self::alone(key, Bytes::new())
    }

    /// An entity with which nothing goes along.
    pub(crate) const fn alone(key: EntityKey, body: Bytes) -> Self {
        Self {
            key,
            body,
            riders: Riders::NONE,
        }
    }

    /// Some properties of an entity.
    pub(crate) fn of_properties<E: TableEntity>(key: EntityKey, body: Bytes) -> Self {
        Self {
            key,
            body,
            riders: riders_of_type::<E>(),
        }
    }

    /// The delete of an entity that was read.
    pub(crate) fn deleted<E: TableEntity>(entity: &Stored<E>) -> Self {
        Self {
            riders: riders_removed(entity),
            ..Self::of_key(entity.key().clone())
        }
    }

    /// A new entity.
    pub(crate) fn inserted<E: WritableEntity>(
        operation: &'static str,
        entity: &E,
    ) -> Result<Self, Error> {
        let refused = |error| refused(operation, error);
        let key = entity.entity_key().map_err(refused)?;
        let encoded = write_stamped(entity, &key, None).and_then(|body| {
            let riders = riders(entity, &Memory::NONE)?;
            Ok((body, riders))
        });
        match encoded {
            Ok((body, riders)) => Ok(Self { key, body, riders }),
            Err(error) => Err(refused(error).with_key(&key)),
        }
    }

    /// A value that replaces what was read.
    pub(crate) fn replaced<E: WritableEntity>(
        operation: &'static str,
        entity: &Stored<E>,
    ) -> Result<Self, Error> {
        let refused = |error| refused(operation, error).with_key(entity.key());
        let key = entity.unchanged_key().map_err(refused)?.clone();
        let body = write_stamped::<E>(entity, &key, entity.step_of()).map_err(refused)?;
        Self::with_content_of(entity, body).map_err(refused)
    }

    /// A value that replaces what was read, and properties that the type does not have.
    pub(crate) fn replaced_with<E: WritableEntity>(
        entity: &Stored<E>,
        rest: impl FnOnce(&[(String, Value)]) -> Vec<(String, Value)>,
    ) -> Result<Self, EntityError> {
        let key = entity.unchanged_key()?;
        let mut values = values_of::<E>(entity, key, entity.step_of())?;
        let rest = rest(&values);
        values.extend(rest);
        Self::with_content_of(entity, write_values(key, &values)?)
    }

    /// A value that is written over a stored one, which counts as missing.
    pub(crate) fn instead<E: WritableEntity>(stored: &Stored<E>) -> Result<Self, EntityError> {
        let key = stored.unchanged_key()?;
        let body = write_stamped::<E>(stored, key, stored.step_of())?;
        Self::with_content_of(stored, body)
    }

    /// The entity with the content that is sent: all of it, or a part that is merged.
    pub(crate) async fn transformed(
        mut self,
        table: &Table,
        is_whole: bool,
    ) -> Result<Self, Error> {
        let riders = &mut self.riders;
        let transformed = riders
            .transform(table, &self.key, self.body, is_whole)
            .await;
        self.body = transformed.map_err(|error| error.with_key(&self.key))?;
        Ok(self)
    }

    /// Other content, with what goes along with a value that replaces what was read.
    pub(crate) fn with_content_of<E: WritableEntity>(
        entity: &Stored<E>,
        body: Bytes,
    ) -> Result<Self, EntityError> {
        Ok(Self {
            key: entity.key().clone(),
            body,
            riders: riders(&**entity, entity.memory())?,
        })
    }
}

impl EntityChange {
    /// A change as a part of an operation, as it is sent. Refuses the name of a table or an ETag
    /// that cannot be sent.
    pub(crate) async fn new(
        operation: &'static str,
        table: &Table,
        kind: ChangeKind,
        entity: EncodedEntity,
    ) -> Result<Self, Error> {
        kind.check(operation, &entity.key)?;
        let name = table.checked_name(operation)?;
        let transformed = entity.transformed(table, kind.is_whole()).await;
        let transformed = transformed.map_err(|error| error.with_operation(operation))?;
        Ok(Self::of(name, kind, transformed))
    }

    /// A change that is sent as it is.
    pub(crate) fn of(table: TableName, kind: ChangeKind, entity: EncodedEntity) -> Self {
        let EncodedEntity { key, body, riders } = entity;
        let operation = kind.operation();
        let change = match kind {
            ChangeKind::Delete(if_match) => Change::Delete(delete_entity::Request {
                table,
                key: key.clone(),
                if_match,
            }),
            ChangeKind::Insert => Change::Insert(insert_entity::Request {
                table,
                entity: EntityBody::from_bytes(body),
                prefer: Prefer::ReturnNoContent,
                level: MetadataLevel::Minimal,
            }),
            ChangeKind::Update(mode, if_match) => Change::Update(update_entity::Request {
                table,
                key: key.clone(),
                mode,
                if_match,
                entity: EntityBody::from_bytes(body),
            }),
        };
        Self {
            key,
            change,
            operation,
            riders,
        }
    }
}

/// The riders of the delete of an entity that was read.
fn riders_removed<E: TableEntity>(stored: &Stored<E>) -> Riders {
    let mut riders = Riders::NONE;
    if const { E::FACTS.has_riders } {
        let mut attach = Attach {
            memory: stored.memory(),
            sink: &mut riders,
        };
        attach.remove_stored();
    }
    riders
}

/// The riders of the write of a value: of an insert without a memory, and otherwise of one that
/// replaces what was read. If it has become another variant of an enum, what goes along with the
/// stored one is removed.
pub(crate) fn riders<E: TableEntity>(entity: &E, memory: &Memory) -> Result<Riders, EntityError> {
    let mut riders = riders_of_type::<E>();
    if const { E::FACTS.has_riders } {
        entity.attach(&mut Attach {
            memory,
            sink: &mut riders,
        })?;
    }
    Ok(riders)
}

/// The riders of each write of a type.
fn riders_of_type<E: TableEntity>() -> Riders {
    let mut riders = Riders::NONE;
    let extensions = Extensions::of::<E>(LeftOut::NONE);
    let of_type = extensions.iter().filter_map(|it| it.by.rider(it.schema));
    of_type.for_each(|rider| riders.add(rider));
    riders
}
