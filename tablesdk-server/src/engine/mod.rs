//! The rules of tables: what a write needs and does, which entities a query finds.
//!
//! Reads use a snapshot and never wait for a lock. Writes are decided one after another, each on
//! the state that the previous write left, and are passed to the storage afterwards. This module
//! knows no HTTP, no JSON and no disk; the time is an argument.

mod backoff;
mod batch;
mod catalog;
mod change;
mod clean_up;
mod decide;
mod entity_codec;
mod evaluate;
mod key_codec;
mod key_range;
mod key_ranges;
mod merge;
mod paging;
mod query;
#[cfg(feature = "durable")]
mod record_check;
mod rejection;
mod scan_budget;
mod settings;
mod shared_clean_up;
#[cfg(test)]
mod shared_tests;
mod size;
mod slots;
mod table_scan;
mod view;

#[cfg(feature = "durable")]
use std::io;
#[cfg(feature = "durable")]
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{
    Clock, CorsRule, EntityKey, IfMatch, ServiceProperties, SignedIdentifier, TableName, Timestamp,
};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
#[cfg(feature = "durable")]
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::flavor::Flavor;
#[cfg(feature = "durable")]
use crate::storage;
use crate::storage::{
    AnyStorage, Checkpoint, Closed, Commit, Committed, Connections, Guesses, PartialSnapshot,
    SharedStorage, Snapshot, Storage, StorageError, WriteBatch,
};
use crate::time::monotonic_clock::MonotonicClock;

use backoff::Backoff;
use catalog::Catalog;
pub(crate) use clean_up::Cursor as CleanUpCursor;
pub(crate) use entity_codec::Properties;
use key_codec::TableId;
pub(crate) use paging::Paging;
pub(crate) use query::{KeyBounds, LastKey, Position, Query, Scan, SliceEnd};
#[cfg(feature = "durable")]
pub(crate) use record_check::Findings;
pub(crate) use rejection::{Failure, Rejection};
pub(crate) use scan_budget::ScanBudget;
pub(crate) use shared_clean_up::SharedCleanUp;
pub(crate) use size::entity_bytes;
pub(crate) use table_scan::TableScan;
pub(crate) use view::{Entity, View};

/// The tables of all accounts.
pub(crate) struct Engine {
    storage: AnyStorage,
    catalog: Arc<Catalog>,
    paging: Paging,
    /// Held from the decision to the commit: there is one writer at a time.
    writer: Mutex<MonotonicClock>,
    flavor: Flavor,
    /// How long the name of a deleted table is reserved.
    name_hold: Duration,
    /// The last known records of a shared storage, which lead to the keys of others.
    guesses: Arc<Guesses>,
    /// Held by the one clean-up that runs at a time.
    clean_up: Arc<AsyncMutex<CleanUpCursor>>,
    /// How often a checkpoint was restored. Locked by a step of a clean-up, which must not be
    /// committed after that.
    restores: RwLock<u64>,
    /// The permits to scan a disk on a separate thread.
    #[cfg(feature = "durable")]
    disk_permits: Semaphore,
}

impl Engine {
    /// The tables in a storage. Writes get timestamps of the clock, later than all stored ones.
    pub(crate) fn new(
        storage: impl Into<AnyStorage>,
        clock: Arc<dyn Clock>,
        paging: Paging,
    ) -> Result<Self, StorageError> {
        let storage = storage.into();
        // In a shared one, each entity has a time of its own.
        let last = storage
            .local()
            .map(|storage| last_write(&*storage.snapshot()));
        let last = last.transpose()?.unwrap_or(Timestamp::MIN);
        Ok(Self {
            storage,
            catalog: Arc::default(),
            guesses: Arc::default(),
            paging,
            writer: Mutex::new(MonotonicClock::new(clock, last)),
            clean_up: Arc::default(),
            restores: RwLock::default(),
            #[cfg(feature = "durable")]
            disk_permits: Semaphore::new(disk_permits_max()),
            flavor: Flavor::default(),
            name_hold: Duration::ZERO,
        })
    }

    /// The same engine, which reserves the names of deleted tables for a duration.
    #[must_use]
    pub(crate) fn with_name_hold(self, name_hold: Duration) -> Self {
        Self { name_hold, ..self }
    }

    /// The service that it behaves like.
    pub(crate) const fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// The same engine, with the limits of a flavor.
    #[must_use]
    pub(crate) fn with_flavor(self, flavor: Flavor) -> Self {
        Self { flavor, ..self }
    }

    /// The command that deletes a table.
    pub(crate) const fn delete_table<'a>(&self, name: &'a TableName) -> Command<'a> {
        Command::DeleteTable(name, self.name_hold)
    }

    /// Why nothing can be written any more, if that is so.
    pub(crate) async fn is_writable(&self) -> Result<(), StorageError> {
        match &self.storage {
            AnyStorage::Local(storage) => storage.is_writable(),
            AnyStorage::Shared(storage) => storage.probe().await,
        }
    }

    /// The connections to a shared storage.
    pub(crate) fn connections(&self) -> Option<Connections> {
        self.storage.shared().map(|storage| storage.connections())
    }

    /// Resolves when the storage is closed, which is after the engine is dropped.
    pub(crate) fn closed(&self) -> Closed {
        let storage = self.storage.local();
        storage.map_or(Closed::NOW, Storage::closed)
    }

    /// Returns true if the tables survive the process.
    pub(crate) fn is_persistent(&self) -> bool {
        self.storage.local().is_none_or(Storage::is_persistent)
    }

    /// The memory that a scan takes in addition to its page.
    pub(crate) fn part_bytes_max(&self) -> usize {
        let storage = self.storage.shared();
        storage.map_or(0, |storage| storage.part_bytes_max())
    }

    /// Returns true if other servers may read and write the same tables.
    pub(crate) const fn is_shared(&self) -> bool {
        self.storage.shared().is_some()
    }

    /// Waits for the permit to scan a disk on a separate thread; `None` if there is no disk.
    #[cfg(feature = "durable")]
    pub(crate) async fn disk_permit(&self) -> Option<SemaphorePermit<'_>> {
        if self.is_shared() || !self.is_persistent() {
            return None;
        }
        self.disk_permits.acquire().await.ok()
    }

    /// The settings of pages.
    pub(crate) const fn paging(&self) -> &Paging {
        &self.paging
    }

    /// Reads all durable records as of one moment. `read` has no effects: where records must be
    /// fetched first, it is called again, and what the last call returned is returned.
    pub(crate) async fn read<T, E: From<StorageError>>(
        &self,
        read: impl FnMut(&View) -> Result<T, E>,
    ) -> Result<T, E> {
        let (read, _) = self.open(read).await?;
        Ok(read)
    }

    /// The same, and the view, for a scan that continues after it.
    pub(crate) async fn open<T, E: From<StorageError>>(
        &self,
        mut read: impl FnMut(&View) -> Result<T, E>,
    ) -> Result<(T, View), E> {
        let view = self.view();
        loop {
            let result = read(&view);
            if !view.fetch_missing().await? {
                return Ok((result?, view));
            }
        }
    }

    /// A view of all durable records. Those of a shared storage must be fetched first.
    pub(crate) fn view(&self) -> View {
        match &self.storage {
            AnyStorage::Local(storage) => View::local(storage.snapshot(), &self.catalog),
            AnyStorage::Shared(storage) => self.shared_view(storage),
        }
    }

    fn shared_view(&self, storage: &Arc<dyn SharedStorage>) -> View {
        let partial = PartialSnapshot::new(storage, &self.guesses);
        View::shared(partial, &self.catalog)
    }

    /// A view of all durable records of a local storage.
    ///
    /// # Errors
    ///
    /// If it is shared.
    pub(crate) fn local_view(&self) -> Result<View, StorageError> {
        if self.is_shared() {
            return Err(StorageError::Shared);
        }
        Ok(self.view())
    }

    /// The cached value for a snapshot that would be taken now.
    fn cached<T>(&self, find: impl FnOnce(&catalog::Values) -> Option<T>) -> Option<T> {
        let epoch = self.storage.local()?.epoch()?;
        self.catalog.find(epoch, find)
    }

    /// The CORS rules of an account, where they are cached, as [`cors_rules`](Self::cors_rules)
    /// would find them.
    pub(crate) fn cached_cors_rules(&self, account: &str) -> Option<Arc<[CorsRule]>> {
        self.cached(|cached| cached.cors_rules.get(account).cloned())
    }

    /// The CORS rules of an account.
    pub(crate) async fn cors_rules(&self, account: &str) -> Result<Arc<[CorsRule]>, StorageError> {
        match self.cached_cors_rules(account) {
            Some(rules) => Ok(rules),
            None => self.read(|view| view.cors_rules(account)).await,
        }
    }

    /// Checks that a table exists for operations on its entities, as [`View::require_table`], but
    /// without a view where it is cached.
    pub(crate) async fn require_table(
        &self,
        account: &str,
        name: &TableName,
    ) -> Result<(), Failure> {
        match self.cached(|cached| view::table_of(cached, account, name)) {
            Some(_) => Ok(()),
            None => {
                let read = self.read(|view| view.require_table(account, name)).await;
                read.map(drop)
            }
        }
    }

    /// Carries out a command without a caller that may write it itself.
    pub(crate) async fn commit(
        &self,
        account: &str,
        command: &Command<'_>,
    ) -> Result<Outcome, Failure> {
        self.commit_with(account, command, |_| ()).await
    }

    /// Carries out a command on the tables of an account, as a whole or not at all. `write` may
    /// write the commit itself.
    pub(crate) async fn commit_with(
        &self,
        account: &str,
        command: &Command<'_>,
        write: impl Fn(&mut Commit),
    ) -> Result<Outcome, Failure> {
        let storage = match &self.storage {
            AnyStorage::Local(storage) => &**storage,
            AnyStorage::Shared(storage) => {
                let committed = self.commit_shared(storage, account, command);
                // A shared storage takes a round trip, so its future is not a part of that of each
                // command.
                return Box::pin(committed).await;
            }
        };
        loop {
            match self.decide_and_commit(storage, account, command) {
                Ok(Some((outcome, mut commit))) => {
                    write(&mut commit);
                    commit.await?;
                    return Ok(outcome);
                }
                Ok(None) => storage.wait_durable().await?,
                Err(failure) => {
                    storage.wait_durable().await?;
                    return Err(failure);
                }
            }
        }
    }

    /// Decides on what is stored at one moment, and writes on the condition that it is unchanged;
    /// else starts over.
    async fn commit_shared(
        &self,
        storage: &Arc<dyn SharedStorage>,
        account: &str,
        command: &Command<'_>,
    ) -> Result<Outcome, Failure> {
        let mut backoff = Backoff::default();
        let mut may_presume = true;
        loop {
            let view = self.shared_view(storage);
            if let Some(partial) = view.partial().filter(|_| may_presume) {
                partial.may_presume();
            }
            let (decided, timestamp) = loop {
                let timestamp = self.next_timestamp(&view);
                let decided = decide::decide(&view, self.flavor, account, command, timestamp);
                if let (Ok(batch), Some(partial)) = (&decided, view.partial()) {
                    partial.ask_for(batch);
                }
                if !view.fetch_missing().await? {
                    break (decided, timestamp);
                }
            };
            let is_presumed = view.partial().is_some_and(PartialSnapshot::has_presumed);
            may_presume = false;
            let batch = match decided {
                Err(_) if is_presumed => continue,
                decided => decided?,
            };
            let Some(partial) = view.partial().filter(|_| !batch.is_empty()) else {
                return Ok(Outcome { timestamp });
            };
            let batch = partial.conditional(&batch, timestamp.unix_ticks());
            match storage.commit(batch).await? {
                Committed::Done => return Ok(Outcome { timestamp }),
                Committed::Conflict if is_presumed => {}
                Committed::Conflict => backoff.wait().await?,
            }
        }
    }

    /// The time of a write: later than the records that the write depends on, whose times may be
    /// those of other clocks.
    fn next_timestamp(&self, view: &View) -> Timestamp {
        let now = self.clock().next();
        let latest = view.partial().and_then(PartialSnapshot::latest_version);
        let latest = latest.and_then(|version| Timestamp::from_unix_ticks(version).ok());
        latest.map_or(now, |latest| now.max(latest.next()))
    }

    /// Decides a command without writing: returns the failure that [`commit`](Self::commit) would
    /// return now.
    pub(crate) async fn dry_run(
        &self,
        account: &str,
        command: &Command<'_>,
        now: Timestamp,
    ) -> Result<(), Failure> {
        let Some(storage) = self.storage.local() else {
            let decide = |view: &View| decide::decide(view, self.flavor, account, command, now);
            return self.read(decide).await.map(drop);
        };
        let decided = self.decide(storage, account, command, now);
        storage.wait_durable().await?;
        decided.map(drop)
    }

    /// Both a rejection and an outcome reveal the effect of earlier writes, so either is returned
    /// to the client only after those writes are durable. Returns `None`, without a decision, while
    /// the storage is full.
    fn decide_and_commit(
        &self,
        storage: &dyn Storage,
        account: &str,
        command: &Command<'_>,
    ) -> Result<Option<(Outcome, Commit)>, Failure> {
        let mut clock = self.clock();
        if storage.has_backpressure() {
            return Ok(None);
        }
        let timestamp = clock.next();
        let mut batch = self.decide(storage, account, command, timestamp)?;
        if storage.is_persistent() {
            batch.put(key_codec::LAST_WRITE, key_codec::time_record(timestamp));
        }
        let commit = storage.commit(batch)?;
        Ok(Some((Outcome { timestamp }, commit)))
    }

    /// The clock of the writer, which prevents other writes of this server to a local storage.
    fn clock(&self) -> MutexGuard<'_, MonotonicClock> {
        // A panic during a decision leaves no partial state: the lock protects only the last
        // timestamp.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writes of a command. The view of the stored records is dropped: a commit would have to
    /// copy what a view still sees.
    fn decide(
        &self,
        storage: &dyn Storage,
        account: &str,
        command: &Command<'_>,
        now: Timestamp,
    ) -> Result<WriteBatch, Failure> {
        let view = self.uncommitted(storage);
        decide::decide(&view, self.flavor, account, command, now)
    }

    /// Reads all durable records and reports those that cannot be read. Periodically calls
    /// `progress` with the number of records.
    #[cfg(feature = "durable")]
    pub(crate) fn check_records(&self, progress: impl FnMut(u64)) -> Findings {
        record_check::check(&self.view(), progress)
    }

    /// Writes a backup of all durable records at this moment. Returns the number of records, and
    /// periodically calls `progress` with the number so far.
    #[cfg(feature = "durable")]
    pub(crate) fn back_up(
        &self,
        to: impl io::Write,
        mut progress: impl FnMut(u64),
    ) -> io::Result<u64> {
        let Some(storage) = self.storage.local() else {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                StorageError::Shared,
            ));
        };
        if self.flavor.stores_keys() {
            let message = "the flavor CosmosDb stores entities in another form, and has no backups";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let snapshot = storage.snapshot();
        let range = (record_check::FIRST, record_check::END);
        storage::write_backup(&*snapshot, range, to, |count| {
            progress(count);
            match storage.is_writable() {
                // A snapshot in use would prevent the storage from opening the store again, and a
                // backup may take hours.
                Err(error) if error.is_temporary() => Err(io::Error::other(error)),
                _ => Ok(()),
            }
        })
    }

    /// All tables at this moment, to be restored later. `None` if the storage cannot restore them.
    pub(crate) fn checkpoint(&self) -> Option<Checkpoint> {
        self.storage.local()?.checkpoint()
    }

    /// Replaces all tables by those of a checkpoint. Returns false, without an effect, if the
    /// storage cannot. Timestamps continue to increase, so no ETag that a client knows becomes that
    /// of another version.
    pub(crate) fn restore(&self, checkpoint: &Checkpoint) -> bool {
        self.restored(checkpoint).is_some()
    }

    /// Deletes all tables. Returns false, without an effect, if the storage cannot. The timestamps
    /// of later writes are those of the clock, even if it was set back.
    pub(crate) fn reset(&self) -> bool {
        let writer = self.restored(&Checkpoint::default());
        writer.map(|mut writer| writer.restart()).is_some()
    }

    /// Restores a checkpoint, and prevents writes as long as the result is held.
    fn restored(&self, checkpoint: &Checkpoint) -> Option<MutexGuard<'_, MonotonicClock>> {
        let mut restores = self
            .restores
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *restores += 1;
        // Without a writer between its decision and its commit.
        let writer = self.clock();
        let storage = self.storage.local()?;
        storage.restore(checkpoint).then_some(writer)
    }

    fn uncommitted(&self, storage: &dyn Storage) -> View {
        View::local(storage.uncommitted(), &self.catalog)
    }

    /// A view of all committed records, durable or not.
    #[cfg(test)]
    fn uncommitted_view(&self) -> View {
        let storage = self.storage.local();
        storage.map_or_else(|| self.view(), |storage| self.uncommitted(storage))
    }

    /// Returns true if deleted tables of a local storage are not cleaned up yet.
    pub(crate) fn has_deleted_tables(&self) -> bool {
        let view = self.local_view();
        view.is_ok_and(|view| view.deleted_table_ids(TableId::NONE).next().is_some())
    }

    /// The permit to clean up; `None` while another clean-up has it.
    pub(crate) fn try_begin_clean_up(&self) -> Option<OwnedMutexGuard<CleanUpCursor>> {
        Arc::clone(&self.clean_up).try_lock_owned().ok()
    }

    /// Removes a few entities of a deleted table, while there are any. After a failure, the cursor
    /// must not be used again.
    pub(crate) fn clean_up_step(
        &self,
        cursor: &mut CleanUpCursor,
    ) -> Result<Option<Commit>, StorageError> {
        let restores = self.restores.read().unwrap_or_else(PoisonError::into_inner);
        cursor.follow(*restores);
        let Some(storage) = self.storage.local() else {
            return Ok(None);
        };
        // Nothing is written under the id of a deleted table any more, so what is durable with its
        // mark is all there is. The batch before this one is durable, too.
        let batch = clean_up::next_batch(&self.view(), cursor)?;
        batch.map(|batch| storage.commit(batch)).transpose()
    }
}

/// When the last write to a local storage was.
fn last_write(snapshot: &dyn Snapshot) -> Result<Timestamp, StorageError> {
    let last = snapshot.get(key_codec::LAST_WRITE)?;
    let last = last.map(|record| key_codec::read_time(&record, "time of the last write"));
    Ok(last.transpose()?.unwrap_or(Timestamp::MIN))
}

/// A write on the tables of an account.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command<'a> {
    /// Changes entities of one partition of a table together.
    Batch(&'a TableName, &'a [Change<'a>]),
    /// Changes an entity of a table.
    Change(&'a TableName, Change<'a>),
    /// Creates a table.
    CreateTable(&'a TableName),
    /// Deletes a table and all its entities, and reserves its name for a duration, which may be
    /// zero.
    DeleteTable(&'a TableName, Duration),
    /// Changes the properties of the service, as far as they are given.
    SetServiceProperties(&'a ServiceProperties),
    /// Replaces the stored access policies of a table.
    SetTableAcl(&'a TableName, &'a [SignedIdentifier]),
}

/// A change of one entity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    /// The key of the entity.
    pub(crate) key: &'a EntityKey,
    /// The kind of change.
    pub(crate) action: Action<'a>,
}

impl Change<'_> {
    /// How many bytes the key and the record of the change take, at most, unless it merges.
    fn bytes_max(&self) -> usize {
        let record_bytes = match self.action {
            Action::Delete(_) => 0,
            Action::Insert(properties) | Action::Update { properties, .. } => {
                properties.record_bytes_max()
            }
        };
        key_codec::bytes_of_key(self.key) + record_bytes
    }

    /// Returns true if the entity must not exist.
    const fn is_insert(&self) -> bool {
        matches!(self.action, Action::Insert(_))
    }
}

/// The kind of a change. The properties are valid individually.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action<'a> {
    /// Deletes it.
    Delete(&'a IfMatch),
    /// Inserts it; it must not exist.
    Insert(&'a Properties),
    /// Replaces it or merges into it. Without a condition, a missing entity is inserted.
    Update {
        /// The effect on other properties: they remain, or not.
        mode: Mode,
        /// The ETag that it must have.
        if_match: Option<&'a IfMatch>,
        /// The properties of the request.
        properties: &'a Properties,
    },
}

/// A command that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The timestamp of the written entities.
    pub(crate) timestamp: Timestamp,
}

/// How many scans read a disk at a time, each on a separate thread. Further ones wait for their
/// turn, because each thread takes memory of its own for a page, and more of them than processors
/// do not read faster unless they wait for the disk.
#[cfg(feature = "durable")]
pub(crate) fn disk_permits_max() -> usize {
    2 * std::thread::available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests {
    use tablesdk_protocol::{ETag, ValueRef};

    use super::*;
    use crate::storage::MemoryStorage;
    use crate::time::monotonic_clock::tests::ManualClock;

    /// One conditional write of a counter, on the version that is there now. Whether it was carried
    /// out.
    async fn increment(engine: &Engine, table: &TableName, key: &EntityKey) -> bool {
        let (etag, count) = {
            let view = engine.view();
            let id = view.require_table("acct", table).unwrap();
            let row = view.entity(id, key).unwrap().unwrap();
            let entity = row.open(key).unwrap();
            let Some(ValueRef::Int32(count)) = entity.property("count") else {
                panic!("the counter is lost");
            };
            (entity.etag(), count)
        };
        std::thread::yield_now();
        let properties = Properties::from_iter([("count", ValueRef::Int32(count + 1))]);
        let if_match = IfMatch::ETag(etag);
        let action = Action::Update {
            mode: Mode::Replace,
            if_match: Some(&if_match),
            properties: &properties,
        };
        let command = Command::Change(table, Change { key, action });
        match engine.commit("acct", &command).await {
            Ok(_) => true,
            Err(failure) => {
                let expected = Failure::Rejected(Rejection::UpdateConditionNotSatisfied);
                assert_eq!(failure, expected);
                false
            }
        }
    }

    #[test]
    fn an_etag_is_replaced_at_most_once() {
        let runtime = || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.build().unwrap()
        };
        let clock = ManualClock::new("2024-03-15T10:20:30Z") as Arc<dyn Clock>;
        let storage = Box::new(MemoryStorage::default());
        let engine = Engine::new(storage, clock, Paging::default()).unwrap();
        let table: TableName = "people".parse().unwrap();
        let key = EntityKey::new("p", "r").unwrap();
        let zero = Properties::from_iter([("count", ValueRef::Int32(0))]);
        runtime().block_on(async {
            let create = Command::CreateTable(&table);
            engine.commit("acct", &create).await.unwrap();
            let action = Action::Insert(&zero);
            let insert = Command::Change(&table, Change { key: &key, action });
            engine.commit("acct", &insert).await.unwrap();
        });
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    runtime().block_on(async {
                        let mut done = 0;
                        while done < 200 {
                            done += usize::from(increment(&engine, &table, &key).await);
                        }
                    });
                });
            }
        });
        let view = engine.view();
        let id = view.require_table("acct", &table).unwrap();
        let row = view.entity(id, &key).unwrap().unwrap();
        let entity = row.open(&key).unwrap();
        assert_eq!(entity.property("count"), Some(ValueRef::Int32(800)));
        // The clock stood still: each of the 802 commands moved the time by one step.
        let expected = "2024-03-15T10:20:30.00008Z".parse().unwrap();
        assert!(entity.head().timestamp > expected);
        assert_eq!(entity.etag(), ETag::from_timestamp(entity.head().timestamp));
    }
}
