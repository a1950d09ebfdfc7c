//! `tracked` and `changed_only`: reads an entity, keeps what came, and writes what differs from it.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use bytes::Bytes;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::wire::json::{JsonEntity, read_entity};
use tablesdk_protocol::{EntityKey, IfMatch, Value};

use super::exactly_once::KeepMarker;
use super::get_entity::{read, refused};
use super::modify::{left_as_is, unmodelled};
use super::update_entity::{operation, send};
use super::{ActionFuture, EncodedEntity};
use crate::entity::{
    EntityError, Stored, WritableEntity, write_entity, write_entity_with, write_values,
};
use crate::error::Error;
use crate::pipeline::Table;

/// Reads one entity and keeps what came. See [`GetEntity::tracked`](super::GetEntity::tracked).
#[must_use = "actions do nothing until awaited"]
pub struct GetTracked<E> {
    table: Table,
    key: Result<EntityKey, EntityError>,
    marker: PhantomData<fn() -> E>,
}

impl<E: WritableEntity> GetTracked<E> {
    pub(super) const fn new(table: Table, key: Result<EntityKey, EntityError>) -> Self {
        Self {
            table,
            key,
            marker: PhantomData,
        }
    }

    async fn run(self) -> Result<Option<Stored<E>>, Error> {
        let key = self.key.map_err(refused)?;
        let read = read::<E>(&self.table, &key, None).await?;
        Ok(read.map(|(mut stored, content)| {
            stored.track(content);
            stored
        }))
    }
}

impl<E: WritableEntity> IntoFuture for GetTracked<E> {
    type Output = Result<Option<Stored<E>>, Error>;
    type IntoFuture = ActionFuture<'static, Option<Stored<E>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<E> fmt::Debug for GetTracked<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetTracked")
            .field("table", &self.table)
            .field("key", &self.key)
            .finish()
    }
}

/// Writes what changed since an entity was read. See [`ReplaceStored::changed_only`](super::ReplaceStored::changed_only).
#[derive(Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct MergeChanged<'e, E> {
    table: Table,
    mode: Mode,
    entity: &'e mut Stored<E>,
    once: Option<KeepMarker>,
}

impl<'e, E: WritableEntity> MergeChanged<'e, E> {
    pub(super) const fn new(
        table: Table,
        mode: Mode,
        entity: &'e mut Stored<E>,
        once: Option<KeepMarker>,
    ) -> Self {
        Self {
            table,
            mode,
            entity,
            once,
        }
    }

    /// Determines the outcome even when responses are lost. See [the guide](crate::guide::errors_and_retries#exactly-once) for what
    /// it costs.
    pub const fn exactly_once(mut self) -> Self {
        self.once = KeepMarker::unless_chosen(self.once);
        self
    }

    /// As `exactly_once`, and keeps the marker for at least that long. A duplicate of the request that arrives within that time has
    /// no effect. See [`InsertEntity::keep_marker`](super::InsertEntity::keep_marker).
    pub const fn keep_marker(mut self, time: Duration) -> Self {
        self.once = Some(KeepMarker(time));
        self
    }
}

impl<'e, E: WritableEntity> IntoFuture for MergeChanged<'e, E> {
    type Output = Result<(), Error>;
    type IntoFuture = ActionFuture<'e, ()>;

    fn into_future(self) -> Self::IntoFuture {
        let Self {
            table,
            mode,
            entity,
            once,
        } = self;
        let if_match = IfMatch::ETag(entity.etag().clone());
        let changes = match mode {
            Mode::Merge => changes(entity),
            Mode::Replace => Err(Error::input(Problem::Replace)),
        };
        let changes = changes.map_err(|error| {
            let operation = operation(mode, Some(&if_match));
            error.with_operation(operation).with_key(entity.key())
        });
        Box::pin(async move {
            let Some(Changes {
                mode,
                encoded,
                after,
            }) = changes?
            else {
                return Ok(());
            };
            let mut run = table.begin(operation(mode, Some(&if_match)));
            let etag = send(&mut run, &table, mode, Some(if_match), encoded, once).await;
            entity.written(run.end(etag)?);
            entity.track(after);
            Ok(())
        })
    }
}

/// What is to be written.
struct Changes {
    mode: Mode,
    encoded: EncodedEntity,
    /// What is stored then.
    after: Bytes,
}

/// What differs from what was read; `None` when nothing does.
fn changes<E: WritableEntity>(entity: &Stored<E>) -> Result<Option<Changes>, Error> {
    let key = entity.unchanged_key().map_err(Error::input)?.clone();
    let fetched = entity.tracked();
    let fetched = fetched.ok_or_else(|| Error::input(Problem::Untracked))?;
    let fetched = read_entity(fetched).map_err(Error::input)?;
    // The response is kept and not the value, because the value has no place for properties that the struct does not model, and a
    // replace must write those back.
    // What was read, as it would be written: what the type does not keep apart is no change.
    let before = Stored::<E>::read(&fetched, Some(entity.etag().clone()));
    let before = before.map_err(Error::input)?;
    let unmodelled = unmodelled(&before, &fetched)?;
    let before = write_entity::<E>(&before, &key).map_err(Error::input)?;
    let now = write_entity::<E>(entity, &key).map_err(Error::input)?;
    let (before, now) = (read_entity(&before), read_entity(&now));
    let (before, now) = (before.map_err(Error::input)?, now.map_err(Error::input)?);
    let rest = left_as_is::<E>(unmodelled.clone(), entity, &now);
    // Of what is stored, the value says that it is not there: it said so before, or has become a variant that knows it.
    let is_gone = |(name, _): &(String, Value)| now.property(name).is_none();
    let is_left = |(name, _): &(String, Value)| rest.iter().any(|(known, _)| known == name);
    let unmodelled_is_gone = |property| is_gone(property) && !is_left(property);
    // What is stored as another type, such as an older version, has properties that are not read any more.
    let type_property = entity.schema_of_value().type_property();
    let has_another_type =
        type_property.is_some_and(|name| fetched.text(name).ok() != now.text(name).ok());
    let before = properties(&before)?;
    let has_lost = before.iter().any(is_gone) || unmodelled.iter().any(unmodelled_is_gone);
    let now = properties(&now)?.into_iter();
    let changed: Vec<_> = now.filter(|property| !before.contains(property)).collect();
    if changed.is_empty() && !has_lost {
        return Ok(None);
    }
    let after = write_entity_with::<E>(entity, &key, &rest).map_err(Error::input)?;
    // A merge can take nothing away.
    let (mode, body) = if has_lost || has_another_type {
        (Mode::Replace, after.clone())
    } else {
        let body = write_values(&key, &changed).map_err(Error::input)?;
        (Mode::Merge, body)
    };
    let encoded = EncodedEntity { key, body };
    Ok(Some(Changes {
        mode,
        encoded,
        after,
    }))
}

fn properties(entity: &JsonEntity<'_>) -> Result<Vec<(String, Value)>, Error> {
    let mut properties = Vec::new();
    for property in entity.properties() {
        if let Some(value) = property.to_value().map_err(Error::input)? {
            properties.push((property.name().to_owned(), value));
        }
    }
    Ok(properties)
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Problem {
    #[error("a replace writes everything: `changed_only` is for a merge")]
    Replace,
    #[error(
        "what was read is not known: read the entity with `get(…).tracked()`, and write it with `changed_only` alone"
    )]
    Untracked,
}
