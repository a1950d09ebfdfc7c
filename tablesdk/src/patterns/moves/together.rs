//! A move to another key of the same partition: one transaction inserts the entity, and deletes it
//! where it was.
//!
//! The transaction is carried out or not as a whole. After a refusal, or without a response, what
//! is stored under both keys shows which.

use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, ErrorCode, IfMatch};

use super::entity::{Moving, OPERATION, ROUNDS, RidersOver, changed, current, read, with_etag};
use crate::action::extend::ride::{Commit, Riders};
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::commit::commit_changes;
use crate::action::write::encoded::EncodedEntity;
use crate::error::{CurrentEntity, CurrentState, Error};
use crate::pipeline::Table;

/// Moves a version of an entity within its partition, and returns its new ETag.
pub(super) async fn move_together(
    table: &Table,
    moving: &Moving,
    overwrite: bool,
    riders_over: RidersOver<'_>,
) -> Result<ETag, Error> {
    let (from, to) = (&moving.deleted.key, &moving.inserted.key);
    let failed = |error: Error| {
        let error = error.with_operation(OPERATION).with_key(to);
        table.pipeline.locate(error)
    };
    let may_write = |there: &Option<CurrentEntity>| {
        let there = there.as_ref();
        there.is_none_or(|there| overwrite || there.equals_sent())
    };
    let mut over: Option<CurrentEntity> = None;
    let mut is_ambiguous = false;
    let mut round = 0;
    loop {
        round += 1;
        let mut entity = moving.inserted.clone();
        let kind = match &over {
            None => ChangeKind::Insert,
            Some(there) => {
                entity.riders = riders_over(there).map_err(failed)?;
                ChangeKind::Update(Mode::Replace, Some(IfMatch::ETag(there.etag().clone())))
            }
        };
        let error = match commit(table, kind, entity, moving).await {
            Ok(etag) => return with_etag(table, to, etag),
            Err(error) => error,
        };
        // The entry of an index belongs to another entity.
        let is_of_keys = error.is_out_of_date() && !error.has_details();
        if !is_of_keys && !error.is_ambiguous() {
            return Err(error);
        }
        is_ambiguous |= error.is_ambiguous();
        let error = error.without_batch_index();
        let unknown = |error: Error, current| Err(error.into_outcome_unknown(current));
        let there = match current(table, &moving.inserted).await {
            Ok(there) => Some(there),
            Err(missing) if missing.is_not_found() => None,
            Err(_) if error.is_ambiguous() => return unknown(error, CurrentState::Unread),
            Err(error) => return Err(error),
        };
        let here = match read(table, from).await {
            Ok(here) => Some(here.etag),
            Err(missing) if missing.is_not_found() => None,
            Err(_) if error.is_ambiguous() => return unknown(error, CurrentState::Unread),
            Err(error) => return Err(error),
        };
        let is_here = here.as_ref().is_some_and(|etag| moving.is_version(etag));
        match there {
            // By an attempt whose response was lost, by a copy of the request, or by another client
            // that has made the same move.
            Some(there) if here.is_none() && there.equals_sent() => {
                return Ok(there.etag().clone());
            }
            // Perhaps it was moved, and another entity was inserted under its former key.
            Some(there) if !is_here && there.equals_sent() => {
                return unknown(error.with_key(to), CurrentState::Present(there));
            }
            // No attempt was carried out, and a late one is refused if this one is carried out.
            there if is_here && error.is_out_of_date() && round < ROUNDS && may_write(&there) => {
                over = there;
            }
            there if is_ambiguous => {
                let there = there.map_or(CurrentState::Missing, CurrentState::Present);
                return unknown(error.with_key(to), there);
            }
            _ if here.is_none() => {
                let error = Error::service(ErrorCode::ResourceNotFound);
                let error = error.with_operation(OPERATION).with_key(from);
                return Err(table.pipeline.locate(error));
            }
            _ if !is_here => return Err(changed(table, from)),
            Some(there) => {
                let error = Error::service(ErrorCode::EntityAlreadyExists);
                return Err(failed(error.with_current(CurrentState::Present(there))));
            }
            None => return Err(error),
        }
    }
}

/// Writes the entity and deletes it under its former key, in one transaction. Returns the new ETag
/// of the entity. An [ambiguous](Error::is_ambiguous) error is not resolved.
async fn commit(
    table: &Table,
    kind: ChangeKind,
    entity: EncodedEntity,
    moving: &Moving,
) -> Result<Option<ETag>, Error> {
    let written = EntityChange::new(OPERATION, table, kind, entity).await;
    let written = written.map_err(|error| table.pipeline.locate(error))?;
    let kind = ChangeKind::Delete(moving.if_match.clone());
    let deleted = EntityChange::new(OPERATION, table, kind, moving.deleted.clone()).await;
    let changes = [
        written,
        deleted.map_err(|error| table.pipeline.locate(error))?,
    ];
    let mut run = table.pipeline.begin(OPERATION);
    let commit = Commit {
        table: &table.checked_name(OPERATION)?,
        partition: moving.deleted.key.partition_key(),
        changes: &changes,
        riders: const { &Riders::NONE },
        exactly_once: None,
    };
    let committed = commit_changes(&mut run, commit).await;
    let committed = committed.map(|etags| etags.into_iter().next().flatten());
    let expected = |error: &&Error| error.is_out_of_date();
    if let Some(error) = committed.as_ref().err().filter(expected) {
        run.note_expected_error(error);
    }
    run.report().entities = 1;
    run.end(committed)
}
