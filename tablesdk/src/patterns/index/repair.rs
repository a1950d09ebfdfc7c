//! `repair`: compares the entries of indexes with the entities that have them, and mends what
//! differs.
//!
//! It writes what every other write does, under the same ETags, so it runs beside writers and
//! beside itself.

use std::fmt;
use std::marker::PhantomData;
use std::pin::pin;

use futures_util::{StreamExt as _, stream};
use tablesdk_protocol::continuation::EntityContinuation;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{EntityKey, IfMatch, PartitionKey, TableName};

use super::across_partitions::delete_version;
use super::entries::{Compared, EntryState, remove_orphan};
use super::entry::AnyIndex;
use super::indexes::indexes_of;
use super::rider::EntryRider;
use super::ticket::all_tickets;
use crate::action::batch::as_a_whole;
use crate::action::extend::extension::LeftOut;
use crate::action::extend::ride::Commit;
use crate::action::get_entity::{RawEntity, fetch, stored};
use crate::action::query_entities::QueryEntities;
use crate::action::refusal::refused;
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::commit::commit_changes;
use crate::action::write::encoded::EncodedEntity;
use crate::client::TableClient;
use crate::entity::key::IntoPartitionKey;
use crate::entity::{
    DynamicEntity, EntityError, Stored, TableEntity, WritableEntity, write_values,
};
use crate::error::{Error, ErrorKind};
use crate::pipeline::{Effect, OperationRun, Table};
use crate::query::{PageToken, fingerprint, of_token};

/// Mends the entries of the indexes of an entity type. See
/// [`TableClient::repair`](crate::TableClient::repair).
#[must_use = "actions do nothing until awaited"]
pub struct Repair<'a, E> {
    table: Table,
    partition: Option<Result<PartitionKey, EntityError>>,
    is_dry: bool,
    concurrency: usize,
    resume_at: Option<PageToken>,
    progress: Box<dyn FnMut(&RepairReport) + Send + 'a>,
    entity: PhantomData<fn() -> E>,
}

/// The entries that [`repair`](crate::TableClient::repair) has found, and mended unless it was a
/// dry run. An entry is an entry of an index, or a copy.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// The number of entities that were compared with their entries.
    pub entities: u64,
    /// The number of entries that were compared with their entities.
    pub entries: u64,
    /// The number of entries that did not exist.
    pub missing: u64,
    /// The number of entries with other properties than their entity has.
    pub stale: u64,
    /// The number of entries whose entity does not exist, or does not have them.
    pub orphaned: u64,
    /// The number of entries in other partitions that no entity has, and that were written in the
    /// last hour: their entity may be written in a moment. A repair leaves them as they are, and a
    /// later one deletes them. Entries of a unique index are deleted at once.
    pub recent: u64,
    /// Entities that do not have their entry in a unique index, because another entity has it. A
    /// repair leaves them as they are: which of the two is to change is for the program to decide.
    pub conflicts: Vec<IndexConflict>,
    /// The errors of entities that cannot be read as this type, or as an entry of its indexes, and
    /// of entities whose entries cannot be written. These entities are left as they are.
    pub unreadable: Vec<String>,
    /// In the report of [`progress`](Repair::progress), where another repair can
    /// [resume](Repair::resume_at) if this one does not end; `None` when it has ended.
    pub resume_at: Option<PageToken>,
    is_dry: bool,
}

/// Two entities that would have the same entry in a unique index, or the same copy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexConflict {
    /// The name of the type of the entries, or of the copy.
    pub index: &'static str,
    /// The key of the entry.
    pub entry: EntityKey,
    /// The entity that has the entry.
    pub owner: EntityKey,
    /// The entity that does not have it.
    pub other: EntityKey,
}

impl TableClient {
    /// Compares the entries of the [indexes](derive@crate::TableEntity#index) of `E` with the
    /// entities, and mends what differs: missing and stale entries are written, and entries without
    /// their entity are deleted. So it does with [copies](derive@crate::TableEntity#copy).
    ///
    /// Writes of this client keep the entries right. A repair is for an index that was added to a
    /// type with stored entities, and after a program wrote entities that does not know the index.
    /// It runs beside writers: deploy the programs that write the index, repair, and then deploy
    /// those that read it.
    ///
    /// It reads each entity once, and for each of its entries sends three requests, 16 entities at
    /// a time. An entity whose entries are mended gets a new ETag, and keeps its properties.
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed.md")]
    /// use tablesdk::DynamicEntity;
    ///
    /// # let employee = || DynamicEntity::new("Sales", "empid_000001").with("email", "ada@contoso.com");
    /// // A program that does not know the index.
    /// table.insert(&employee()).await?;
    ///
    /// let found = table.repair::<Employee>().dry_run().await?;
    /// assert_eq!((found.missing, found.stale, found.orphaned), (1, 0, 0));
    /// let report = table.repair::<Employee>().partition("Sales").await?;
    /// assert_eq!(report.mended(), 1);
    /// assert!(table.get(ByEmail::key("Sales", "ada@contoso.com")).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableNotFound`, and other errors of the service; the repair can be run again, or
    /// [resumed](Repair::resume_at). [`ErrorKind::Input`](crate::ErrorKind::Input) for an entity
    /// whose entry cannot be written.
    pub fn repair<'a, E: WritableEntity>(&self) -> Repair<'a, E> {
        Repair::new(self.table().clone())
    }
}

impl RepairReport {
    /// Returns true if each entity has its entries now, and there are no other entries: nothing was
    /// found, or all of it has been mended.
    pub const fn is_right(&self) -> bool {
        let is_mended = !self.is_dry || self.mended() == 0;
        self.recent == 0 && self.conflicts.is_empty() && self.unreadable.is_empty() && is_mended
    }

    /// The number of entries that were mended, or would be without [`dry_run`](Repair::dry_run).
    pub const fn mended(&self) -> u64 {
        self.missing + self.stale + self.orphaned
    }
}

impl<'a, E: WritableEntity> Repair<'a, E> {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            partition: None,
            is_dry: false,
            concurrency: CONCURRENCY,
            resume_at: None,
            progress: Box::new(|_| ()),
            entity: PhantomData,
        }
    }

    /// Compares the entities of one partition only. Without it, the whole table is read.
    ///
    /// Entries in other partitions that no entity has are found only by a repair of the whole
    /// table.
    pub fn partition(mut self, partition: impl IntoPartitionKey) -> Self {
        self.partition = Some(partition.into_partition_key());
        self
    }

    /// Changes nothing: the report says what a repair would mend.
    pub const fn dry_run(mut self) -> Self {
        self.is_dry = true;
        self
    }

    /// How many entities are compared at a time; 16 by default. Must not be 0.
    pub const fn concurrency(mut self, entities: usize) -> Self {
        self.concurrency = entities;
        self
    }

    /// Resumes a repair that did not end, because of an error or the end of its process, at the
    /// [position](RepairReport::resume_at) that its [`progress`](Self::progress) was called with
    /// last. Up to a page of 1,000 entities is compared once more. The report counts from there.
    ///
    /// The repair must be one of the same table, entity type and partition: anything else is
    /// [`ErrorKind::Input`](crate::ErrorKind::Input).
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed.md")]
    /// use tablesdk::query::PageToken;
    ///
    /// let mut stored = String::new();
    /// let progress = |report: &tablesdk::index::RepairReport| {
    ///     stored = report.resume_at.as_ref().map(PageToken::to_string).unwrap_or_default();
    /// };
    /// table.repair::<Employee>().progress(progress).await?;
    ///
    /// // After the process was started again.
    /// let mut repair = table.repair::<Employee>();
    /// if !stored.is_empty() {
    ///     repair = repair.resume_at(stored.parse()?);
    /// }
    /// assert!(repair.await?.is_right());
    /// # Ok(())
    /// # }
    /// ```
    pub fn resume_at(mut self, position: PageToken) -> Self {
        self.resume_at = Some(position);
        self
    }

    /// Sets a function that is called with the report so far: after every 100 entities or entries,
    /// after every page of them, and at the end.
    pub fn progress(mut self, report: impl FnMut(&RepairReport) + Send + 'a) -> Self {
        self.progress = Box::new(report);
        self
    }

    async fn run(mut self) -> Result<RepairReport, Error> {
        if self.concurrency == 0 {
            return Err(refused(
                OPERATION,
                "a repair compares at least one entity at a time",
            ));
        }
        let partition = self.partition.take().transpose();
        let partition = partition.map_err(|error| refused(OPERATION, error))?;
        let name = self.table.checked_name(OPERATION)?;
        let indexes = indexes_of::<E>().into_iter();
        let indexes = indexes.filter(|index| !index.is_part() && !index.is_expiry());
        let indexes: Vec<_> = indexes.collect();
        let has_tickets = indexes.iter().any(|index| index.is_reserved());
        let indexes = indexes.into_iter();
        let is_of_partition = partition.is_some();
        let indexes = indexes.filter(|index| !(is_of_partition && index.is_elsewhere()));
        let indexes: Vec<_> = indexes.collect();

        let mut report = RepairReport {
            is_dry: self.is_dry,
            ..RepairReport::default()
        };
        let (table, is_dry) = (self.table.clone().at_primary(), self.is_dry);
        let entities = of_partition(
            {
                let mut query = QueryEntities::new(table.clone());
                query.left_out = LeftOut::HIDING;
                query
            },
            partition.as_ref(),
        );
        let compare = |found| mend::<E>(&table, &name, is_dry, found);
        self.pass(&mut report, ENTITIES, entities, compare).await?;
        for index in indexes {
            let entries = table.of_schema(index.schema());
            let mut query =
                QueryEntities::<DynamicEntity>::of_schema(entries.clone(), index.schema());
            if let Some(copies) = index.marked() {
                query = query.odata(&copies);
            }
            let query = of_partition(query, partition.as_ref());
            let compare = |found| orphan(&entries, &name, index, is_dry, found);
            self.pass(&mut report, index.name(), query, compare).await?;
        }
        if has_tickets {
            let query = QueryEntities::<DynamicEntity>::new(table.clone());
            let tickets = of_partition(query.odata(&all_tickets()), partition.as_ref());
            let remove = |found| remove_ticket(&table, &name, is_dry, found);
            self.pass(&mut report, TICKETS, tickets, remove).await?;
        }
        if self.resume_at.is_some() {
            return Err(refused(OPERATION, OTHER_REPAIR));
        }
        report.resume_at = None;
        Ok(report)
    }

    /// Compares all that a query finds, page by page, from where the repair is resumed.
    async fn pass<T: TableEntity, F>(
        &mut self,
        report: &mut RepairReport,
        name: &'static str,
        query: QueryEntities<T>,
        compare: impl Fn(Result<Stored<T>, Error>) -> F + Send + Sync,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<RepairReport, Error>> + Send,
    {
        let (query, pages) = query.into_paged()?;
        // It is no token of a query, and each pass has one of its own.
        let of_query = query.fingerprints()?.first().copied().unwrap_or_default();
        let pass = of_query ^ fingerprint([OPERATION, name]);
        let start = self.resume_at.clone();
        let mut next = match start.map(|token| token.into_continuation(pass)) {
            None => None,
            // This pass was made before the repair is resumed.
            Some(Err(_)) => return Ok(()),
            Some(Ok(start)) => {
                self.resume_at = None;
                Some(start).filter(|start| *start != first_page())
            }
        };
        let mut is_of_token = next.is_some();
        let token = |next: Option<&EntityContinuation>| {
            let start = next.cloned().unwrap_or_else(first_page);
            Some(PageToken::new(pass, start))
        };
        report.resume_at = token(next.as_ref());
        let mut count = 0_u64;
        loop {
            let (found, following) = match Box::pin(query.page::<T>(pages.top(None), next)).await {
                Err(error) if is_of_token => return Err(query.locate(of_token(error))),
                page => page?,
            };
            is_of_token = false;
            let found = stream::iter(found).map(&compare);
            let mut found = pin!(found.buffer_unordered(self.concurrency));
            while let Some(found) = found.next().await {
                report.add(found?);
                count += 1;
                if count.is_multiple_of(PER_PROGRESS) {
                    (self.progress)(report);
                }
            }
            if following.is_none() {
                query.end();
                (self.progress)(report);
                return Ok(());
            }
            report.resume_at = token(following.as_ref());
            (self.progress)(report);
            next = following;
        }
    }
}

/// No service returns it: it names no key.
const fn first_page() -> EntityContinuation {
    EntityContinuation {
        next_partition_key: String::new(),
        next_row_key: None,
    }
}

fn of_partition<T: TableEntity>(
    query: QueryEntities<T>,
    partition: Option<&PartitionKey>,
) -> QueryEntities<T> {
    match partition {
        Some(partition) => query.partition(partition.as_str()),
        None => query,
    }
}

impl RepairReport {
    fn add(&mut self, other: Self) {
        let Self {
            entities,
            entries,
            missing,
            stale,
            orphaned,
            recent,
            conflicts,
            unreadable,
            resume_at: _,
            is_dry: _,
        } = other;
        self.entities += entities;
        self.entries += entries;
        self.missing += missing;
        self.stale += stale;
        self.orphaned += orphaned;
        self.recent += recent;
        self.conflicts.extend(conflicts);
        self.unreadable.extend(unreadable);
    }

    /// The report about an entity whose entries are right.
    fn of_entity() -> Self {
        Self {
            entities: 1,
            ..Self::default()
        }
    }

    fn unreadable(error: &Error) -> Self {
        Self {
            unreadable: vec![error.to_string()],
            ..Self::default()
        }
    }
}

/// Compares an entity with its entries. If one is not right, all of them are written again.
async fn mend<E: WritableEntity>(
    table: &Table,
    name: &TableName,
    is_dry: bool,
    found: Result<Stored<E>, Error>,
) -> Result<RepairReport, Error> {
    let entity = match found {
        Ok(entity) => entity,
        Err(error) if error.kind() == ErrorKind::Data => {
            return Ok(RepairReport::unreadable(&error));
        }
        Err(error) => return Err(error),
    };
    let mut run = table.pipeline.begin(OPERATION);
    let mended = in_rounds(&mut run, table, name, is_dry, entity).await;
    run.end(mended)
}

async fn in_rounds<E: WritableEntity>(
    run: &mut OperationRun<'_>,
    table: &Table,
    name: &TableName,
    is_dry: bool,
    mut entity: Stored<E>,
) -> Result<RepairReport, Error> {
    let mut round = 0;
    loop {
        round += 1;
        let key = entity.key().clone();
        let failed = |error| run.annotate(Error::input(error)).with_key(&key);
        // A merge without properties: it keeps the entity, and is refused if the entity was written
        // since.
        let body = write_values(&key, &[]).map_err(failed)?;
        let mut encoded = match EncodedEntity::with_content_of(&entity, body) {
            Ok(encoded) => encoded,
            Err(error) => return Ok(RepairReport::unreadable(&failed(error))),
        };
        let report = match encoded.riders.find_mut::<EntryRider>() {
            Some(entries) => compare(run, name, &key, entries).await?,
            None => RepairReport::of_entity(),
        };
        if is_dry || report.mended() == 0 {
            return Ok(report);
        }
        let if_match = IfMatch::ETag(entity.etag().clone());
        let kind = ChangeKind::Update(Mode::Merge, Some(if_match));
        let change = EntityChange::of(name.clone(), kind, encoded);
        let error = match commit_changes(run, Commit::one(&change, None)).await {
            Ok(_) => return Ok(report),
            Err(error) => as_a_whole(error.without_batch_index()),
        };
        let was_written = error.is_precondition_failed() || error.is_not_found();
        if !was_written || round == ROUNDS || !run.pause_before_round(round).await {
            return Err(error.with_key(&key));
        }
        entity = match fetch(run, Effect::ReadNow, table, &key, None).await {
            Ok(RawEntity { content, etag }) => match stored(&content, &etag) {
                Ok(entity) => entity,
                Err(error) => {
                    let error = run.annotate(error).with_key(&key);
                    return Ok(RepairReport::unreadable(&error));
                }
            },
            // Its entries were deleted with it.
            Err(error) if error.is_not_found() => return Ok(RepairReport::default()),
            Err(error) => return Err(error),
        };
    }
}

/// Leaves out of the entries a part whose entity does not exist: it cannot be written.
async fn compare(
    run: &mut OperationRun<'_>,
    table: &TableName,
    entity: &EntityKey,
    entries: &mut EntryRider,
) -> Result<RepairReport, Error> {
    let mut report = RepairReport::of_entity();
    let mut without_entity = Vec::new();
    for entry in entries.iter() {
        match entry.state(run, table, entity).await? {
            None | Some((_, _, EntryState::Right)) => {}
            Some((_, _, EntryState::Missing)) => report.missing += 1,
            Some((_, _, EntryState::Stale)) => report.stale += 1,
            Some((_, part, EntryState::NoEntity(problem))) => {
                let error = run.annotate(Error::input(problem)).with_key(entity);
                report.unreadable.push(error.to_string());
                without_entity.push(part.clone());
            }
            Some((index, entry, EntryState::Taken { owner })) => {
                report.conflicts.push(IndexConflict {
                    index,
                    entry: entry.clone(),
                    owner,
                    other: entity.clone(),
                });
            }
        }
    }
    entries.leave_out_parts(&without_entity);
    Ok(report)
}

/// Deletes an entry that no entity has. `name` is the table of the entities.
async fn orphan(
    entries: &Table,
    name: &TableName,
    index: &'static dyn AnyIndex,
    is_dry: bool,
    found: Result<Stored<DynamicEntity>, Error>,
) -> Result<RepairReport, Error> {
    let entry = found?;
    let mut run = entries.pipeline.begin(OPERATION);
    let compared = remove_orphan(&mut run, name, index, entry.key(), is_dry).await;
    let mut report = RepairReport {
        entries: 1,
        ..RepairReport::default()
    };
    match run.end(compared)? {
        Compared::Right => {}
        Compared::Orphan => report.orphaned = 1,
        Compared::Recent => report.recent = 1,
        Compared::Unreadable => {
            let key = entry.key();
            let (partition_key, row_key) = (key.partition_key(), key.row_key());
            report.unreadable.push(format!(
                "the entity ({:?}, {:?}) cannot be read as an entry of the index {}",
                partition_key.as_str(),
                row_key.as_str(),
                index.name()
            ));
        }
    }
    Ok(report)
}

/// Deletes a ticket, which a client has left that stopped. The write of a client that needs it is
/// refused, and begins anew.
async fn remove_ticket(
    table: &Table,
    name: &TableName,
    is_dry: bool,
    found: Result<Stored<DynamicEntity>, Error>,
) -> Result<RepairReport, Error> {
    let ticket = found?;
    if !is_dry {
        let mut run = table.pipeline.begin(OPERATION);
        // It may have been used since.
        let deleted = delete_version(&mut run, name, ticket.key(), ticket.etag()).await;
        run.end(deleted)?;
    }
    Ok(RepairReport::default())
}

action!(impl['a, E: WritableEntity] Repair<'a, E>, table.pipeline => 'a, RepairReport);

impl<E> fmt::Debug for Repair<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repair")
            .field("table", &self.table)
            .field("partition", &self.partition)
            .field("is_dry", &self.is_dry)
            .field("concurrency", &self.concurrency)
            .field("resume_at", &self.resume_at)
            .finish_non_exhaustive()
    }
}

const OPERATION: &str = "repair";
const OTHER_REPAIR: &str =
    "the token comes from a repair of another table, entity type or partition";
/// The name of the pass over the entities; those over the entries have the names of their indexes.
const ENTITIES: &str = "";
const TICKETS: &str = "~tickets";
const CONCURRENCY: usize = 16;
const PER_PROGRESS: u64 = 100;
const ROUNDS: u32 = 16;
