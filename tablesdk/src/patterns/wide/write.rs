//! Writes a wide entity: all of it in one transaction where it fits, else the siblings first, and
//! then the head.
//!
//! Each write makes a new version, whose siblings have keys of their own. So a version is never
//! changed, and the write of the head, under its ETag, replaces all of the entity: the same
//! transaction deletes the siblings of the version before.

use std::collections::VecDeque;

use bytes::Bytes;
use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, TableName};

use super::intent::{Intent, responds};
use super::layout::{Encoded, Head, Parts, sibling_start};
use super::read::{read_head, sibling_keys};
use crate::action::write::ambiguous_write::resolve;
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::commit::send_together;
use crate::action::write::encoded::EncodedEntity;
use crate::action::write::response::malformed_success;
use crate::entity::is_same_version;
use crate::error::{CurrentState, Error};
use crate::pipeline::{OperationRun, Table};

/// A table that wide entities are written into.
pub(super) struct Writer<'w, 'p> {
    pub(super) run: &'w mut OperationRun<'p>,
    pub(super) table: &'w Table,
    pub(super) name: &'w TableName,
}

/// Why an entity was not written, or may not have been.
pub(super) struct WriteFailure {
    pub(super) error: Error,
    /// Another client has written the entity. Nothing was changed.
    pub(super) is_rival: bool,
}

impl From<Error> for WriteFailure {
    fn from(error: Error) -> Self {
        Self {
            error,
            is_rival: false,
        }
    }
}

/// The write of a wide entity.
#[derive(Clone, Copy)]
enum WideWrite<'w> {
    Delete(&'w EntityKey),
    Put(&'w Parts),
}

impl Writer<'_, '_> {
    /// Writes the entity in place of the version with that head, and returns the new head.
    pub(super) async fn put(
        &mut self,
        parts: &Parts,
        old: Option<&Head>,
    ) -> Result<Head, WriteFailure> {
        let written = self.write(WideWrite::Put(parts), old).await?;
        written.ok_or_else(|| malformed_success("the response has no ETag of the entity").into())
    }

    /// Deletes the version with that head.
    pub(super) async fn delete(&mut self, key: &EntityKey, old: &Head) -> Result<(), WriteFailure> {
        self.write(WideWrite::Delete(key), Some(old))
            .await
            .map(drop)
    }

    async fn write(
        &mut self,
        write: WideWrite<'_>,
        old: Option<&Head>,
    ) -> Result<Option<Head>, WriteFailure> {
        let key = match write {
            WideWrite::Delete(key) => key,
            WideWrite::Put(parts) => &parts.key,
        };
        let mut siblings = old.map(|old| old.siblings.clone()).unwrap_or_default();
        let mut is_known_damaged = false;
        loop {
            let mut version = None;
            let written = match write {
                WideWrite::Delete(key) => {
                    let deleted = self.delete_version(key, old, &siblings).await;
                    deleted.map(|()| None)
                }
                WideWrite::Put(parts) => {
                    let encoded = parts.encode();
                    let encoded =
                        encoded.map_err(|error| self.run.annotate(Error::input(error)))?;
                    version = Some(encoded.version.clone());
                    let etag = self.put_version(&encoded, &parts.key, old, &siblings).await;
                    etag.map(|etag| Some(parts.head(&encoded, etag)))
                }
            };
            let error = match written {
                Err(error) if error.is_out_of_date() => error.with_key(key),
                written => return Ok(written.map_err(|error| error.with_key(key))?),
            };
            // Not every backend names the change that it refuses.
            let now = read_head(self.run, self.table, key).await?;
            // A component in between may send a request twice.
            if version.is_some() && now.as_ref().is_some_and(|now| now.version == version) {
                return Ok(now);
            }
            let is_rival = match (old, &now) {
                // It was deleted since.
                (None, None) => error.is_conflict(),
                (Some(old), Some(now)) => !is_same_version(&old.etag, &now.etag),
                _ => true,
            };
            let Some(version) = old
                .and_then(|old| old.version.as_deref())
                .filter(|_| !is_rival)
            else {
                return Err(WriteFailure { error, is_rival });
            };
            // A sibling that was to be deleted does not exist: the entity is damaged, and can still
            // be written.
            if is_known_damaged || !error.is_not_found() {
                return Err(error.into());
            }
            is_known_damaged = true;
            let start = sibling_start(key.row_key().as_str(), version);
            siblings = sibling_keys(self.run, self.name, key, &start).await?;
        }
    }

    async fn delete_version(
        &mut self,
        key: &EntityKey,
        old: Option<&Head>,
        siblings: &[EntityKey],
    ) -> Result<(), Error> {
        let if_match = old.map_or(IfMatch::Any, |old| IfMatch::ETag(old.etag.clone()));
        let head = self.change(ChangeKind::Delete(if_match), key.clone(), Bytes::new());
        let all: Vec<_> = [head].into_iter().chain(self.deletes(siblings)).collect();
        let Err(error) = send_together(self.run, &all, None).await else {
            return Ok(());
        };
        match self.resolve(all.first(), error).await {
            Err((CurrentState::Missing, _)) => Ok(()),
            Err((current, error)) => Err(error.into_outcome_unknown(current)),
            Ok(error) => Err(error),
        }
    }

    async fn put_version(
        &mut self,
        encoded: &Encoded,
        key: &EntityKey,
        old: Option<&Head>,
        siblings: &[EntityKey],
    ) -> Result<ETag, Error> {
        let kind = match old {
            None => ChangeKind::Insert,
            Some(old) => ChangeKind::Update(Mode::Replace, Some(IfMatch::ETag(old.etag.clone()))),
        };
        let head = self.change(kind, key.clone(), encoded.head.clone());
        let inserts = encoded.siblings.iter();
        let inserts =
            inserts.map(|(key, body)| self.change(ChangeKind::Insert, key.clone(), body.clone()));
        let inserts: VecDeque<_> = inserts.collect();
        let deletes = self.deletes(siblings);
        let all: Vec<_> = [&head]
            .into_iter()
            .chain(&inserts)
            .chain(&deletes)
            .cloned()
            .collect();
        if self.fits(&all) {
            return self.commit(&all).await;
        }
        drop(all);
        self.put_in_stages(encoded, head, inserts, deletes).await
    }

    /// Writes all of a version in one transaction.
    async fn commit(&mut self, all: &[EntityChange]) -> Result<ETag, Error> {
        match self.send(all, 0).await {
            Ok(etag) => Ok(etag),
            Err(error) => match self.resolve(all.first(), error).await {
                // No other write has its version.
                Err((CurrentState::Present(entity), _)) if entity.equals_sent() => {
                    Ok(entity.etag().clone())
                }
                Err((current, error)) => Err(error.into_outcome_unknown(current)),
                Ok(error) => Err(error),
            },
        }
    }

    /// Writes the siblings before the head, under the protection of an intent.
    async fn put_in_stages(
        &mut self,
        encoded: &Encoded,
        head: EntityChange,
        mut inserts: VecDeque<EntityChange>,
        deletes: Vec<EntityChange>,
    ) -> Result<ETag, Error> {
        let intent = Intent::new(self.name, &head.key, &encoded.version);
        let mut intent = intent.map_err(|error| self.run.annotate(error))?;
        loop {
            let mut stage = vec![intent.write().map_err(|error| self.run.annotate(error))?];
            while let Some(insert) = inserts.pop_front() {
                stage.push(insert);
                if stage.len() > 2 && !self.fits(&stage) {
                    inserts.extend(stage.pop());
                    inserts.rotate_right(1);
                    break;
                }
            }
            let sent = self.send(&stage, 0).await;
            if let Err(error) = intent.written(self.run, sent).await {
                if responds(&error) {
                    // What stays is found by a clean-up.
                    drop(intent.discard(self.run).await);
                }
                return Err(error);
            }
            // The siblings that are left go together with the head, if they fit.
            let last = [intent.delete(), head.clone()].into_iter();
            let last: Vec<_> = last
                .chain(inserts.iter().chain(&deletes).cloned())
                .collect();
            if inserts.is_empty() || self.fits(&last) {
                return self.commit_stages(&intent, &last).await;
            }
        }
    }

    /// Writes the head, and deletes the intent.
    async fn commit_stages(
        &mut self,
        intent: &Intent<'_>,
        last: &[EntityChange],
    ) -> Result<ETag, Error> {
        let error = match self.send(last, 1).await {
            Ok(etag) => return Ok(etag),
            Err(error) => error,
        };
        let (current, error) = match self.resolve(last.get(1), error).await {
            Err((CurrentState::Present(entity), _)) if entity.equals_sent() => {
                return Ok(entity.etag().clone());
            }
            Err((current, error)) => (Some(current), error),
            Ok(error) => (None, error),
        };
        // Without its intent, the version cannot be committed any more.
        let is_discarded = if responds(&error) {
            intent.discard(self.run).await.ok()
        } else {
            None
        };
        match (current, is_discarded) {
            (None, Some(false)) if error.is_out_of_date() => {
                // A component in between may have sent the request twice.
                let now = read_head(self.run, self.table, intent.entity()).await?;
                let ours = now.filter(|now| now.version.as_deref() == Some(intent.version()));
                ours.map(|ours| ours.etag)
                    .ok_or_else(|| intent.lost(self.run))
            }
            (None, _) | (_, Some(true)) => Err(error.into_not_done()),
            (Some(current), _) => Err(error.into_outcome_unknown(current)),
        }
    }

    /// Sends changes, and returns the new ETag of one of them.
    async fn send(&mut self, changes: &[EntityChange], index: usize) -> Result<ETag, Error> {
        let mut etags = send_together(self.run, changes, None)
            .await
            .map_err(Error::without_batch_index)?;
        let etag = etags.get_mut(index).and_then(Option::take);
        etag.ok_or_else(|| malformed_success("the response has no ETag of the entity"))
    }

    /// The current state of the entity, after a write that may have been carried out; else the
    /// error.
    async fn resolve(
        &mut self,
        head: Option<&EntityChange>,
        error: Error,
    ) -> Result<Error, (CurrentState, Error)> {
        let Some(head) = head else { return Ok(error) };
        match resolve(self.run, head, error.without_batch_index()).await {
            Ok(ambiguous) => Err(ambiguous),
            Err(error) => Ok(error),
        }
    }

    fn change(&self, kind: ChangeKind, key: EntityKey, body: Bytes) -> EntityChange {
        EntityChange::of(self.name.clone(), kind, EncodedEntity::alone(key, body))
    }

    fn deletes(&self, siblings: &[EntityKey]) -> Vec<EntityChange> {
        let delete = |key: &EntityKey| {
            self.change(ChangeKind::Delete(IfMatch::Any), key.clone(), Bytes::new())
        };
        siblings.iter().map(delete).collect()
    }

    /// Returns true if one transaction can have the changes.
    fn fits(&self, changes: &[EntityChange]) -> bool {
        let bytes = changes
            .iter()
            .filter_map(EntityChange::body)
            .map(Bytes::len)
            .sum::<usize>();
        let encoded = || {
            self.run
                .pipeline()
                .encode_batch(changes.iter().map(|change| &change.change))
        };
        let limit = self.run.pipeline().batch_bytes_max();
        changes.len() <= BATCH_CHANGES_MAX && bytes <= limit && encoded().body().len() <= limit
    }
}
