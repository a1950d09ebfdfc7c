//! `move_key`: writes a stored value under the key that it has now, and deletes it under the key
//! that it had.
//!
//! In one partition, a transaction does both. Between two partitions, the entity is moved as into
//! another table.

use bytes::Bytes;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::wire::json::{EntityCursor, read_entity};
use tablesdk_protocol::{ETag, EntityKey, IfMatch, Value};

use super::entity::{Moving, OPERATION, changed, move_version, read, with_etag, write};
use super::together::move_together;
use crate::action::extend::ride::Riders;
use crate::action::get_entity::{RawEntity, stored};
use crate::action::write::change::ChangeKind;
use crate::action::write::encoded::{EncodedEntity, riders};
use crate::action::write::unmodelled::{left_as_is, unmodelled};
use crate::entity::attached::Memory;
use crate::entity::encrypted::check_not_encrypted;
use crate::entity::{
    STEP_OF, Stored, WritableEntity, is_same_version, values_of, write_stamped, write_values,
};
use crate::error::{CurrentEntity, Error};
use crate::patterns::encryption::check_not_resolved;
use crate::patterns::index::indexes::indexes_of;
use crate::pipeline::Table;

/// Moves an entity to the key that its value has now. See
/// [`TableClient::move_key`](crate::TableClient::move_key).
#[must_use = "actions do nothing until awaited"]
pub struct MoveKey<'e, E> {
    table: Table,
    entity: &'e mut Stored<E>,
    overwrite: bool,
}

impl<'e, E: WritableEntity> MoveKey<'e, E> {
    pub(crate) const fn new(table: Table, entity: &'e mut Stored<E>) -> Self {
        const { check_not_encrypted::<E>() }
        Self {
            table,
            entity,
            overwrite: false,
        }
    }

    /// Replaces another entity that has the new key. Without this option, the move is then refused.
    pub const fn overwrite(mut self) -> Self {
        self.overwrite = true;
        self
    }

    async fn run(self) -> Result<ETag, Error> {
        let Self {
            table,
            entity,
            overwrite,
        } = self;
        table.checked_name(OPERATION)?;
        let from = entity.key().clone();
        let failed = |error: Error| error.with_operation(OPERATION).with_key(&from);
        let input = |error| failed(Error::input(error));
        let input_of = |error: ReservedEntry| failed(Error::input(error));
        let to = entity.entity_key().map_err(input)?;
        check_not_resolved(const { &E::SCHEMA }, &table).map_err(failed)?;
        if to != from {
            check_entries::<E>().map_err(input_of)?;
        }
        // Before anything is sent, although the properties that the type does not have are unknown.
        write_stamped::<E>(entity, &to, None).map_err(input)?;
        let values = values_of::<E>(entity, &to, None).map_err(input)?;
        let RawEntity { content, etag } = match read(&table, &from).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() && to != from => {
                let etag = moved_before::<E>(&table, &to, &values).await?;
                let etag = etag.ok_or(error)?;
                entity.moved(to, etag.clone());
                return Ok(etag);
            }
            Err(error) => return Err(error),
        };
        if !is_same_version(&etag, entity.etag()) {
            return Err(changed(&table, &from));
        }
        let (found, rest) = with_rest::<E>(&content, &etag).map_err(failed)?;
        let etag = if to == from {
            let encoded = EncodedEntity::replaced_with(entity, |written| {
                left_as_is::<E>(rest, entity, written)
            });
            let kind = ChangeKind::Update(Mode::Replace, Some(IfMatch::ETag(etag)));
            let written = write(&table, kind, encoded.map_err(input)?, None, |_| false).await?;
            let etag = written.and_then(|etag| with_etag(&table, &to, etag))?;
            // It keeps the stamp of a step.
            entity.written(etag.clone());
            return Ok(etag);
        } else {
            let moving = moving::<E>(&found, content, rest, entity, &to).map_err(failed)?;
            let body = moving.inserted.body.clone();
            let riders_over = |there: &CurrentEntity| riders_over::<E>(there, &body);
            if moving.is_within() {
                move_together(&table, &moving, overwrite, &riders_over).await?
            } else {
                move_version(&table, &table, &moving, overwrite, &riders_over).await?
            }
        };
        entity.moved(to, etag.clone());
        Ok(etag)
    }
}

action!(impl['e, E: WritableEntity] MoveKey<'e, E>, table.pipeline => 'e, ETag);
debug_by_fields!(MoveKey<'e, E> { table, overwrite });

/// Refuses a type whose entities have entries that two of them cannot have, not even while the
/// entity is under both keys.
pub(super) fn check_entries<E: WritableEntity>() -> Result<(), ReservedEntry> {
    if const { !E::FACTS.has_riders } {
        return Ok(());
    }
    let mut indexes = indexes_of::<E>().into_iter();
    match indexes.find(|index| index.is_reserved()) {
        Some(index) => Err(ReservedEntry(index.name())),
        None => Ok(()),
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the entity cannot move to another key: the index {0} over partitions is unique, and its entry cannot pass from one key to the other; delete the entity, and insert it under the new key"
)]
pub(super) struct ReservedEntry(&'static str);

/// The properties that a type does not have.
type Rest = Vec<(String, Value)>;

/// An entity, and the properties that its type does not have, but for the stamp of a step: it is
/// that of the entity under the key at which the step has written it.
pub(super) fn with_rest<E: WritableEntity>(
    content: &Bytes,
    etag: &ETag,
) -> Result<(Stored<E>, Rest), Error> {
    let entity = read_entity(content).map_err(Error::response)?;
    let found = Stored::<E>::read(&mut EntityCursor::new(&entity), Some(etag));
    let found = found.map_err(Error::entity)?;
    let mut rest = unmodelled(&found, &entity)?;
    rest.retain(|(name, _)| name != STEP_OF);
    Ok((found, rest))
}

/// The move of a version to the key of a value, which becomes the content of the entity, beside the
/// properties that its type does not have.
pub(super) fn moving<E: WritableEntity>(
    found: &Stored<E>,
    content: Bytes,
    rest: Rest,
    value: &E,
    to: &EntityKey,
) -> Result<Moving, Error> {
    let mut values = values_of(value, to, None).map_err(Error::input)?;
    let rest = left_as_is(rest, value, &values);
    values.extend(rest);
    let body = write_values(to, &values).map_err(Error::input)?;
    let copy: Stored<E> = stored(&body, found.etag())?;
    Ok(Moving {
        if_match: IfMatch::ETag(found.etag().clone()),
        content,
        inserted: EncodedEntity {
            key: to.clone(),
            riders: riders(value, &Memory::NONE).map_err(Error::input)?,
            body,
        },
        deleted: EncodedEntity::deleted(found),
        removed: EncodedEntity::deleted(&copy),
    })
}

/// The riders of a content that is written over an entity.
pub(super) fn riders_over<E: WritableEntity>(
    there: &CurrentEntity,
    content: &Bytes,
) -> Result<Riders, Error> {
    if const { !E::FACTS.has_riders } {
        return Ok(Riders::NONE);
    }
    let there = there.read::<E>()?;
    let value: Stored<E> = stored(content, there.etag())?;
    riders(&*value, there.memory()).map_err(Error::input)
}

/// The ETag of the entity under the new key, if it has the properties of the value: an earlier move
/// has ended after its last request.
async fn moved_before<E: WritableEntity>(
    table: &Table,
    to: &EntityKey,
    values: &[(String, Value)],
) -> Result<Option<ETag>, Error> {
    let RawEntity { content, etag } = match read(table, to).await {
        Ok(found) => found,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    // It may be an entity of another type.
    let there = stored::<E>(&content, &etag).ok();
    let there = there.and_then(|there| values_of::<E>(&there, to, None).ok());
    Ok((there.as_deref() == Some(values)).then_some(etag))
}
