//! `clean_up_expired`: deletes entities that have expired, found by a query or by the entries of
//! their buckets.
//!
//! Each is deleted under the ETag with which it was read after its expiry, so a write that prolongs
//! it wins. An entry is read before its entity, and deleted after it under the ETag of then, as for
//! any other deletion: see `index/across_partitions.rs`.

use std::collections::HashSet;
use std::marker::PhantomData;
use std::pin::pin;
use std::{fmt, mem};

use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};
use tablesdk_protocol::wire::json::EntityCursor;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, PartitionKey, TableName, Timestamp};

use super::entry::{Expires, PREFIX, entries_until, owner_of_key};
use crate::action::bulk::{delete_unchanged, is_missing};
use crate::action::get_entity::{RawEntity, fetch, stored};
use crate::action::query::conditions::Condition;
use crate::action::query::own_pages::OwnPages;
use crate::action::query::request::QueryRequest;
use crate::action::query_entities::QueryEntities;
use crate::action::refusal::{malformed, refused};
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::encoded::EncodedEntity;
use crate::client::TableClient;
use crate::entity::key::IntoPartitionKey;
use crate::entity::{EntityError, Stored, read_key};
use crate::error::{Error, ErrorKind};
use crate::patterns::index::entries::remove_orphan;
use crate::patterns::index::entry::{AnyIndex, EntryKeys, has_entry};
use crate::patterns::index::indexes::indexes_of;
use crate::patterns::index::rider::EntryRider;
use crate::pipeline::{Effect, Table};

/// Deletes expired entities. See
/// [`TableClient::clean_up_expired`](crate::TableClient::clean_up_expired).
#[must_use = "actions do nothing until awaited"]
pub struct CleanUpExpired<'a, E> {
    table: Table,
    partition: Option<Result<PartitionKey, EntityError>>,
    max: u64,
    concurrency: usize,
    progress: Box<dyn FnMut(&ExpiryReport) + Send + 'a>,
    entity: PhantomData<fn() -> E>,
}

impl TableClient {
    /// Deletes entities that have [expired](derive@crate::TableEntity#expires) five minutes ago or
    /// earlier, by the clock of the service.
    ///
    /// Each entity is deleted if it is still the version that was read, so a write that prolongs it
    /// wins. Its entries in indexes and its copies are deleted with it. Several clients may run it
    /// at the same time, and beside writers. It can be dropped, or fail, after any request: the
    /// next call continues.
    ///
    /// With [buckets](derive@crate::TableEntity#buckets), it reads only what has expired, which is
    /// allowed where the client [denies scans](crate::TableServiceClientBuilder::deny_scans), and
    /// no scan for [`assert_no_scans`](crate::guide::testing#the-journal) of the test kit. Without,
    /// it scans the table, or reads one [partition](CleanUpExpired::partition).
    ///
    /// ```
    #[doc = include_str!("../../docs/sessions.md")]
    /// let report = table.clean_up_expired::<Session>().max(10_000).await?;
    /// assert_eq!((report.removed, report.has_more), (1, false));
    /// # assert_eq!(table.query::<Session>().including_expired().count().await?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableNotFound`, and other errors of the service.
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) where the client denies scans, and the type
    /// has no buckets.
    pub fn clean_up_expired<'a, E: Expires>(&self) -> CleanUpExpired<'a, E> {
        CleanUpExpired::new(self.table().clone())
    }
}

/// The result of [`clean_up_expired`](crate::TableClient::clean_up_expired).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpiryReport {
    /// The number of expired entities that were deleted, by this call or by another client at the
    /// same time.
    pub removed: u64,
    /// The number of entities that were found as expired, and were prolonged meanwhile. They are
    /// left as they are.
    pub postponed: u64,
    /// True if the call ended at its [`max`](CleanUpExpired::max), so that another call may find
    /// more.
    pub has_more: bool,
    /// The errors of entities that cannot be read as this type. These entities are left as they
    /// are.
    pub unreadable: Vec<String>,
}

/// A version of an entity, or of an entry.
struct Version {
    key: EntityKey,
    etag: ETag,
}

/// An entity that was found as expired.
struct Candidate<E> {
    /// `None` if it does not exist any more.
    entity: Option<Stored<E>>,
    is_expired: bool,
    /// The entry by which it was found.
    entry: Option<Version>,
}

type Candidates<E> = BoxStream<'static, Result<Candidate<E>, Error>>;

/// Entities that are deleted together. Their values are not kept.
#[derive(Default)]
struct Chunk {
    /// Entities that have no other entry than the one by which they were found.
    alone: Vec<(Version, Option<Version>)>,
    /// Entities with entries in indexes and copies.
    with_others: Vec<(EntityChange, Option<Version>)>,
    /// Entries whose entities do not have them.
    left: Vec<Version>,
    /// The entities that are deleted, here and in the chunk before, when others had already been
    /// read: one may have several entries.
    deleted: [HashSet<EntityKey>; 2],
}

impl Chunk {
    fn after(before: &mut Self) -> Self {
        let [_, deleted] = mem::take(&mut before.deleted);
        Self {
            deleted: [deleted, HashSet::new()],
            ..Self::default()
        }
    }

    /// Adds an entity that is expired. Returns whether it is not: it was prolonged.
    fn add<E: Expires>(&mut self, table: &TableName, candidate: Candidate<E>) -> bool {
        let Candidate {
            entity,
            is_expired,
            entry,
        } = candidate;
        let Some(entity) = entity else {
            self.left.extend(entry);
            return false;
        };
        if !is_expired {
            let of_earlier = entry.filter(|entry| !has_entry(&entity, &entry.key));
            self.left.extend(of_earlier);
            return true;
        }
        let [before, now] = &mut self.deleted;
        if before.contains(entity.key()) || !now.insert(entity.key().clone()) {
            self.left.extend(entry);
            return false;
        }
        if is_alone(&entity, entry.as_ref()) {
            let (key, etag) = (entity.key().clone(), entity.etag().clone());
            self.alone.push((Version { key, etag }, entry));
        } else {
            let change = deletion(table, &entity, entry.as_ref());
            self.with_others.push((change, entry));
        }
        false
    }

    const fn len(&self) -> usize {
        self.alone.len() + self.with_others.len() + self.left.len()
    }
}

impl<'a, E: Expires> CleanUpExpired<'a, E> {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            partition: None,
            max: u64::MAX,
            concurrency: CONCURRENCY,
            progress: Box::new(|_| ()),
            entity: PhantomData,
        }
    }

    /// Deletes entities of one partition only. They are found by a query of this partition, also
    /// where there are buckets.
    pub fn partition(mut self, partition: impl IntoPartitionKey) -> Self {
        self.partition = Some(partition.into_partition_key());
        self
    }

    /// The maximum number of entities to look at; no limit by default. The next call continues with
    /// the others. Entities that cannot be read do not count.
    pub const fn max(mut self, entities: u64) -> Self {
        self.max = entities;
        self
    }

    /// How many requests are in flight at a time; 16 by default. Must not be 0.
    pub const fn concurrency(mut self, requests: usize) -> Self {
        self.concurrency = requests;
        self
    }

    /// Sets a function that is called with the report so far, after every 1,000 entities and at the
    /// end.
    pub fn progress(mut self, report: impl FnMut(&ExpiryReport) + Send + 'a) -> Self {
        self.progress = Box::new(report);
        self
    }

    async fn run(mut self) -> Result<ExpiryReport, Error> {
        if self.concurrency == 0 {
            return Err(refused(OPERATION, "the concurrency must not be 0"));
        }
        let partition = self.partition.take().transpose();
        let partition = partition.map_err(|error| refused(OPERATION, error))?;
        let removal = Removal::<E> {
            name: self.table.checked_name(OPERATION)?,
            table: self.table.clone(),
            concurrency: self.concurrency,
            entity: PhantomData,
        };
        removal.learn_time().await?;
        let until = before_grace(self.table.pipeline.service_now());
        let candidates = match (&partition, E::BUCKET) {
            (None, Some(_)) => removal.by_entries(until),
            _ => removal.by_query(partition.as_ref(), until),
        };
        let mut report = ExpiryReport::default();
        let mut looked_at = 0;
        let mut candidates = pin!(candidates);
        let (mut is_over, mut chunk) = (false, Chunk::default());
        while !is_over {
            while chunk.len() < CHUNK {
                let candidate = match candidates.next().await {
                    Some(Ok(candidate)) => candidate,
                    Some(Err(error)) if error.kind() == ErrorKind::Data => {
                        report.unreadable.push(error.to_string());
                        continue;
                    }
                    Some(Err(error)) => return Err(error),
                    None => {
                        is_over = true;
                        break;
                    }
                };
                if looked_at == self.max {
                    report.has_more = true;
                    is_over = true;
                    break;
                }
                looked_at += 1;
                report.postponed += u64::from(chunk.add(&removal.name, candidate));
            }
            let next = Chunk::after(&mut chunk);
            let (removed, postponed) = removal.delete(mem::replace(&mut chunk, next)).await?;
            report.removed += removed;
            report.postponed += postponed;
            (self.progress)(&report);
        }
        Ok(report)
    }
}

/// The options that the requests of a call share.
struct Removal<E> {
    table: Table,
    name: TableName,
    concurrency: usize,
    entity: PhantomData<fn() -> E>,
}

impl<E: Expires> Removal<E> {
    /// Asks the service for its time, where no response has shown it. The condition by which
    /// expired entities are found depends on it.
    async fn learn_time(&self) -> Result<(), Error> {
        let pipeline = &self.table.pipeline;
        if pipeline.knows_service_time() {
            return Ok(());
        }
        let key = |name| Tree::comparison(name, ComparisonOperator::Equal, PREFIX);
        let filter = key("PartitionKey").and(key("RowKey"));
        let query = QueryRequest::own(self.name.clone(), filter, None);
        let request = query.for_page(Some(1), None, pipeline)?;
        let sent = pipeline.send(OPERATION, Effect::ReadNow, &request);
        sent.await.map(drop)
    }

    /// The entities that a query finds.
    fn by_query(&self, partition: Option<&PartitionKey>, until: Timestamp) -> Candidates<E> {
        let mut query =
            QueryEntities::<E>::new(self.table.clone().at_primary()).including_expired();
        if let Some(partition) = partition {
            query = query.partition(partition.as_str());
        }
        if let Some(expired) = E::SCHEMA.expired(until) {
            query = query.and(Condition::Filter, Ok(expired));
        }
        let pipeline = self.table.pipeline.clone();
        let found = query.stream().map_ok(move |entity| Candidate {
            // By the time of the response.
            is_expired: is_over(&*entity, pipeline.service_now()),
            entity: Some(entity),
            entry: None,
        });
        found.boxed()
    }

    /// The entities whose entries are in buckets that have begun.
    fn by_entries(&self, until: Timestamp) -> Candidates<E> {
        let table = self.table.clone();
        let read = move |entry: Result<Version, Error>| {
            let table = table.clone();
            async move { read_candidate(&table, entry?).await }
        };
        let entries = self.entries(until);
        entries.map(read).buffered(self.concurrency).boxed()
    }

    /// The entries of entities that expire before an instant. Queries of entities do not show them.
    fn entries(&self, until: Timestamp) -> BoxStream<'static, Result<Version, Error>> {
        let select = ["PartitionKey", "RowKey", "Timestamp"].map(str::to_owned);
        let filter = entries_until::<E>(until);
        let query = QueryRequest::own(self.name.clone(), filter, Some(select.to_vec()));
        let mut pages = OwnPages::new(query);
        let pipeline = self.table.pipeline.clone();
        let of_call = |error: Error| error.with_operation(OPERATION);
        let entries = async_stream::try_stream! {
            loop {
                let request = pages.request(&pipeline)?;
                let sent = pipeline.send(OPERATION, Effect::ReadNow, &request);
                let entries = pages.read(sent.await?, |entity| {
                    read_key(&EntityCursor::new(entity), true)
                });
                for entry in entries.map_err(of_call)? {
                    let (key, etag) = entry.map_err(|error| malformed(OPERATION, error))?;
                    let etag = etag.ok_or_else(|| malformed(OPERATION, NO_ETAG))?;
                    yield Version { key, etag };
                }
                if pages.is_last() {
                    break;
                }
                pages.advance().map_err(of_call)?;
            }
        };
        entries.boxed()
    }

    /// Deletes the expired entities, and then their entries. Returns how many are gone, and how
    /// many were written since they were read.
    async fn delete(&self, chunk: Chunk) -> Result<(u64, u64), Error> {
        let Chunk {
            alone,
            with_others,
            left,
            ..
        } = chunk;
        let (mut removed, mut postponed) = (0, 0);
        let mut entries = Vec::new();
        let mut note = |(is_gone, entry): (bool, Option<Version>)| {
            removed += u64::from(is_gone);
            postponed += u64::from(!is_gone);
            entries.extend(entry.filter(|_| is_gone).map(|entry| (entry, ())));
        };
        let alone = self.delete_versions(alone).await?;
        alone.into_iter().for_each(&mut note);
        let with_others = with_others.into_iter().map(|(change, entry)| async move {
            Ok::<_, Error>((self.delete_with_others(change).await?, entry))
        });
        let with_others = stream::iter(with_others).buffer_unordered(self.concurrency);
        let with_others: Vec<_> = with_others.try_collect().await?;
        with_others.into_iter().for_each(&mut note);
        self.delete_versions(entries).await?;
        if let Some(index) = index_of_buckets::<E>() {
            let left = left.into_iter().map(|entry| async move {
                let mut run = self.table.pipeline.begin(OPERATION);
                let compared = remove_orphan(&mut run, &self.name, index, &entry.key, false).await;
                run.end(compared).map(drop)
            });
            let mut left = stream::iter(left).buffer_unordered(self.concurrency);
            while left.try_next().await?.is_some() {}
        }
        Ok((removed, postponed))
    }

    /// Deletes an entity with its entries and copies. Returns whether it is gone.
    async fn delete_with_others(&self, change: EntityChange) -> Result<bool, Error> {
        let mut run = self.table.pipeline.begin(OPERATION);
        let is_gone = match change.write(&mut run, None).await {
            Ok(_) => Ok(true),
            Err(error) if is_missing(&error) => Ok(true),
            Err(error) if error.is_precondition_failed() => Ok(false),
            Err(error) => Err(error),
        };
        run.end(is_gone)
    }

    /// Deletes versions, each of which comes once. Returns of each whether it is gone.
    async fn delete_versions<T>(
        &self,
        versions: Vec<(Version, T)>,
    ) -> Result<Vec<(bool, T)>, Error> {
        let (versions, with): (Vec<_>, Vec<_>) = versions.into_iter().unzip();
        let versions = versions.into_iter().map(|it| (it.key, it.etag));
        let gone = delete_unchanged(&self.table, versions, self.concurrency).await?;
        Ok(gone.into_iter().zip(with).collect())
    }
}

/// Returns true if an entity has no entry but the one by which it was found.
fn is_alone<E: Expires>(entity: &Stored<E>, entry: Option<&Version>) -> bool {
    let is_found = |key: &EntityKey| entry.is_some_and(|entry| entry.key == *key);
    let entries = entity.memory().get::<EntryKeys>();
    entries.is_none_or(|entries| entries.iter().all(is_found))
}

/// The index by which expired entities are found.
fn index_of_buckets<E: Expires>() -> Option<&'static dyn AnyIndex> {
    let mut indexes = indexes_of::<E>().into_iter();
    indexes.find(|index| index.is_expiry())
}

/// The deletion of an entity with its entries and copies.
fn deletion<E: Expires>(
    table: &TableName,
    entity: &Stored<E>,
    entry: Option<&Version>,
) -> EntityChange {
    let mut encoded = EncodedEntity::deleted(entity);
    if entry.is_some_and(|entry| has_entry(entity, &entry.key))
        && let Some(entries) = encoded.riders.find_mut::<EntryRider>()
    {
        // It was read before the entity, and is deleted after it.
        entries.retain(|index| !index.is_expiry());
    }
    let kind = ChangeKind::Delete(IfMatch::ETag(entity.etag().clone()));
    EntityChange::of(table.clone(), kind, encoded)
}

/// Reads the entity that has an entry.
async fn read_candidate<E: Expires>(table: &Table, entry: Version) -> Result<Candidate<E>, Error> {
    let owner = owner_of_key(entry.key.row_key().as_str());
    let damaged = || {
        table.pipeline.locate(
            Error::data(NO_OWNER)
                .with_operation(OPERATION)
                .with_key(&entry.key),
        )
    };
    let key = owner.ok_or_else(damaged)?;
    let mut run = table.pipeline.begin(OPERATION);
    let found = match fetch(&mut run, Effect::ReadNow, table, &key, None).await {
        Ok(RawEntity { content, etag }) => stored::<E>(&content, &etag)
            .map(Some)
            .map_err(|error| run.annotate(error).with_key(&key)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    };
    let entity = run.end(found)?;
    let now = table.pipeline.service_now();
    Ok(Candidate {
        is_expired: entity.as_ref().is_some_and(|it| is_over(&**it, now)),
        entity,
        entry: Some(entry),
    })
}

/// Returns true if an entity has expired so long ago that it is deleted.
fn is_over<E: Expires>(entity: &E, now: Timestamp) -> bool {
    entity
        .expires_at()
        .is_some_and(|at| at <= before_grace(now))
}

fn before_grace(now: Timestamp) -> Timestamp {
    let ticks = now.unix_ticks() - GRACE_TICKS;
    Timestamp::from_unix_ticks(ticks).unwrap_or(Timestamp::MIN)
}

action!(impl['a, E: Expires] CleanUpExpired<'a, E>, table.pipeline => 'a, ExpiryReport);

impl<E> fmt::Debug for CleanUpExpired<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CleanUpExpired")
            .field("table", &self.table)
            .field("partition", &self.partition)
            .field("max", &self.max)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

const OPERATION: &str = "clean up expired";
const NO_OWNER: &str =
    "its row key is not that of an entry: it does not contain the key of an entity";
const NO_ETAG: &str = "an entity of the page has no ETag";
/// Five minutes, by the clock of the service.
const GRACE_TICKS: i64 = 5 * 60 * 10_000_000;
const CHUNK: usize = 1_000;
const CONCURRENCY: usize = 16;
