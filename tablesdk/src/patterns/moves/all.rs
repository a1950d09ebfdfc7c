//! `move_to` of a query: moves what the query finds, by way of a bulk run of inserts, each batch of
//! which is followed by its deletes.

use std::collections::HashMap;
use std::future::ready;
use std::mem::take;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tablesdk_protocol::{ETag, IfMatch};

use super::entity::{Moving, OPERATION, check_tables, move_version, remove_copy, with_options};
use crate::action::bulk::input::{Input, Inputs};
use crate::action::bulk::pack::Item;
use crate::action::bulk::report::{Cause, Outcome, ReportBuilder};
use crate::action::bulk::run::{BulkRun, SentBatch};
use crate::action::bulk::send::{BatchOutcome, MAX_REJECTIONS, Verb, batch, is_rejection, send};
use crate::action::bulk::{BulkError, BulkReport};
use crate::action::extend::ride::Riders;
use crate::action::query_entities::QueryEntities;
use crate::action::refusal::refused;
use crate::action::write::encoded::EncodedEntity;
use crate::entity::standalone::check_standalone;
use crate::entity::{DynamicEntity, Stored, TableEntity, write_stamped};
use crate::error::CurrentState;
use crate::patterns::encryption::check_not_resolved;
use crate::pipeline::Table;
use crate::query::{Keys, Resolve, Selection};

/// Moves what a query finds into another table. See
/// [`QueryEntities::move_to`](crate::action::QueryEntities::move_to).
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// # for id in ["1", "2", "3"] {
/// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
/// # }
/// let archive = service.table("Archive");
/// archive.create_table().await?;
/// archive.insert(&Employee::new("Sales", "1", "Grace")).await?;
///
/// let sales = || table.query::<Employee>().partition("Sales");
/// let report = sales().move_to(&archive).concurrency(4).await?;
/// assert_eq!((report.progress().written, report.progress().failed), (2, 1), "the archive has another 1");
/// assert!(report.failures()[0].error().is_conflict());
///
/// let report = sales().move_to(&archive).overwrite().await?;
/// assert_eq!(report.progress().written, 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "actions do nothing until awaited"]
pub struct MoveAll<'a> {
    table: Table,
    /// The bulk run into the target.
    bulk: BulkRun<'a>,
    /// The query; the argument says whether only keys are needed.
    find: Box<dyn FnOnce(Table, bool) -> Inputs<'a> + Send + 'a>,
    overwrite: bool,
}

impl MoveAll<'_> {
    pub(crate) fn new<E: TableEntity, S: Selection<E>>(
        mut query: QueryEntities<E, S>,
        target: Table,
    ) -> Self {
        const { check_standalone::<E>() }
        let table = query.table.clone();
        Self {
            bulk: BulkRun::new(target.clone()),
            table,
            find: Box::new(move |table, only_keys| {
                let of_target = check_not_resolved(const { &E::SCHEMA }, &target);
                if let Err(error) = check_not_resolved(const { &E::SCHEMA }, &table).and(of_target)
                {
                    return stream::once(ready(Err(error.into()))).boxed();
                }
                query.table = table.at_primary();
                if only_keys {
                    let keys = query.map_selection(|_| Keys { with_etag: false });
                    let keys = keys
                        .stream()
                        .map_ok(|(key, _)| Ok((EncodedEntity::of_key(key), None)));
                    return keys.map_err(Into::into).boxed();
                }
                // Whatever the query selects, all properties are moved.
                let whole = query.map_selection(|_| Resolve::new(Ok));
                whole
                    .stream()
                    .map_ok(|entity| encode(&entity))
                    .map_err(Into::into)
                    .boxed()
            }),
            overwrite: false,
        }
    }

    /// Replaces other entities that the target has under the keys. Without this option, they are
    /// failures.
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
        check_tables(&table, &bulk.table).map_err(|error| {
            let error = Arc::new(table.pipeline.locate(error));
            BulkError::new(ReportBuilder::new(0).finish(0), Cause::Error(error))
        })?;
        let found = find(table.clone(), bulk.dry_run);
        bulk.table = with_options(bulk.table, &table);
        let send = Box::new(move |target: Table, items| -> SentBatch<'_> {
            let mut table = table.clone();
            table.pipeline.on_busy.clone_from(&target.pipeline.on_busy);
            Box::pin(move_batch(table, target, items, overwrite))
        });
        bulk.with_sender(Verb::Insert, found, send).run().await
    }
}

/// The content that is written into the target, and the ETag under which the entity is deleted.
fn encode(entity: &Stored<DynamicEntity>) -> Input {
    let key = entity.key().clone();
    match write_stamped(&**entity, &key, None) {
        Ok(body) => {
            let if_match = IfMatch::ETag(entity.etag().clone());
            Ok((EncodedEntity::alone(key, body), Some(if_match)))
        }
        Err(error) => Err(refused(OPERATION, error).with_key(&key)),
    }
}

/// Inserts the entities into the target as a batch, and then deletes them. Moves those alone that
/// the target refuses.
async fn move_batch(
    table: Table,
    target: Table,
    mut items: Vec<Item>,
    overwrite: bool,
) -> BatchOutcome {
    let mut moved = BatchOutcome::default();
    let mut alone = Vec::new();
    while let [first, _, ..] = items.as_slice() {
        moved.requests += 1;
        let partition = first.key.partition_key().clone();
        match batch(&target, Verb::Insert, partition, &items).await {
            Ok(inserted) => {
                delete(
                    &table,
                    &target,
                    take(&mut items),
                    inserted.etags(),
                    &mut moved,
                )
                .await;
            }
            Err(error) if is_rejection(&error) => match error.batch_index() {
                Some(index) if index < items.len() && alone.len() < MAX_REJECTIONS => {
                    alone.push(items.remove(index));
                }
                _ => alone.append(&mut items),
            },
            // A response was lost, and the target has the entities.
            Err(error) if matches!(error.current(), Some(CurrentState::Present(_))) => {
                alone.append(&mut items);
            }
            Err(error) => moved.all_failed(&take(&mut items), error),
        }
    }
    alone.append(&mut items);
    one_by_one(&table, &target, &alone, overwrite, &mut moved).await;
    moved
}

/// Deletes what was inserted into the target, and removes the copies of the entities that were
/// changed.
async fn delete(
    table: &Table,
    target: &Table,
    items: Vec<Item>,
    etags: &[Option<ETag>],
    moved: &mut BatchOutcome,
) {
    let keys = items.iter().map(|item| (item.index, item.key.clone()));
    let copies: HashMap<_, _> = keys
        .zip(etags)
        .map(|((index, key), etag)| (index, (key, etag)))
        .collect();
    let deleted = send(table.clone(), Verb::Delete, items, true).await;
    let changed = deleted
        .outcomes
        .iter()
        .filter(|(_, outcome)| matches!(outcome, Outcome::Changed));
    let rejected = deleted
        .failures
        .iter()
        .filter(|failure| failure.is_rejected);
    let stay = changed
        .map(|(index, _)| *index)
        .chain(rejected.map(|failure| failure.index));
    for index in stay {
        // If a response was lost, the entity may have been deleted and then inserted anew: the copy
        // may be all that there is of it.
        if let Some((key, Some(etag))) = copies.get(&index).filter(|_| deleted.ambiguous.is_none())
        {
            moved.requests += 1;
            remove_copy(target, EncodedEntity::of_key(key.clone()), etag.clone()).await;
        }
    }
    moved.add(deleted);
}

async fn one_by_one(
    table: &Table,
    target: &Table,
    items: &[Item],
    overwrite: bool,
    moved: &mut BatchOutcome,
) {
    let mut rest = items;
    while let Some((item, others)) = rest.split_first() {
        moved.requests += 1;
        let moving = Moving {
            if_match: item.if_match(),
            content: item.body.clone(),
            inserted: item.encoded(),
            deleted: EncodedEntity::of_key(item.key.clone()),
            removed: EncodedEntity::of_key(item.key.clone()),
        };
        let no_riders = |_: &_| Ok(Riders::NONE);
        match move_version(table, target, &moving, overwrite, &no_riders).await {
            Ok(_) => moved.outcomes.push((item.index, Outcome::Written)),
            Err(error) if is_rejection(&error) => {
                let outcome = if error.is_precondition_failed() {
                    Some(Outcome::Changed)
                } else {
                    error.is_not_found().then_some(Outcome::Missing)
                };
                match outcome {
                    Some(outcome) => moved.outcomes.push((item.index, outcome)),
                    None => moved.failed(item, &Arc::new(error), true),
                }
            }
            // If the service does not respond to one request, the others are not sent.
            Err(error) => {
                moved.all_failed(rest, error);
                return;
            }
        }
        rest = others;
    }
}

bulk_over_query!(
    MoveAll { table, bulk, overwrite };
    /// Moves nothing.
);
call_options!(impl[] MoveAll<'_>, table.pipeline);
