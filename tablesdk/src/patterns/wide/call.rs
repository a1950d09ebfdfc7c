//! The verbs of a wide table, each within one operation.

use std::time::Duration;

use tablesdk_protocol::{ETag, EntityKey, ErrorCode, PartitionKey, TableName, Timestamp};

use super::entity::WideEntity;
use super::layout::{Head, Parts};
use super::read::{WideContent, read_head, selected, whole};
use super::write::{WriteFailure, Writer};
use super::{StoredWide, intent};
use crate::action::insert_entity::{Unreadable, Unshown};
use crate::entity::{EntityError, Schema, check_unchanged};
use crate::error::{ClosureError, Error};
use crate::patterns::encryption::check_not_resolved;
use crate::pipeline::{Effect, OperationRun, Table};
use crate::query::Selection;

/// A running operation.
pub(super) struct Call<'t> {
    run: OperationRun<'t>,
    table: &'t Table,
    name: TableName,
}

impl<'t> Call<'t> {
    pub(super) fn begin(
        schema: &Schema,
        table: &'t Table,
        operation: &'static str,
    ) -> Result<Self, Error> {
        let name = table.checked_name(operation)?;
        check_not_resolved(schema, table).map_err(|error| error.with_operation(operation))?;
        let run = table.pipeline.begin(operation);
        Ok(Self { run, table, name })
    }

    pub(super) fn end<T>(self, result: Result<T, Error>) -> Result<T, Error> {
        self.run.end(result)
    }

    pub(super) async fn insert<E: WideEntity>(
        &mut self,
        parts: Result<Parts, EntityError>,
    ) -> Result<StoredWide<E>, Error> {
        let parts = self.checked(parts)?;
        // Before it is sent: afterwards, only the service may cause a failure.
        let no_etag = ETag::from_timestamp(Timestamp::UNIX_EPOCH);
        let read = parts.found(Head::unwritten(no_etag)).into_stored::<E>();
        let mut inserted = read.map_err(|error| {
            let source = error.why().into();
            self.run.annotate(Error::input(Unreadable { source }))
        })?;
        let head = self.writer().put(&parts, None).await;
        let head = head.map_err(|failure| failure.error)?;
        if head.etag.timestamp().is_some() {
            inserted.written(head);
            return Ok(inserted);
        }
        // The ETags of this backend do not contain the time, which a field may need.
        let etag = head.etag.clone();
        parts.found(head).into_stored().map_err(|error| {
            let why = error.why();
            self.run.annotate(Error::response(Unshown { etag, why }))
        })
    }

    pub(super) async fn get<E: WideEntity>(
        &mut self,
        key: Result<EntityKey, EntityError>,
    ) -> Result<Option<StoredWide<E>>, Error> {
        let key = self.checked(key)?;
        let found = whole(&mut self.run, &self.name, &key, Effect::Read).await?;
        let found = found.map(WideContent::into_stored).transpose();
        found.map_err(|error| self.run.annotate(error))
    }

    pub(super) async fn select<E, S: Selection<E>>(
        &mut self,
        key: Result<EntityKey, EntityError>,
        selection: &S,
    ) -> Result<Option<S::Item>, Error> {
        let key = self.checked(key)?;
        let names = selection.names().unwrap_or_default();
        let found = selected(&mut self.run, self.table, &key, &names).await?;
        let found = found.map(|found| found.select(selection)).transpose();
        found.map_err(|error| self.run.annotate(error))
    }

    pub(super) async fn replace<E: WideEntity>(
        &mut self,
        parts: Result<Parts, EntityError>,
        entity: &mut StoredWide<E>,
    ) -> Result<(), Error> {
        let parts = self.checked(parts)?;
        self.checked(check_unchanged(&entity.key, &parts.key))?;
        let head = self.writer().put(&parts, Some(&entity.head)).await;
        entity.written(head.map_err(|failure| failure.error)?);
        Ok(())
    }

    pub(super) async fn upsert_replace(
        &mut self,
        parts: Result<Parts, EntityError>,
    ) -> Result<ETag, Error> {
        let parts = self.checked(parts)?;
        let mut round = 0;
        loop {
            let old = read_head(&mut self.run, self.table, &parts.key).await?;
            match self.writer().put(&parts, old.as_ref()).await {
                Ok(head) => return Ok(head.etag),
                Err(failure) => self.next_round(failure, &mut round).await?,
            }
        }
    }

    pub(super) async fn modify<E: WideEntity>(
        &mut self,
        key: Result<EntityKey, EntityError>,
        mut change: impl FnMut(&mut E) -> Result<(), ClosureError>,
    ) -> Result<StoredWide<E>, Error> {
        let key = self.checked(key)?;
        let mut round = 0;
        loop {
            let found = whole(&mut self.run, &self.name, &key, Effect::ReadNow).await?;
            let failed = |error: Error| self.run.annotate(error).with_key(&key);
            let missing = || failed(Error::service(ErrorCode::ResourceNotFound));
            let entity = found.ok_or_else(missing)?.into_stored::<E>();
            let mut entity = entity.map_err(failed)?;
            let changed = change(&mut entity.value);
            changed.map_err(|error| failed(Error::aborted(error)))?;
            let parts = self.checked(Parts::of(&entity.value))?;
            self.checked(check_unchanged(&key, &parts.key))?;
            match self.writer().put(&parts, Some(&entity.head)).await {
                Ok(head) => {
                    entity.written(head);
                    return Ok(entity);
                }
                Err(failure) => self.next_round(failure, &mut round).await?,
            }
        }
    }

    pub(super) async fn delete(
        &mut self,
        key: Result<EntityKey, EntityError>,
    ) -> Result<bool, Error> {
        let key = self.checked(key)?;
        let mut round = 0;
        loop {
            let Some(old) = read_head(&mut self.run, self.table, &key).await? else {
                return Ok(false);
            };
            match self.writer().delete(&key, &old).await {
                Ok(()) => return Ok(true),
                Err(failure) => self.next_round(failure, &mut round).await?,
            }
        }
    }

    pub(super) async fn delete_version(
        &mut self,
        key: &EntityKey,
        head: &Head,
    ) -> Result<bool, Error> {
        match self.writer().delete(key, head).await {
            Ok(()) => Ok(true),
            Err(failure) if failure.error.is_not_found() => Ok(false),
            Err(failure) => Err(failure.error),
        }
    }

    pub(super) async fn clean_up(
        &mut self,
        partition: Result<PartitionKey, EntityError>,
        older_than: Duration,
    ) -> Result<usize, Error> {
        let partition = self.checked(partition)?;
        intent::clean_up(&mut self.run, &self.name, &partition, older_than).await
    }

    fn checked<T>(&self, input: Result<T, EntityError>) -> Result<T, Error> {
        input.map_err(|error| self.run.annotate(Error::input(error)))
    }

    const fn writer(&mut self) -> Writer<'_, 't> {
        Writer {
            run: &mut self.run,
            table: self.table,
            name: &self.name,
        }
    }

    /// Waits before a write is tried again that met one of another client.
    async fn next_round(&self, failure: WriteFailure, round: &mut u32) -> Result<(), Error> {
        *round += 1;
        let WriteFailure { error, is_rival } = failure;
        let starts_over = is_rival && *round < ROUNDS && self.run.pause_before_round(*round).await;
        if starts_over { Ok(()) } else { Err(error) }
    }
}

/// How often an entity is written that other clients write, too.
const ROUNDS: u32 = 16;
