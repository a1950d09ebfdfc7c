//! `move_keys` of a query: moves what the query finds to the keys that a closure gives them, by way
//! of a bulk run.
//!
//! Within a partition, a transaction moves several entities. Between partitions, a batch inserts
//! several, and batches with markers delete them: as for one entity, it must be certain which
//! client has deleted an entity. An entity that is refused is moved alone.

use std::collections::HashSet;
use std::fmt;
use std::future::ready;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::{ETag, EntityKey};

use super::entity::{Moving, OPERATION, move_version, remove_copy, write};
use super::key::{check_entries, moving, riders_over, with_rest};
use super::together::move_together;
use crate::action::bulk::input::{Input, Inputs};
use crate::action::bulk::pack::Item;
use crate::action::bulk::report::Outcome;
use crate::action::bulk::run::{BulkRun, SentBatch};
use crate::action::bulk::send::{BatchOutcome, MAX_REJECTIONS, Verb, is_rejection};
use crate::action::bulk::{BulkError, BulkReport};
use crate::action::extend::ride::{AlsoWritten, Place, Ride, Riders};
use crate::action::get_entity::stored;
use crate::action::query_entities::QueryEntities;
use crate::action::write::change::ChangeKind;
use crate::action::write::encoded::EncodedEntity;
use crate::action::write::keep_marker::KeepMarker;
use crate::action::{Batch, BatchResult};
use crate::entity::{DynamicEntity, Stored, WritableEntity, write_stamped};
use crate::error::{CurrentEntity, CurrentState, Error};
use crate::patterns::encryption::check_not_resolved;
use crate::pipeline::Table;
use crate::query::{Resolve, Selection};

/// Moves what a query finds to other keys. See
/// [`QueryEntities::move_keys`](crate::action::QueryEntities::move_keys).
#[must_use = "actions do nothing until awaited"]
pub struct MoveKeys<'a> {
    table: Table,
    bulk: BulkRun<'a>,
    find: Box<dyn FnOnce(Table, Arc<AtomicU64>) -> Inputs<'a> + Send + 'a>,
    overwrite: bool,
}

impl<'a> MoveKeys<'a> {
    pub(crate) fn new<E: WritableEntity, S: Selection<E>>(
        mut query: QueryEntities<E, S>,
        mut change: impl FnMut(&mut E) + Send + 'a,
    ) -> Self {
        let table = query.table.clone();
        let mut bulk = BulkRun::new(table.clone());
        // The marker of the deletes is one of their changes.
        bulk.batch_size = BATCH_CHANGES_MAX - 1;
        Self {
            bulk,
            table,
            find: Box::new(|table, skipped| {
                if let Err(error) = check_not_resolved(const { &E::SCHEMA }, &table) {
                    return stream::once(ready(Err(error.into()))).boxed();
                }
                query.table = table.at_primary();
                let mut met = HashSet::new();
                // Whatever the query selects, all properties are moved.
                let whole = query.map_selection(|_| Resolve::new(Ok));
                let found = whole.stream().map_err(Into::into);
                let moved = found.try_filter_map(move |entity| {
                    ready(Ok(encode(&entity, &mut change, &mut met, &skipped)))
                });
                moved.boxed()
            }),
            overwrite: false,
        }
    }

    /// Replaces other entities that have the new keys. Without this option, they are failures.
    pub const fn overwrite(mut self) -> Self {
        self.overwrite = true;
        self
    }

    async fn run(self) -> Result<BulkReport, BulkError> {
        let Self {
            table,
            mut bulk,
            find,
            overwrite,
        } = self;
        let found = find(table.clone(), Arc::clone(&bulk.skipped));
        bulk.table = table;
        let send = Box::new(move |table, items| -> SentBatch<'a> {
            Box::pin(move_batch(table, items, overwrite))
        });
        bulk.with_sender(Verb::Insert, found, send).run().await
    }
}

bulk_over_query!(
    MoveKeys { table, bulk, overwrite };
    /// Moves nothing, and calls the closure.
);
call_options!(impl[] MoveKeys<'_>, table.pipeline);

/// A rider that carries a move to the function that sends the batch. It is not sent itself.
#[derive(Clone)]
struct Move {
    moving: Arc<Moving>,
    riders_over: fn(&CurrentEntity, &Bytes) -> Result<Riders, Error>,
}

impl Ride for Move {
    fn clone_box(&self) -> Box<dyn Ride> {
        Box::new(self.clone())
    }

    fn also_writes(&self, see: &mut dyn FnMut(AlsoWritten<'_>)) {
        let Moving {
            inserted, deleted, ..
        } = &*self.moving;
        inserted.riders.also_written(&mut *see);
        let is_within = self.moving.is_within();
        let place = |place| if is_within { place } else { Place::Other };
        see(AlsoWritten {
            key: &deleted.key,
            bytes: 0,
            place: place(Place::Same),
        });
        deleted.riders.also_written(|it| {
            see(AlsoWritten {
                place: place(it.place),
                ..it
            });
        });
    }
}

impl fmt::Debug for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Move")
            .field("from", &self.moving.deleted.key)
            .finish_non_exhaustive()
    }
}

/// The move of an entity to the key that the closure gives it; `None` where that is the key that it
/// has, and where this run has moved it there.
fn encode<E: WritableEntity>(
    entity: &Stored<DynamicEntity>,
    change: &mut impl FnMut(&mut E),
    met: &mut HashSet<EntityKey>,
    skipped: &AtomicU64,
) -> Option<Input> {
    let key = entity.key();
    if met.remove(key) {
        return None;
    }
    let mut moved = || -> Result<Option<Moving>, Error> {
        let content = write_stamped(&**entity, key, None).map_err(Error::input)?;
        let (found, rest) = with_rest::<E>(&content, entity.etag())?;
        let mut value: Stored<E> = stored(&content, entity.etag())?;
        change(&mut value);
        let to = value.entity_key().map_err(Error::input)?;
        if to == *key {
            return Ok(None);
        }
        check_entries::<E>().map_err(Error::input)?;
        moving::<E>(&found, content, rest, &value, &to).map(Some)
    };
    let moving = match moved() {
        Ok(Some(moving)) => moving,
        Ok(None) => {
            skipped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Err(error) => return Some(Err(error.with_operation(OPERATION).with_key(key))),
    };
    let to = &moving.inserted.key;
    if may_be_met(key, to) {
        met.insert(to.clone());
    }
    let mut entity = EncodedEntity::alone(to.clone(), moving.inserted.body.clone());
    let if_match = Some(moving.if_match.clone());
    entity.riders.add(Box::new(Move {
        moving: Arc::new(moving),
        riders_over: riders_over::<E>,
    }));
    Some(Ok((entity, if_match)))
}

/// Returns true if the query that has found an entity may find it again under its new key, which is
/// then further on in the order of keys.
fn may_be_met(from: &EntityKey, to: &EntityKey) -> bool {
    let texts = |key: &EntityKey| {
        let (partition, row) = (key.partition_key().as_str(), key.row_key().as_str());
        (partition.to_owned(), row.to_owned())
    };
    let (from, to) = (texts(from), texts(to));
    // Other texts may have another order in the service.
    let is_ascii = [&from.0, &from.1, &to.0, &to.1]
        .iter()
        .all(|it| it.is_ascii());
    !is_ascii || to > from
}

impl Item {
    fn moves(&self) -> &Move {
        let moves = self.riders.find::<Move>();
        moves.expect("each item of this run is a move")
    }

    /// The entity under its former key, which identifies it in the report.
    fn as_found(&self) -> Self {
        Self {
            key: self.moves().moving.deleted.key.clone(),
            ..self.clone()
        }
    }
}

/// An item, and the ETag of its copy under the new key.
type Copied = (Item, Option<ETag>);

async fn move_batch(table: Table, items: Vec<Item>, overwrite: bool) -> BatchOutcome {
    let mut moved = BatchOutcome::default();
    let mut alone = Vec::new();
    let is_within = |item: &Item| item.moves().moving.is_within();
    let (mut within, mut between): (Vec<_>, Vec<_>) = items.into_iter().partition(is_within);
    while let [_, _, ..] = within.as_slice() {
        moved.requests += 1;
        match together(&table, &within).await {
            Ok(_) => written(&take(&mut within), &mut moved),
            Err(error) => refused(error, &mut within, &mut alone, &mut moved),
        }
    }
    while let [_, _, ..] = between.as_slice() {
        moved.requests += 1;
        match insert(&table, &between).await {
            Ok(inserted) => {
                let etags = inserted.etags().iter().cloned();
                let copied = take(&mut between).into_iter().zip(etags).collect();
                delete(&table, copied, &mut moved).await;
            }
            Err(error) => refused(error, &mut between, &mut alone, &mut moved),
        }
    }
    alone.append(&mut within);
    alone.append(&mut between);
    one_by_one(&table, &alone, overwrite, &mut moved).await;
    moved
}

fn written(items: &[Item], moved: &mut BatchOutcome) {
    let written = items.iter().map(|item| (item.index, Outcome::Written));
    moved.outcomes.extend(written);
}

fn all_failed(items: &[Item], error: Error, moved: &mut BatchOutcome) {
    let items: Vec<_> = items.iter().map(Item::as_found).collect();
    moved.all_failed(&items, error);
}

/// Takes out of the items those that have to be moved alone after the error of a batch.
fn refused(error: Error, items: &mut Vec<Item>, alone: &mut Vec<Item>, moved: &mut BatchOutcome) {
    if is_rejection(&error) {
        // In a transaction, the deletes follow the inserts.
        let count = items.len();
        let index = error.batch_index().map(|index| index % count);
        match index {
            Some(index) if alone.len() < MAX_REJECTIONS => alone.push(items.remove(index)),
            _ => alone.append(items),
        }
    } else if matches!(
        error.current(),
        Some(CurrentState::Present(_) | CurrentState::Missing)
    ) {
        // A response was lost, and the service responds again: each move looks at what is stored.
        alone.append(items);
    } else {
        all_failed(&take(items), error, moved);
    }
}

async fn together(table: &Table, items: &[Item]) -> Result<BatchResult, Error> {
    let moves = || items.iter().map(|item| &item.moves().moving);
    let mut batch = inserts(table, items);
    for moving in moves() {
        let kind = ChangeKind::Delete(moving.if_match.clone());
        batch = batch.add(kind, Ok(moving.deleted.clone()), None);
    }
    batch.await
}

async fn insert(table: &Table, items: &[Item]) -> Result<BatchResult, Error> {
    inserts(table, items).await
}

fn inserts(table: &Table, items: &[Item]) -> Batch<'static> {
    let partition = items.first().map(|item| item.key.partition_key().clone());
    let partition = partition.expect("a batch has an item");
    let batch = Batch::new(table.clone(), Ok(partition));
    items.iter().fold(batch, |batch, item| {
        let inserted = item.moves().moving.inserted.clone();
        batch.add(ChangeKind::Insert, Ok(inserted), None)
    })
}

/// Deletes what was inserted under the new keys, and removes the copies of the entities that were
/// changed or deleted by other clients.
async fn delete(table: &Table, copied: Vec<Copied>, moved: &mut BatchOutcome) {
    let mut rest = copied;
    while let Some((first, _)) = rest.first() {
        let partition = first.moves().moving.deleted.key.partition_key().clone();
        // The marker is one of the changes.
        let mut changes = 0;
        let mut batch = Vec::new();
        let mut others = Vec::new();
        for copied in rest {
            let deleted = &copied.0.moves().moving.deleted;
            let mut more = 1;
            deleted
                .riders
                .also_written(|it| more += usize::from(it.place.is_in_request()));
            let fits = batch.is_empty() || changes + more < BATCH_CHANGES_MAX;
            if fits && *deleted.key.partition_key() == partition {
                changes += more;
                batch.push(copied);
            } else {
                others.push(copied);
            }
        }
        rest = others;
        if let Err(error) = delete_of_partition(table, batch, moved).await {
            let rest: Vec<_> = rest.into_iter().map(|(item, _)| item).collect();
            all_failed(&rest, error, moved);
            return;
        }
    }
}

/// Deletes entities of a partition. After an error that is not about one of them, the others are
/// not sent.
async fn delete_of_partition(
    table: &Table,
    mut copied: Vec<Copied>,
    moved: &mut BatchOutcome,
) -> Result<(), Error> {
    while let [(first, _), _, ..] = copied.as_slice() {
        moved.requests += 1;
        let partition = first.moves().moving.deleted.key.partition_key().clone();
        let batch = Batch::new(table.clone(), Ok(partition));
        let batch = copied.iter().fold(batch, |batch, (item, _)| {
            let moving = &item.moves().moving;
            let kind = ChangeKind::Delete(moving.if_match.clone());
            batch.add(kind, Ok(moving.deleted.clone()), None)
        });
        match batch.exactly_once().await {
            Ok(_) => {
                let items: Vec<_> = take(&mut copied).into_iter().map(|it| it.0).collect();
                written(&items, moved);
                return Ok(());
            }
            Err(error) if is_rejection(&error) => {
                match error.batch_index().filter(|index| *index < copied.len()) {
                    Some(index) => stays(table, copied.remove(index), error, moved).await,
                    None => break,
                }
            }
            Err(error) => {
                let items: Vec<_> = copied.into_iter().map(|it| it.0).collect();
                let again = error.for_another_caller();
                all_failed(&items, error, moved);
                return Err(again);
            }
        }
    }
    let mut rest = copied.into_iter();
    while let Some(copied) = rest.next() {
        moved.requests += 1;
        let moving = &copied.0.moves().moving;
        let kind = ChangeKind::Delete(moving.if_match.clone());
        let deleted = moving.deleted.clone();
        let once = Some(KeepMarker::NOT);
        match write(table, kind, deleted, once, is_rejection).await {
            Ok(Ok(_)) => written(&[copied.0], moved),
            Ok(Err(error)) => stays(table, copied, error, moved).await,
            Err(error) => {
                let items: Vec<_> = [copied].into_iter().chain(rest).map(|it| it.0).collect();
                let again = error.for_another_caller();
                all_failed(&items, error, moved);
                return Err(again);
            }
        }
    }
    Ok(())
}

/// Removes the copy of an entity that this run may not delete under its former key.
async fn stays(table: &Table, (item, etag): Copied, error: Error, moved: &mut BatchOutcome) {
    if let Some(etag) = etag {
        moved.requests += 1;
        remove_copy(table, item.moves().moving.removed.clone(), etag).await;
    }
    refused_alone(&item, error, moved);
}

fn refused_alone(item: &Item, error: Error, moved: &mut BatchOutcome) {
    if error.is_precondition_failed() {
        moved.outcomes.push((item.index, Outcome::Changed));
    } else if error.is_not_found() {
        moved.outcomes.push((item.index, Outcome::Missing));
    } else {
        moved.failed(&item.as_found(), &Arc::new(error), true);
    }
}

async fn one_by_one(table: &Table, items: &[Item], overwrite: bool, moved: &mut BatchOutcome) {
    let mut rest = items;
    while let Some((item, others)) = rest.split_first() {
        moved.requests += 1;
        let Move {
            moving,
            riders_over,
        } = item.moves();
        let over = |there: &CurrentEntity| riders_over(there, &moving.inserted.body);
        let done = if moving.is_within() {
            move_together(table, moving, overwrite, &over).await
        } else {
            move_version(table, table, moving, overwrite, &over).await
        };
        match done {
            Ok(_) => written(std::slice::from_ref(item), moved),
            Err(error) if is_rejection(&error) => refused_alone(item, error, moved),
            // If the service does not respond to one request, the others are not sent.
            Err(error) => return all_failed(rest, error, moved),
        }
        rest = others;
    }
}
