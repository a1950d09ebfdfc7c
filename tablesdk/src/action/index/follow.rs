//! `get(…).follow()`: reads an entry of an index, and then the entity that has it.

use std::marker::PhantomData;

use tablesdk_protocol::EntityKey;

use crate::action::get_entity::{fetch, stored};
use crate::entity::index::EntryKeys;
use crate::entity::{EntityError, IndexEntry, Stored, TableEntity};
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun, Table};

/// Reads the entity that has an entry of an index. See [`GetEntity::follow`](crate::action::GetEntity::follow).
#[must_use = "actions do nothing until awaited"]
pub struct FollowEntry<I> {
    table: Table,
    key: Result<EntityKey, EntityError>,
    entry: PhantomData<fn() -> I>,
}

impl<I: IndexEntry> FollowEntry<I> {
    pub(in crate::action) const fn new(table: Table, key: Result<EntityKey, EntityError>) -> Self {
        Self {
            table,
            key,
            entry: PhantomData,
        }
    }

    async fn run(self) -> Result<Option<Stored<I::Entity>>, Error> {
        let key = self.key.map_err(Error::input);
        let key = key.map_err(|error| error.with_operation(OPERATION))?;
        let mut run = self.table.pipeline.begin(OPERATION);
        let followed = follow::<I>(&mut run, &self.table, &key).await;
        run.end(followed)
    }
}

async fn follow<I: IndexEntry>(
    run: &mut OperationRun<'_>,
    table: &Table,
    key: &EntityKey,
) -> Result<Option<Stored<I::Entity>>, Error> {
    let Some(entry) = read::<I>(run, table, key).await? else {
        return Ok(None);
    };
    let of_entity = entry.key_of_entity();
    let of_entity = of_entity.map_err(|error| run.annotate(Error::entity(error)).with_key(key))?;
    let Some(entity) = read::<I::Entity>(run, table, &of_entity).await? else {
        return Ok(None);
    };
    // The entry may have been read before the entity was written.
    let entries = EntryKeys::of::<I::Entity>(&entity);
    Ok(entries.contains(key).then_some(entity))
}

async fn read<E: TableEntity>(
    run: &mut OperationRun<'_>,
    table: &Table,
    key: &EntityKey,
) -> Result<Option<Stored<E>>, Error> {
    match fetch(run, Effect::Read, table, key, None).await {
        Ok((content, etag)) => match stored(&content, etag.as_ref()) {
            Ok(entity) => Ok(Some(entity)),
            Err(error) => Err(run.annotate(error).with_key(key)),
        },
        // A missing table is an error, a missing entity is not.
        Err(error) if error.is_not_found() => {
            run.note_expected_error(&error);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

action!(impl[I: IndexEntry] FollowEntry<I>, table.pipeline => Option<Stored<I::Entity>>);
debug_by_fields!(FollowEntry<I> { table, key });

const OPERATION: &str = "follow entry";
