//! Deletes the objects that no entity names.
//!
//! The order makes it safe beside writers. The objects are listed first, and the entities are read
//! afterwards, so an object that is listed and old has an entity before the read, if it ever gets
//! one. The entities are read twice: an entity that is moved to another key during the first read,
//! from behind the reader to before it, is found by the second.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt as _};
use tablesdk_protocol::Guid;

use super::object_ref::id_below;
use super::{NamesObjects, ObjectProblem, Objects};
use crate::action::{ActionFuture, QueryEntities};
use crate::entity::TableEntity;
use crate::error::Error;
use crate::query::Selection;

/// Deletes the objects that no entity names. See [`Objects::clean_up_objects`].
///
/// It is safe beside programs that put objects and write entities, and beside itself, as long as
///
/// * the queries together return what *every* entity names that names objects below the prefix,
///   also the entities of other types and tables. If entities are
///   [moved](crate::TableClient::move_to), the query of the source comes before that of the target.
/// * an entity names its object within the given age after the object was put, and a reference that
///   an entity no longer has is not written into another entity later on. A
///   [step](crate::guide::outbox) of an outbox does that: where steps write references, first
///   [`drain`](crate::outbox::Outbox::drain) the outbox, and see that no step is poisoned.
///
/// If an entity cannot be read, it ends with that error before it deletes anything. Objects with
/// other names than `put` makes stay, as do objects in a deeper folder. The age is by the clock of
/// the store: it puts and deletes an empty object to learn its time, in a dry run, too. All objects
/// that are old enough are held in memory, with about 300 bytes each.
#[must_use = "actions do nothing until awaited"]
pub struct CleanUpObjects<'a> {
    objects: Objects,
    entities: Vec<Result<Read, Error>>,
    older_than: Duration,
    is_dry: bool,
    progress: Box<dyn FnMut(&CleanUpReport) + Send + 'a>,
}

/// Starts to read all entities of a query.
type Read = Box<dyn Fn() -> Named + Send + Sync>;

/// The ids of the objects that each entity names.
type Named = stream::BoxStream<'static, Result<Vec<Guid>, Error>>;

/// The objects that a clean-up has found, and deleted unless it was a dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanUpReport {
    /// The number of objects below the prefix.
    pub objects: u64,
    /// The number of objects that are not older than the given age. They stay.
    pub recent: u64,
    /// The number of older objects that an entity names. They stay.
    pub in_use: u64,
    /// The number of entities that were read, each of them twice.
    pub entities: u64,
    /// The number of objects that were deleted, or would be without
    /// [`dry_run`](CleanUpObjects::dry_run).
    pub deleted: u64,
    /// The length of the deleted objects in bytes.
    pub deleted_bytes: u64,
}

impl<'a> CleanUpObjects<'a> {
    pub(super) fn new(objects: Objects) -> Self {
        Self {
            objects,
            entities: Vec::new(),
            older_than: DAY,
            is_dry: false,
            progress: Box::new(|_| ()),
        }
    }

    /// Further entities that name objects below the prefix: of another type, or of another table.
    pub fn also<E: TableEntity, S: Selection<E, Item: NamesObjects>>(
        mut self,
        entities: QueryEntities<E, S>,
    ) -> Self {
        let prefix = format!("{}/", self.objects.prefix);
        let read = entities.repeated().map(|start| -> Read {
            Box::new(move || {
                let prefix = prefix.clone();
                let named = start().map_ok(move |names| {
                    let mut ids = Vec::new();
                    names.each(&mut |object| {
                        if object.name().starts_with(&prefix) {
                            ids.push(object.id());
                        }
                    });
                    ids
                });
                named.boxed()
            })
        });
        self.entities.push(read);
        self
    }

    /// Deletes only objects that were put before that time; a day by default, and at least an hour.
    /// It is the time that a program has between [`put`](Objects::put) and the write of the entity,
    /// with all retries.
    pub const fn older_than(mut self, age: Duration) -> Self {
        self.older_than = age;
        self
    }

    /// Deletes nothing: the report says what would be deleted.
    pub const fn dry_run(mut self) -> Self {
        self.is_dry = true;
        self
    }

    /// Sets a function that is called with the report so far, after every 100 objects or entities
    /// and at the end.
    pub fn progress(mut self, report: impl FnMut(&CleanUpReport) + Send + 'a) -> Self {
        self.progress = Box::new(report);
        self
    }

    async fn run(mut self) -> Result<CleanUpReport, Error> {
        if self.older_than < HOUR {
            return Err(Error::input(TooYoung));
        }
        let entities = std::mem::take(&mut self.entities);
        let entities = entities.into_iter().collect::<Result<Vec<_>, _>>()?;
        let prefix = self.objects.path()?;
        let mut report = CleanUpReport::default();
        let mut unnamed = self.old_objects(&prefix, &mut report).await?;
        for _ in 0..READS {
            for read in &entities {
                if unnamed.is_empty() {
                    break;
                }
                let mut named = read();
                while let Some(ids) = named.try_next().await? {
                    for id in ids {
                        report.in_use += u64::from(unnamed.remove(&id).is_some());
                    }
                    report.entities += 1;
                    self.report(&report, report.entities);
                }
            }
        }
        self.delete(unnamed, &mut report).await?;
        (self.progress)(&report);
        Ok(report)
    }

    /// The objects that are old enough.
    async fn old_objects(
        &mut self,
        prefix: &Path,
        report: &mut CleanUpReport,
    ) -> Result<HashMap<Guid, ObjectMeta>, Error> {
        let store = Arc::clone(&self.objects.store);
        let probe = self.objects.put("").await?.path();
        let now = store.head(&probe).await;
        store
            .delete(&probe)
            .await
            .map_err(|error| self.failed(error))?;
        let now = now.map_err(|error| self.failed(error))?.last_modified;

        let mut old = HashMap::new();
        let mut listed = store.list(Some(prefix));
        while let Some(object) = listed.next().await {
            let object = object.map_err(|error| self.failed(error))?;
            let Some(id) = id_below(prefix, object.location.as_ref()) else {
                continue;
            };
            report.objects += 1;
            let age = now.signed_duration_since(object.last_modified).to_std();
            if age.is_ok_and(|age| age > self.older_than) {
                old.insert(id, object);
            } else {
                report.recent += 1;
            }
            self.report(report, report.objects);
        }
        Ok(old)
    }

    async fn delete(
        &mut self,
        unnamed: HashMap<Guid, ObjectMeta>,
        report: &mut CleanUpReport,
    ) -> Result<(), Error> {
        if self.is_dry {
            report.deleted = unnamed.len() as u64;
            report.deleted_bytes = unnamed.values().map(|object| object.size).sum();
            return Ok(());
        }
        let store = Arc::clone(&self.objects.store);
        let mut deleted = stream::iter(unnamed.into_values())
            .map(|object| {
                let store = Arc::clone(&store);
                async move { (store.delete(&object.location).await, object.size) }
            })
            .buffer_unordered(CONCURRENCY);
        while let Some((deleted, size)) = deleted.next().await {
            match deleted {
                // Another clean-up was faster.
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(self.failed(error)),
                Ok(()) => {
                    report.deleted += 1;
                    report.deleted_bytes += size;
                    self.report(report, report.deleted);
                }
            }
        }
        Ok(())
    }

    fn report(&mut self, report: &CleanUpReport, count: u64) {
        if count.is_multiple_of(PER_PROGRESS) {
            (self.progress)(report);
        }
    }

    fn failed(&self, error: object_store::Error) -> Error {
        let prefix = self.objects.prefix.clone();
        Error::object_store(ObjectProblem::List { prefix, error })
    }
}

impl<'a> IntoFuture for CleanUpObjects<'a> {
    type Output = Result<CleanUpReport, Error>;
    type IntoFuture = ActionFuture<'a, CleanUpReport>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let report = self.run().await;
            report.map_err(|error| error.with_operation("clean up objects"))
        })
    }
}

impl fmt::Debug for CleanUpObjects<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CleanUpObjects")
            .field("objects", &self.objects)
            .field("older_than", &self.older_than)
            .field("is_dry", &self.is_dry)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "objects younger than an hour cannot be cleaned up: their entity may be written in a moment"
)]
struct TooYoung;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// How often the entities are read.
const READS: u32 = 2;
/// How many objects are deleted at a time.
const CONCURRENCY: usize = 16;
const PER_PROGRESS: u64 = 100;
