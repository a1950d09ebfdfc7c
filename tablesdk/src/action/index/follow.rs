//! `follow`: reads entries of an index, and then the entities that have them.

use std::fmt;
use std::future::ready;
use std::marker::PhantomData;

use futures_util::StreamExt as _;
use tablesdk_protocol::{ETag, EntityKey};

use crate::action::get_entity::{find, hides_expired};
use crate::action::query_entities::QueryEntities;
use crate::entity::encrypted::encrypted;
use crate::entity::{EntityError, IndexEntry, Schema, Stored, TableEntity};
use crate::error::Error;
use crate::pipeline::{OperationRun, Table};
use crate::query::EntityStream;

/// Reads the entity that has an entry of an index. See [`GetEntity::follow`](crate::action::GetEntity::follow).
#[must_use = "actions do nothing until awaited"]
pub struct FollowEntry<I> {
    table: Table,
    key: Result<EntityKey, EntityError>,
    including_expired: bool,
    entry: PhantomData<fn() -> I>,
}

impl<I: IndexEntry> FollowEntry<I> {
    pub(in crate::action) const fn new(
        table: Table,
        key: Result<EntityKey, EntityError>,
        including_expired: bool,
    ) -> Self {
        Self {
            table,
            key,
            including_expired,
            entry: PhantomData,
        }
    }

    async fn run(self) -> Result<Option<Stored<I::Entity>>, Error> {
        let key = self.key.map_err(Error::input);
        let key = key.map_err(|error| error.with_operation(OPERATION))?;
        let mut run = self.table.pipeline.begin(OPERATION);
        // An entry in another partition may be out of date: the entity shows whether it is expired.
        let entry = match read::<I>(&mut run, &self.table, &key, None).await {
            Ok(Some(entry)) => Followed::of(&entry, self.including_expired),
            Ok(None) => return run.end(Ok(None)),
            Err(error) => return run.end(Err(error)),
        };
        let entity = entry.read::<I>(&mut run, &self.table).await;
        run.end(entity)
    }
}

/// Reads an entry of an index as it is. See [`GetEntity::unverified`](crate::action::GetEntity::unverified).
#[must_use = "actions do nothing until awaited"]
pub struct UnverifiedEntry<I> {
    table: Table,
    key: Result<EntityKey, EntityError>,
    hides_expired: Option<&'static Schema>,
    entry: PhantomData<fn() -> I>,
}

impl<I: IndexEntry> UnverifiedEntry<I> {
    pub(in crate::action) const fn new(
        table: Table,
        key: Result<EntityKey, EntityError>,
        hides_expired: Option<&'static Schema>,
    ) -> Self {
        Self {
            table,
            key,
            hides_expired,
            entry: PhantomData,
        }
    }

    async fn run(self) -> Result<Option<Stored<I>>, Error> {
        let key = self.key.map_err(Error::input);
        let key = key.map_err(|error| error.with_operation(READ))?;
        let mut run = self.table.pipeline.begin(READ);
        let entry = read::<I>(&mut run, &self.table, &key, self.hides_expired).await;
        run.end(entry)
    }
}

action!(impl[I: IndexEntry] UnverifiedEntry<I>, table.pipeline => Option<Stored<I>>);
debug_by_fields!(UnverifiedEntry<I> { table, key });

/// Reads the entities that have the entries of an index which a query finds. See
/// [`QueryEntities::follow`](crate::action::QueryEntities::follow).
#[must_use = "a query does nothing until it is read"]
pub struct FollowEntries<I> {
    query: QueryEntities<I>,
}

impl<I: IndexEntry> FollowEntries<I> {
    pub(in crate::action) const fn new(query: QueryEntities<I>) -> Self {
        Self { query }
    }

    /// The entities as a stream, in the order of their entries; up to eight are read at a time. The stream yields an error for an entry or
    /// an entity that cannot be read, and continues. Any other error ends it.
    pub fn stream(self) -> EntityStream<Stored<I::Entity>> {
        let table = self.query.table.clone();
        let including_expired = self.query.including_expired;
        let mut query = self.query;
        // An entry in another partition may be out of date: the entity shows whether it is expired.
        query.including_expired |= I::SCHEMA.is_elsewhere();
        let entities = query.unverified().stream().map(move |entry| {
            let table = table.clone();
            let entry = entry.map(|entry| Followed::of(&entry, including_expired));
            async move {
                let entry = entry?;
                let mut run = table.pipeline.begin(OPERATION);
                let entity = entry.read::<I>(&mut run, &table).await;
                run.end(entity)
                    .map_err(|error| table.pipeline.locate(error))
            }
        });
        let entities = entities.buffered(PARALLEL);
        let entities = entities.filter_map(|entity| ready(entity.transpose()));
        EntityStream::first(None, entities)
    }

    /// All entities at once.
    ///
    /// # Errors
    ///
    /// As [`QueryEntities::collect`](crate::action::QueryEntities::collect).
    pub async fn collect(self) -> Result<Vec<Stored<I::Entity>>, Error> {
        self.stream().collect_all().await
    }
}

impl<I> fmt::Debug for FollowEntries<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FollowEntries").finish_non_exhaustive()
    }
}

/// An entry, and the key of the entity to which it leads.
struct Followed {
    entry: EntityKey,
    etag: ETag,
    entity: Result<EntityKey, EntityError>,
    including_expired: bool,
}

impl Followed {
    fn of<I: IndexEntry>(entry: &Stored<I>, including_expired: bool) -> Self {
        Self {
            entry: entry.key().clone(),
            etag: entry.etag().clone(),
            entity: entry.key_of_entity(),
            including_expired,
        }
    }

    /// The entity, if there is one that has the entry.
    async fn read<I: IndexEntry>(
        mut self,
        run: &mut OperationRun<'_>,
        table: &Table,
    ) -> Result<Option<Stored<I::Entity>>, Error> {
        for _ in 0..ROUNDS {
            let Self {
                entry,
                etag,
                entity,
                including_expired,
            } = self;
            let hides_expired = hides_expired::<I::Entity>().filter(|_| !including_expired);
            let key =
                entity.map_err(|error| run.annotate(Error::entity(error)).with_key(&entry))?;
            let entity = read::<I::Entity>(run, table, &key, hides_expired).await?;
            if let Some(entity) = entity.filter(|entity| entity.has_entry(&entry)) {
                return Ok(Some(entity));
            }
            // Another entity may have got the entry since it was read.
            self = match read::<I>(run, table, &entry, None).await? {
                Some(again) if *again.etag() != etag => Self::of(&again, including_expired),
                _ => break,
            };
        }
        Ok(None)
    }
}

async fn read<E: TableEntity>(
    run: &mut OperationRun<'_>,
    table: &Table,
    key: &EntityKey,
    hides_expired: Option<&'static Schema>,
) -> Result<Option<Stored<E>>, Error> {
    let found = find(run, table, key, None, hides_expired, encrypted::<E>()).await?;
    Ok(found.map(|(entity, _)| entity))
}

action!(impl[I: IndexEntry] FollowEntry<I>, table.pipeline => Option<Stored<I::Entity>>);
debug_by_fields!(FollowEntry<I> { table, key });

const OPERATION: &str = "follow entry";
const READ: &str = "get entity";
/// How many entities are read at a time.
const PARALLEL: usize = 8;
/// How often an entry is read that other clients pass on.
const ROUNDS: usize = 16;
