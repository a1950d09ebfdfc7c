//! `move_to`, and the protocol of all moves: an entity is written into another table, or to another
//! key of a partition of its own, and then deleted where it was.
//!
//! The entity is never in neither table: it is deleted under the ETag with which it was read, after
//! that version was written into the target. A mover writes over what the target has only under the
//! ETag of the target's entity, which it read *before* it found the source unchanged. So a mover
//! with an old version fails if another one with a newer version was there in between. That is why
//! even an equal entity in the target is written again.
//!
//! A mover that finds the source changed removes its copy. Who writes an equal entity again takes
//! over this duty: the mover that inserted it cannot remove it any more. It removes an equal one
//! only if the source has another content: two movers of the entity in opposite directions could
//! otherwise both find their source written again, and remove both.
//!
//! A mover that finds the source gone has moved it, or another mover of the same table has: then it
//! is in the target. Where the key changes, another mover may have moved it to a third key, and the
//! copy is one too many. A response does not show who deleted the source, since the network may
//! deliver a request twice. So that delete has a marker.

use bytes::Bytes;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, ErrorCode, IfMatch};

use crate::action::extend::ride::Riders;
use crate::action::get_entity::{RawEntity, fetch, stored};
use crate::action::refusal::refused;
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::encoded::{EncodedEntity, riders};
use crate::action::write::keep_marker::KeepMarker;
use crate::action::write::response::malformed_success;
use crate::entity::attached::Memory;
use crate::entity::encrypted::check_not_encrypted;
use crate::entity::{DynamicEntity, Stored, WritableEntity, is_same_version, write_stamped};
use crate::error::{CurrentEntity, CurrentState, Error};
use crate::patterns::encryption::check_not_resolved;
use crate::pipeline::{Effect, Table};

/// Moves an entity into another table. See [`TableClient::move_to`](crate::TableClient::move_to).
#[must_use = "actions do nothing until awaited"]
pub struct MoveEntity<E> {
    table: Table,
    target: Table,
    entity: Stored<E>,
    overwrite: bool,
}

impl<E: WritableEntity> MoveEntity<E> {
    pub(crate) const fn new(table: Table, target: Table, entity: Stored<E>) -> Self {
        const { check_not_encrypted::<E>() }
        Self {
            table,
            target,
            entity,
            overwrite: false,
        }
    }

    /// Replaces another entity that the target has under the key. Without this option, the move is
    /// then refused.
    pub const fn overwrite(mut self) -> Self {
        self.overwrite = true;
        self
    }

    async fn run(self) -> Result<Stored<E>, Error> {
        let (table, target) = (self.table, self.target);
        check_tables(&table, &target)?;
        check_not_resolved(const { &E::SCHEMA }, &table)?;
        check_not_resolved(const { &E::SCHEMA }, &target)?;
        let target = with_options(target, &table);
        let key = self.entity.key();
        // What is stored, with the properties that the type does not have.
        let RawEntity { content, etag } = read(&table, key).await?;
        let failed = |error: Error| error.with_operation(OPERATION).with_key(key);
        let found: Stored<E> = stored(&content, &etag).map_err(failed)?;
        if !is_same_version(found.etag(), self.entity.etag()) {
            return Err(changed(&table, key));
        }
        let whole: Stored<DynamicEntity> = stored(&content, &etag).map_err(failed)?;
        let refused = |error| failed(Error::input(error));
        let deleted = EncodedEntity::deleted(&found);
        let moving = Moving {
            inserted: EncodedEntity {
                key: key.clone(),
                body: write_stamped(&*whole, key, None).map_err(refused)?,
                riders: riders(&*found, &Memory::NONE).map_err(refused)?,
            },
            removed: deleted.clone(),
            deleted,
            content: content.clone(),
            if_match: IfMatch::ETag(found.etag().clone()),
        };
        let riders_over = |there: &CurrentEntity| {
            if const { !E::FACTS.has_riders } {
                return Ok(Riders::NONE);
            }
            // What goes along with the one, and the value of the other.
            let mut there = there.read::<E>()?;
            *there = stored::<E>(&content, &etag)?.into_inner();
            riders(&*there, there.memory()).map_err(Error::input)
        };
        let etag = move_version(&table, &target, &moving, self.overwrite, &riders_over).await?;
        let mut value = found.into_inner();
        value.written_as(&etag);
        Ok(Stored::new(value, key.clone(), etag))
    }
}

action!(impl[E: WritableEntity] MoveEntity<E>, table.pipeline => Stored<E>);
debug_by_fields!(MoveEntity<E> { table, target, overwrite });

/// A version of an entity that is to be moved into another table, or to another key.
pub(super) struct Moving {
    /// The condition that it is still that version.
    pub(super) if_match: IfMatch,
    /// Its content.
    pub(super) content: Bytes,
    /// The entity that is written into the target.
    pub(super) inserted: EncodedEntity,
    /// The entity that is deleted at the source.
    pub(super) deleted: EncodedEntity,
    /// The delete of what was written into the target.
    pub(super) removed: EncodedEntity,
}

impl Moving {
    /// Returns true if the source has a key of its own. Then another client may have moved the
    /// entity to a third key.
    pub(super) fn changes_key(&self) -> bool {
        self.inserted.key != self.deleted.key
    }

    /// Returns true if both keys are in one partition.
    pub(super) fn is_within(&self) -> bool {
        self.inserted.key.partition_key() == self.deleted.key.partition_key()
    }

    /// Returns true if an ETag of the source is that of the version.
    pub(super) fn is_version(&self, etag: &ETag) -> bool {
        matches!(&self.if_match, IfMatch::ETag(version) if is_same_version(version, etag))
    }
}

/// The riders of the write over an entity of the target.
pub(super) type RidersOver<'a> =
    &'a (dyn Fn(&CurrentEntity) -> Result<Riders, Error> + Send + Sync);

/// Refuses to move an entity to where it is.
pub(super) fn check_tables(table: &Table, target: &Table) -> Result<(), Error> {
    table.checked_name(OPERATION)?;
    let checked = target.checked_name(OPERATION);
    checked.map_err(|error| target.pipeline.locate(error))?;
    let is_same_name = table.name().eq_ignore_ascii_case(target.name());
    if is_same_name && table.endpoint() == target.endpoint() {
        return Err(refused(OPERATION, "the target is the table itself"));
    }
    Ok(())
}

/// The target, with the options of the call, which the source has.
pub(super) fn with_options(mut target: Table, table: &Table) -> Table {
    target.pipeline.retry.clone_from(&table.pipeline.retry);
    target.pipeline.deadline = table.pipeline.deadline;
    target
}

/// Moves a version of an entity, and returns its ETag in the target. After an error, the entity is
/// still where it was, unless the outcome is unknown: then it may be in the target alone.
pub(super) async fn move_version(
    table: &Table,
    target: &Table,
    moving: &Moving,
    overwrite: bool,
    riders_over: RidersOver<'_>,
) -> Result<ETag, Error> {
    let (etag, before) = put(table, target, moving, overwrite, riders_over).await?;
    let kind = ChangeKind::Delete(moving.if_match.clone());
    let deleted = moving.deleted.clone();
    let deleted = if moving.changes_key() {
        let is_gone = |error: &Error| before.may_be_of_rival() && error.is_not_found();
        write(table, kind, deleted, Some(KeepMarker::NOT), is_gone).await
    } else {
        write(table, kind, deleted, None, is_gone).await
    };
    match deleted {
        Ok(_) => Ok(etag),
        Err(error) => {
            // The entity was changed, or the client may not delete it. While the outcome is
            // unknown, the copy may be all that there is.
            let is_to_remove = match before {
                Before::Nothing => true,
                // A copy of the version that is still at the source is adopted by the next move.
                Before::Equal => {
                    error.is_precondition_failed() && !has_content(table, moving).await
                }
                Before::Another => false,
            };
            if is_to_remove && !error.is_outcome_unknown() {
                remove_copy(target, moving.removed.clone(), etag).await;
            }
            Err(error)
        }
    }
}

/// The content of the target before the version was written into it.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    /// The same properties: a copy by this mover, by one that ended, or by one that moves the
    /// entity at the same time.
    Equal,
    Another,
}

impl Before {
    /// Returns true if another client may have moved the same version to the same place, and have
    /// deleted it at the source.
    const fn may_be_of_rival(self) -> bool {
        matches!(self, Self::Equal)
    }
}

/// Returns false if the source has another content than the version. Otherwise another mover may
/// have written it again, which moves the copy to where the source is, and removes the source if it
/// finds the copy changed.
async fn has_content(table: &Table, moving: &Moving) -> bool {
    let Ok(RawEntity { content, etag }) = read(table, &moving.deleted.key).await else {
        return true;
    };
    let found = CurrentEntity::new(content, Some(etag), Some(&moving.content), true);
    matches!(found, Ok(Some(found)) if found.equals_sent())
}

/// Deletes the copy in the target, if no other client has written it. A copy that cannot be deleted
/// is found by the next move.
pub(super) async fn remove_copy(target: &Table, removed: EncodedEntity, etag: ETag) {
    let kind = ChangeKind::Delete(IfMatch::ETag(etag));
    drop(write(target, kind, removed, None, |_| true).await);
}

/// Returns true if the entity is no longer at the source: deleted by this move, or by another
/// client. The target has it in either case.
fn is_gone(error: &Error) -> bool {
    match error.current() {
        Some(current) => matches!(current, CurrentState::Missing),
        None => error.is_missing(),
    }
}

/// Returns true if the target has an entity under the key.
pub(super) fn is_there(error: &Error) -> bool {
    match error.current() {
        Some(current) => matches!(current, CurrentState::Present(_)),
        None => error.code() == Some(&ErrorCode::EntityAlreadyExists) && !error.has_details(),
    }
}

/// Returns true if the entity of the target was written since it was read, perhaps by this move.
fn is_written_since(error: &Error) -> bool {
    error.is_precondition_failed() || error.is_not_found() || is_there(error)
}

/// Writes the version into the target. Returns its ETag there, and what was there before.
async fn put(
    table: &Table,
    target: &Table,
    moving: &Moving,
    overwrite: bool,
    riders_over: RidersOver<'_>,
) -> Result<(ETag, Before), Error> {
    let key = &moving.inserted.key;
    let failed = |error: Error| {
        let error = error.with_operation(OPERATION).with_key(key);
        target.pipeline.locate(error)
    };
    let mut round = 0;
    loop {
        round += 1;
        let kind = ChangeKind::Insert;
        let inserted = moving.inserted.clone();
        let conflict = match write(target, kind, inserted, None, is_there).await? {
            Ok(etag) => return Ok((with_etag(target, key, etag)?, Before::Nothing)),
            Err(error) => error,
        };
        // The target first, and then the source: see the top of this file.
        let there = match current(target, &moving.inserted).await {
            Ok(there) => there,
            Err(error) if error.is_not_found() && round < ROUNDS => continue,
            Err(error) if error.is_not_found() => return Err(conflict),
            Err(error) => return Err(error),
        };
        let here = read(table, &moving.deleted.key).await?;
        if !moving.is_version(&here.etag) {
            return Err(changed(table, &moving.deleted.key));
        }
        let is_equal = there.equals_sent();
        if !overwrite && !is_equal {
            return Err(conflict.with_current(CurrentState::Present(there)));
        }
        let kind = ChangeKind::Update(Mode::Replace, Some(IfMatch::ETag(there.etag().clone())));
        let replacement = EncodedEntity {
            riders: riders_over(&there).map_err(failed)?,
            ..moving.inserted.clone()
        };
        // It may be this mover that has written it since: a network may deliver each request twice.
        // A marker shows that.
        let exactly_once = (round > 1 && is_equal).then_some(KeepMarker::NOT);
        match write(target, kind, replacement, exactly_once, is_written_since).await? {
            Ok(etag) => {
                let before = if is_equal {
                    Before::Equal
                } else {
                    Before::Another
                };
                return Ok((with_etag(target, key, etag)?, before));
            }
            Err(_) if round < ROUNDS => {}
            // Not that of the condition, which a caller would take for one about the source.
            Err(_) => return Err(conflict.with_current(CurrentState::Present(there))),
        }
    }
}

/// The entity of a table, compared with what is written into the target.
pub(super) async fn current(
    table: &Table,
    inserted: &EncodedEntity,
) -> Result<CurrentEntity, Error> {
    let EncodedEntity { key, body, .. } = inserted;
    let RawEntity { content, etag } = read(table, key).await?;
    let current =
        CurrentEntity::new(content, Some(etag), Some(body), true).map_err(Error::response);
    let current = current.and_then(|it| it.ok_or_else(|| Error::response("it has no ETag")));
    current.map_err(|error| {
        let error = error.with_operation(OPERATION).with_key(key);
        table.pipeline.locate(error)
    })
}

pub(super) async fn read(table: &Table, key: &EntityKey) -> Result<RawEntity, Error> {
    let mut run = table.pipeline.begin(OPERATION);
    let content = fetch(&mut run, Effect::ReadNow, table, key, None).await;
    run.end(content)
        .map_err(|error| table.pipeline.locate(error))
}

/// Sends a change, and returns the new ETag. The inner error is one that the caller expects.
pub(super) async fn write(
    table: &Table,
    kind: ChangeKind,
    entity: EncodedEntity,
    exactly_once: Option<KeepMarker>,
    is_expected: impl Fn(&Error) -> bool,
) -> Result<Result<Option<ETag>, Error>, Error> {
    let change = EntityChange::new(OPERATION, table, kind, entity).await;
    let change = change.map_err(|error| table.pipeline.locate(error))?;
    let mut run = table.pipeline.begin(OPERATION);
    let written = match change.write(&mut run, exactly_once).await {
        Err(error) if is_expected(&error) => {
            run.note_expected_error(&error);
            Ok(Err(error))
        }
        written => written.map(Ok),
    };
    run.end(written)
}

/// The ETag of an entity that was written.
pub(super) fn with_etag(table: &Table, key: &EntityKey, etag: Option<ETag>) -> Result<ETag, Error> {
    etag.ok_or_else(|| {
        let error = malformed_success("the response has no ETag");
        let error = error.with_operation(OPERATION).with_key(key);
        table.pipeline.locate(error)
    })
}

/// The error of an entity that is no longer the version that is to be moved.
pub(super) fn changed(table: &Table, key: &EntityKey) -> Error {
    let error = Error::service(ErrorCode::UpdateConditionNotSatisfied);
    let error = error.with_operation(OPERATION).with_key(key);
    table.pipeline.locate(error)
}

pub(super) const OPERATION: &str = "move entity";
/// How often the target is written that other clients write, too.
pub(super) const ROUNDS: u32 = 16;
