//! `modify_all`: changes what a query finds with a closure, by way of a bulk run of replaces. An
//! entity that was changed since the query found it is read again, and the closure is called anew.
//!
//! The closure never sees the result of its own call: where a refusal may be due to a copy of the
//! run's own request, the outcome is unknown, unless a marker shows it.

use std::fmt;
use std::future::ready;
use std::mem::take;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::once;
use tablesdk_protocol::continuation::EntityContinuation;
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};
use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::wire::json::EntityCursor;
use tablesdk_protocol::{EntityKey, IfMatch, KeyError, KeyKind, Value};

use super::input::{Input, Inputs, SourceError};
use super::pack::Item;
use super::position::Position;
use super::report::{BulkError, BulkReport, Cause, Outcome, ReportBuilder};
use super::run::{BulkRun, SendBatch, SentBatch};
use super::send::{BatchOutcome, MAX_REJECTIONS, Verb, batch};
use super::send::{is_out_of_range, is_rejection, send_one};
use crate::action::extend::extension::LeftOut;
use crate::action::extend::ride::Ride;
use crate::action::query::conditions::Condition;
use crate::action::query_entities::QueryEntities;
use crate::action::refusal::refused;
use crate::action::write::encoded::EncodedEntity;
use crate::action::write::keep_marker::KeepMarker;
use crate::action::write::unmodelled::{left_as_is, unmodelled};
use crate::entity::standalone::check_no_entry;
use crate::entity::{Stored, WritableEntity, values_of};
use crate::error::{ClosureError, CurrentState, Error, ErrorKind};
use crate::filter::AccessClass;
use crate::pipeline::Table;
use crate::query::{PageToken, ReadBy, Selection, SelectionError, fingerprint, list};

/// Changes what a query finds. See
/// [`QueryEntities::modify_all`](crate::action::QueryEntities::modify_all).
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// # for id in 0..250 {
/// #     table.insert(&Employee::new("Sales", &format!("{id:03}"), "Ada")).await?;
/// # }
/// use tablesdk::query::PageToken;
///
/// let mut stored = String::new();
/// let mut promote = |e: &mut Employee| {
///     e.name.push('!');
///     Ok(())
/// };
/// let sales = || table.query::<Employee>().partition("Sales");
/// let report = sales()
///     .take(150)
///     .modify_all(&mut promote)
///     .concurrency(1)
///     .progress(|progress| {
///         stored = progress.resume_token.as_ref().map(PageToken::to_string).unwrap_or_default();
///     })
///     .await?;
/// assert_eq!(report.progress().written, 150);
///
/// // The others, perhaps in another process.
/// let report = sales().modify_all(&mut promote).resume_at(stored.parse()?).await?;
/// assert_eq!(report.progress().written, 100);
/// assert!(sales().collect().await?.iter().all(|e| e.name == "Ada!"));
/// # Ok(())
/// # }
/// ```
#[must_use = "actions do nothing until awaited"]
pub struct ModifyAll<'a> {
    bulk: BulkRun<'a>,
    start: Start<'a>,
    resume_at: Option<PageToken>,
    exactly_once: Option<KeepMarker>,
}

type Start<'a> = Box<dyn FnOnce(Options) -> BoxFuture<'a, Result<Started<'a>, Error>> + Send + 'a>;

/// The options of a run that its parts need.
struct Options {
    table: Table,
    resume_at: Option<PageToken>,
    exactly_once: Option<KeepMarker>,
    batches: bool,
    skip: Skip,
}

/// Called for each entity that the closure leaves as it is.
type Skip = Box<dyn Fn() + Send>;

/// The parts of a run that know the type of the entities.
struct Started<'a> {
    inputs: Inputs<'a>,
    send: SendBatch<'a>,
    position: Option<Position>,
}

impl<'a> ModifyAll<'a> {
    pub(crate) fn new<E: WritableEntity, S: Selection<E>>(
        query: QueryEntities<E, S>,
        change: impl FnMut(&mut E) -> Result<(), ClosureError> + Send + 'a,
    ) -> Self {
        const { check_no_entry::<E>() }
        let table = query.table.clone();
        let change: Change<'a, E> = Mutex::new(Box::new(change));
        Self {
            bulk: BulkRun::new(table),
            start: Box::new(|options| Box::pin(start(query, change, options))),
            resume_at: None,
            exactly_once: None,
        }
    }

    /// The maximum number of entities in a batch, from 1 to 100; 100 by default, and at most 99
    /// with [`exactly_once`](Self::exactly_once). With 1, each entity is a request of its own.
    /// Entities with entries of indexes or copies in their partition need batches all the same.
    pub const fn batch_size(mut self, entities: usize) -> Self {
        self.bulk.batch_size = entities;
        self
    }

    /// Continues an earlier run of the same query at the
    /// [position](super::BulkProgress::resume_token) that it reported.
    ///
    /// Every entity before the position is done: the closure is not called for it again. A batch
    /// behind the position may be written, too, if the earlier run had several in flight; with a
    /// [`concurrency`](Self::concurrency) of 1, and if the earlier run did not end between a
    /// request and its response, nothing behind the position is written. So a closure that must
    /// not see its own result again leaves an entity with that result as it is, or the runs have
    /// a concurrency of 1.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) when the token is that of another query, or
    /// of a page, and on Cosmos DB, which returns entities in no order.
    pub fn resume_at(mut self, position: PageToken) -> Self {
        self.resume_at = Some(position);
        self
    }

    async fn run(self) -> Result<BulkReport, BulkError> {
        let Self {
            mut bulk,
            start,
            resume_at,
            exactly_once,
        } = self;
        let skipped = Arc::clone(&bulk.skipped);
        let batches = bulk.batch_size > 1;
        if exactly_once.is_some() {
            // The marker is one of the changes.
            bulk.batch_size = bulk.batch_size.min(BATCH_CHANGES_MAX - 1);
        }
        let table = bulk.table.clone();
        let started = start(Options {
            table: table.clone(),
            resume_at,
            exactly_once,
            batches,
            skip: Box::new(move || {
                skipped.fetch_add(1, Ordering::Relaxed);
            }),
        });
        let started = started.await.map_err(|error| {
            let error = Arc::new(table.pipeline.locate(error));
            BulkError::new(ReportBuilder::new(0).finish(0), Cause::Error(error))
        })?;
        // A dry run does nothing that is done.
        bulk.position = started.position.filter(|_| !bulk.dry_run);
        let bulk = bulk.with_sender(Verb::Replace, started.inputs, started.send);
        bulk.run().await
    }
}

bulk_over_query!(
    ModifyAll { bulk, resume_at };
    /// Writes nothing, and calls the closure.
);
call_options!(impl[] ModifyAll<'_>, bulk.table.pipeline);
exactly_once_options!(
    impl[] ModifyAll<'_>;
    /// Determines the outcome of each write even when responses are lost: no entity is reported
    /// with an unknown outcome for as long as the service responds. Each batch has at most 99
    /// entities, and needs one more request. See [the
    /// guide](crate::guide::errors_and_retries#exactly-once) for what it costs.
);

type Rest = Vec<(String, Value)>;

/// An entity, and the properties that its type does not have.
type Read<E> = (Stored<E>, Result<Rest, Error>);

fn read_with_rest<E: WritableEntity>(
    entity: &mut EntityCursor<'_, '_>,
) -> Result<Read<E>, SelectionError> {
    let stored = Stored::read(entity, None)?;
    let rest = unmodelled(&stored, list(entity)?);
    Ok((stored, rest))
}

type Change<'a, E> = Mutex<Box<dyn FnMut(&mut E) -> Result<(), ClosureError> + Send + 'a>>;

/// A run, as each of its batches sees it.
struct Modifying<'a, E> {
    /// The query's own conditions, for an entity that is read again.
    conditions: Option<Tree>,
    left_out: LeftOut,
    change: Change<'a, E>,
    exactly_once: Option<KeepMarker>,
    batches: bool,
}

async fn start<'a, E: WritableEntity, S: Selection<E>>(
    mut query: QueryEntities<E, S>,
    change: Change<'a, E>,
    options: Options,
) -> Result<Started<'a>, Error> {
    let Options {
        table,
        resume_at,
        exactly_once,
        batches,
        skip,
    } = options;
    query.table = table.at_primary();
    // Whatever the query selects, all properties are kept.
    let mut query = query.map_selection(|_| ReadBy(read_with_rest::<E>));
    query.load().await?;
    let prints = query.fingerprints()?.into_iter();
    let prints: Vec<_> = prints.map(|it| it ^ fingerprint([OPERATION])).collect();
    let conditions = query.conditions()?;
    let is_of_partition = AccessClass::partition(conditions.as_ref()).is_some();
    // SERVICE: Cosmos DB returns some queries of a partition in no order, too.
    let is_ordered = query.table.pipeline.orders_partitions();
    let start = match resume_at {
        None => None,
        Some(_) if !is_ordered => return Err(refused(OPERATION, NoOrder)),
        Some(token) => {
            let start = token.into_continuation_of(&prints);
            let start = start.map_err(|error| refused(OPERATION, error))?;
            key_of(start).map_err(|error| refused(OPERATION, error))?
        }
    };
    let print = prints.first().copied().unwrap_or_default();
    let position = is_ordered.then(|| Position::new(print, start.clone()));
    if let Some(start) = &start {
        query = query.and(Condition::Resume, Ok(after(start, is_of_partition)));
    }
    let modifying = Arc::new(Modifying {
        conditions,
        left_out: query.left_out,
        change,
        exactly_once,
        batches,
    });
    let take = query.pages.take;
    let (passed, run) = (position.clone(), Arc::clone(&modifying));
    let mut count = 0;
    let found = query.stream().map(Some).chain(once(ready(None)));
    let inputs = found.filter_map(move |found| {
        let input = match found {
            Some(found) => {
                count += 1;
                run.input(found, passed.as_ref(), &skip)
            }
            None => {
                let is_end = take.is_none_or(|take| count < take);
                passed.iter().filter(|_| is_end).for_each(Position::end);
                None
            }
        };
        ready(input)
    });
    let send = move |table, items| -> SentBatch<'a> {
        let modifying = Arc::clone(&modifying);
        Box::pin(async move { modifying.send(&table, items).await })
    };
    Ok(Started {
        inputs: inputs.boxed(),
        send: Box::new(send),
        position,
    })
}

/// The key after which a run resumes; `None` at the start.
fn key_of(position: EntityContinuation) -> Result<Option<EntityKey>, KeyError> {
    let EntityContinuation {
        next_partition_key,
        next_row_key,
    } = position;
    let key = next_row_key.map(|row_key| EntityKey::new(next_partition_key, row_key));
    key.transpose()
}

/// The condition for entities after that key. SERVICE: the lower bound of the partition key alone
/// makes it a range for the service, too.
fn after(key: &EntityKey, is_of_partition: bool) -> Tree {
    use ComparisonOperator::{GreaterThan, GreaterThanOrEqual};
    let partition = |operator| {
        let partition_key = key.partition_key().as_str();
        Tree::comparison(KeyKind::PartitionKey.property(), operator, partition_key)
    };
    let row_key = key.row_key().as_str();
    let rows = Tree::comparison(KeyKind::RowKey.property(), GreaterThan, row_key);
    if is_of_partition {
        return rows;
    }
    partition(GreaterThanOrEqual).and(partition(GreaterThan).or(rows))
}

/// Carries what was sent to the round that compares it with what is stored. It is not sent itself.
#[derive(Clone)]
struct Sent(Arc<Rest>);

impl Ride for Sent {
    fn clone_box(&self) -> Box<dyn Ride> {
        Box::new(self.clone())
    }
}

/// Without the values, which are private.
impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sent").finish_non_exhaustive()
    }
}

impl<E: WritableEntity> Modifying<'_, E> {
    /// The replace of what the query has found; `None` where the closure leaves it as it is.
    fn input(
        &self,
        found: Result<Read<E>, Error>,
        position: Option<&Position>,
        skip: &Skip,
    ) -> Option<Result<Input, SourceError>> {
        let read = match found {
            Ok(read) => read,
            Err(error) if error.is_about_one_entity() => return Some(Ok(Err(error))),
            Err(error) => return Some(Err(error.into())),
        };
        if let Some(position) = position {
            position.pass(read.0.key().clone());
        }
        match self.changed(read) {
            Ok(Some(changed)) => Some(Ok(Ok(changed))),
            Ok(None) => {
                skip();
                None
            }
            Err(error) => Some(Ok(Err(error))),
        }
    }

    /// Calls the closure.
    fn changed(
        &self,
        (mut stored, rest): Read<E>,
    ) -> Result<Option<(EncodedEntity, Option<IfMatch>)>, Error> {
        let key = stored.key().clone();
        let changed = || {
            let rest = rest?;
            let before = values::<E>(&stored)?;
            let mut change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
            (*change)(&mut stored).map_err(Error::aborted)?;
            drop(change);
            stored.unchanged_key().map_err(Error::input)?;
            if values::<E>(&stored)? == before {
                return Ok(None);
            }
            let mut sent = Vec::new();
            let encoded = EncodedEntity::replaced_with(&stored, |written| {
                let rest = left_as_is::<E>(rest, &stored, written);
                sent = written.iter().chain(&rest).cloned().collect();
                rest
            });
            let mut encoded = encoded.map_err(Error::input)?;
            if self.exactly_once.is_none() {
                encoded.riders.add(Box::new(Sent(Arc::new(sorted(sent)))));
            }
            let if_match = IfMatch::ETag(stored.etag().clone());
            Ok(Some((encoded, Some(if_match))))
        };
        changed().map_err(|error: Error| error.with_operation(OPERATION).with_key(&key))
    }

    /// Sends a batch, without the entities that were changed since they were read; these alone.
    async fn send(&self, table: &Table, mut items: Vec<Item>) -> BatchOutcome {
        let mut sent = BatchOutcome::default();
        let mut alone = Vec::new();
        while let [_, _, ..] = items.as_slice() {
            sent.requests += 1;
            match self.write(table, &items).await {
                Ok(()) => {
                    let written = take(&mut items).into_iter();
                    let written = written.map(|item| (item.index, Outcome::Written));
                    sent.outcomes.extend(written);
                }
                Err(error) if is_rejection(&error) => {
                    match error.batch_index().filter(|index| *index < items.len()) {
                        Some(index) if alone.len() < MAX_REJECTIONS => {
                            alone.push((items.remove(index), Some(error)));
                        }
                        _ => break,
                    }
                }
                Err(error) => sent.all_failed(&take(&mut items), error),
            }
        }
        alone.extend(items.into_iter().map(|item| (item, None)));
        let mut rest = alone.into_iter();
        while let Some((item, refusal)) = rest.next() {
            if let Err(error) = self.in_rounds(table, item, refusal, &mut sent).await {
                // If the service does not respond to one request, the others are not sent.
                let rest: Vec<_> = rest.map(|(item, _)| item).collect();
                if !rest.is_empty() {
                    sent.all_failed(&rest, error);
                }
                break;
            }
        }
        sent
    }

    async fn write(&self, table: &Table, items: &[Item]) -> Result<(), Error> {
        if self.exactly_once.is_none()
            && let [item] = items
        {
            send_one(table, Verb::Replace, item, self.batches).await?;
            return Ok(());
        }
        let Some(first) = items.first() else {
            return Ok(());
        };
        let partition = first.key.partition_key().clone();
        let mut batch = batch(table, Verb::Replace, partition, items);
        batch.exactly_once = self.exactly_once;
        batch.await.map(drop)
    }

    /// Writes an entity that may have been refused already, and starts over for as long as other
    /// clients change it. An error is not about this entity.
    async fn in_rounds(
        &self,
        table: &Table,
        mut item: Item,
        mut refusal: Option<Error>,
        sent: &mut BatchOutcome,
    ) -> Result<(), Error> {
        let mut round = 0;
        let outcome = loop {
            let error = match refusal.take() {
                Some(error) => error,
                None => {
                    sent.requests += 1;
                    match self.write(table, std::slice::from_ref(&item)).await {
                        Ok(()) => break Outcome::Written,
                        Err(error) => error,
                    }
                }
            };
            if is_rejection(&error) && error.is_not_found() {
                break Outcome::Missing;
            }
            // A refusal of what goes along with the entity is none of its version.
            let is_changed = error.is_precondition_failed() && !error.has_details();
            if !is_changed || !is_rejection(&error) {
                return failed(sent, &item, error);
            }
            if round == ROUNDS {
                // Nothing is written: a run that resumes begins here.
                sent.failed(&item, &Arc::new(error), false);
                return Ok(());
            }
            round += 1;
            table.pipeline.pause_before_round(round).await;
            let conditions = self.conditions.as_ref();
            let again = match self.read_again(table, &item.key, conditions).await {
                // Perhaps because of the change of this run.
                Ok(None) => {
                    let read = self.read_again(table, &item.key, None).await;
                    read.map(|read| read.map(|read| (read, false)))
                }
                read => read.map(|read| read.map(|read| (read, true))),
            };
            let (read, is_found) = match again {
                Ok(Some(read)) => read,
                Ok(None) => break Outcome::Missing,
                Err(error) => return failed(sent, &item, error),
            };
            if is_as_sent(&read, &item) {
                // By this run, whose request arrived twice, or by another client.
                let error = error.into_outcome_unknown(CurrentState::Unread);
                sent.failed(&item, &Arc::new(error), false);
                return Ok(());
            }
            if !is_found {
                break Outcome::Changed;
            }
            let changed = match self.changed(read) {
                Ok(Some((entity, if_match))) => {
                    let transformed = entity.transformed(table, true).await;
                    transformed.map(|entity| (entity, if_match))
                }
                Ok(None) => break Outcome::Changed,
                Err(error) => Err(error),
            };
            match changed {
                Ok(changed) => item = Item::new(item.index, changed),
                Err(error) => {
                    let error = table.pipeline.locate(error.with_operation(OPERATION));
                    return failed(sent, &item, error);
                }
            }
        };
        sent.outcomes.push((item.index, outcome));
        Ok(())
    }

    /// Reads an entity again, if it fulfills the conditions.
    async fn read_again(
        &self,
        table: &Table,
        key: &EntityKey,
        conditions: Option<&Tree>,
    ) -> Result<Option<Read<E>>, Error> {
        let equals = |kind: KeyKind, key: &str| {
            Tree::comparison(kind.property(), ComparisonOperator::Equal, key)
        };
        let rows = equals(KeyKind::RowKey, key.row_key().as_str());
        let key = equals(KeyKind::PartitionKey, key.partition_key().as_str()).and(rows);
        let mut query = QueryEntities::<E>::of_conditions(table.clone().at_primary(), key);
        if let Some(own) = conditions {
            query = query.and(Condition::Filter, Ok(own.clone()));
        }
        query.left_out = self.left_out;
        let query = query.map_selection(|_| ReadBy(read_with_rest::<E>));
        query.first().await
    }
}

fn values<E: WritableEntity>(stored: &Stored<E>) -> Result<Rest, Error> {
    values_of::<E>(stored, stored.key(), stored.step_of()).map_err(Error::input)
}

fn sorted(mut values: Rest) -> Rest {
    values.sort_by(|(one, _), (other, _)| one.cmp(other));
    values
}

/// Returns true if an entity has the properties that were sent, which does not show who wrote them.
fn is_as_sent<E: WritableEntity>((stored, rest): &Read<E>, item: &Item) -> bool {
    let Some(Sent(sent)) = item.riders.find::<Sent>() else {
        return false;
    };
    match (values::<E>(stored), rest) {
        (Ok(now), Ok(rest)) => {
            let rest = left_as_is::<E>(rest.clone(), stored, &now);
            sorted(now.into_iter().chain(rest).collect()) == **sent
        }
        _ => false,
    }
}

/// Notes a failure. Returns the error if it is not about this entity alone.
fn failed(sent: &mut BatchOutcome, item: &Item, error: Error) -> Result<(), Error> {
    let is_of_closure = error.kind() == ErrorKind::Aborted;
    let is_rejected = is_rejection(&error) || is_out_of_range(&error);
    if is_of_closure || is_rejected || error.is_about_one_entity() {
        sent.failed(item, &Arc::new(error), true);
        return Ok(());
    }
    let again = error.for_another_caller();
    sent.all_failed(std::slice::from_ref(item), error);
    Err(again)
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "a run cannot be resumed at a position here: this backend returns entities in no order; begin again"
)]
struct NoOrder;

const OPERATION: &str = "modify_all";
/// After so many refusals, an entity that other clients keep writing is a failure.
const ROUNDS: u32 = 16;
