//! Wide entities: one value over several entities of a partition. Knows nothing of indexes or of
//! the outbox.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use tablesdk_protocol::{ETag, EntityKey, Timestamp};

use super::call::Call;
use super::entity::WideEntity;
use super::layout::{Head, Parts};
use crate::action::ActionFuture;
use crate::client::TableClient;
use crate::entity::key::{IntoPartitionKey as _, Key, Partition};
use crate::error::{ClosureError, Error};
use crate::pipeline::{PipelineHandle, Table};
use crate::query::{EntityStream, Selection};

impl TableClient {
    /// The verbs of entities of more than 252 properties or 1 MiB: of a struct marked
    /// `#[table(wide)]`, or of maps. See [the module](crate::wide).
    ///
    /// ```
    #[doc = include_str!("../../docs/report.md")]
    /// let reports = table.wide::<Report>();
    /// reports.insert(&Report::new("ann", "2024")).await?;
    /// assert!(reports.get(Report::key("ann", "2024")).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn wide<E: WideEntity>(&self) -> WideTable<E> {
        WideTable::new(self.table().clone())
    }
}

/// The verbs of wide entities. [`TableClient::wide`](crate::TableClient::wide) makes it; see [the
/// module](crate::wide).
pub struct WideTable<E> {
    table: Table,
    entity: PhantomData<fn() -> E>,
}

impl<E: WideEntity> WideTable<E> {
    pub(crate) const fn new(table: Table) -> Self {
        Self {
            table,
            entity: PhantomData,
        }
    }

    /// Inserts an entity that must not exist yet.
    ///
    /// ```
    #[doc = include_str!("../../docs/report.md")]
    /// let reports = table.wide::<Report>();
    /// let inserted = reports.insert(&Report::new("ann", "2024")).await?;
    /// println!("inserted as version {}", inserted.etag());
    /// assert!(reports.insert(&Report::new("ann", "2024")).await.unwrap_err().is_conflict());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `EntityAlreadyExists`, `TableNotFound`; [`ErrorKind::Input`](crate::ErrorKind::Input),
    /// before anything is sent, for more than 99 parts;
    /// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when it may have been
    /// inserted.
    pub fn insert(&self, entity: &E) -> WideAction<'static, StoredWide<E>> {
        let parts = Parts::of(entity);
        self.action("insert wide entity", move |table, operation| async move {
            let mut call = Call::begin(&E::SCHEMA, &table, operation)?;
            let inserted = call.insert(parts).await;
            call.end(inserted)
        })
    }

    /// Reads an entity as a whole. Returns `None` when it does not exist.
    ///
    /// ```
    #[doc = include_str!("../../docs/report.md")]
    /// let reports = table.wide::<Report>();
    /// # reports.insert(&Report::new("ann", "2024")).await?;
    /// let report = reports.get(Report::key("ann", "2024")).await?.expect("was inserted");
    /// assert_eq!(report.pages, 1);
    /// assert!(reports.get(("ann", "2025")).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableNotFound`; [`ErrorKind::Data`](crate::ErrorKind::Data) when the entity is not of this
    /// type, or a sibling was deleted.
    pub fn get(&self, key: impl Into<Key<E>>) -> WideAction<'static, Option<StoredWide<E>>> {
        let key = key.into().checked();
        self.action("get wide entity", move |table, operation| async move {
            let mut call = Call::begin(&E::SCHEMA, &table, operation)?;
            let found = call.get(key).await;
            call.end(found)
        })
    }

    /// Reads some properties of an entity: from the head, and from the siblings that have them.
    ///
    /// One request reads the head, and one each of these siblings, all of one version.
    ///
    /// ```
    #[doc = include_str!("../../docs/report.md")]
    /// let reports = table.wide::<Report>();
    /// # reports.insert(&Report::new("ann", "2024")).await?;
    /// let some = reports.select(Report::key("ann", "2024"), |r| (r.title, r.pages)).await?;
    /// assert_eq!(some, Some(("2024".to_owned(), 1)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn select<S: Selection<E>>(
        &self,
        key: impl Into<Key<E>>,
        columns: impl FnOnce(E::Columns) -> S,
    ) -> WideAction<'static, Option<S::Item>> {
        let key = key.into().checked();
        let selection = columns(E::columns());
        self.action("select wide entity", move |table, operation| async move {
            let mut call = Call::begin(&E::SCHEMA, &table, operation)?;
            let found = call.select(key, &selection).await;
            call.end(found)
        })
    }

    /// Replaces an entity if its stored version is the one that was read. The new ETag is put into
    /// `entity`.
    ///
    /// Properties that the struct does not have are removed.
    ///
    /// ```
    #[doc = include_str!("../../docs/report.md")]
    /// let reports = table.wide::<Report>();
    /// let mut report = reports.insert(&Report::new("ann", "2024")).await?;
    /// report.pages = 813;
    /// reports.replace(&mut report).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `UpdateConditionNotSatisfied` when the entity was written since the read, `ResourceNotFound`
    /// when it no longer exists, and those of [`insert`](Self::insert).
    pub fn replace<'e>(&self, entity: &'e mut StoredWide<E>) -> WideAction<'e, ()> {
        let parts = Parts::of(&entity.value);
        self.action("replace wide entity", move |table, operation| async move {
            let mut call = Call::begin(&E::SCHEMA, &table, operation)?;
            let replaced = call.replace(parts, entity).await;
            call.end(replaced)
        })
    }

    /// Inserts an entity, or replaces the existing one, and returns the new ETag.
    ///
    /// ```
    #[doc = include_str!("../../docs/report.md")]
    /// let reports = table.wide::<Report>();
    /// let first = reports.upsert_replace(&Report::new("ann", "2024")).await?;
    /// let second = reports.upsert_replace(&Report::new("ann", "2024")).await?;
    /// assert_ne!(first, second);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert), without the conflict; `UpdateConditionNotSatisfied`
    /// when other clients write the entity again and again.
    pub fn upsert_replace(&self, entity: &E) -> WideAction<'static, ETag> {
        let parts = Parts::of(entity);
        self.action(
            "upsert_replace wide entity",
            move |table, operation| async move {
                let mut call = Call::begin(&E::SCHEMA, &table, operation)?;
                let written = call.upsert_replace(parts).await;
                call.end(written)
            },
        )
    }

    /// Reads an entity, changes it with a closure, and replaces it under its ETag. Starts over if
    /// another client wrote it meanwhile.
    ///
    /// The closure runs once in each round. Properties that the struct does not have are removed,
    /// unlike by the [`modify`](crate::TableClient::modify) of a table.
    ///
    /// ```
    #[doc = include_str!("../../docs/report.md")]
    /// let reports = table.wide::<Report>();
    /// # reports.insert(&Report::new("ann", "2024")).await?;
    /// let modified = reports.modify(Report::key("ann", "2024"), |report| {
    ///     report.pages += 1;
    ///     Ok(())
    /// });
    /// assert_eq!(modified.await?.pages, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `ResourceNotFound` when the entity does not exist;
    /// [`ErrorKind::Aborted`](crate::ErrorKind::Aborted) when the closure fails; and those of
    /// [`replace`](Self::replace), when other clients write the entity again and again.
    pub fn modify<'a>(
        &self,
        key: impl Into<Key<E>>,
        change: impl FnMut(&mut E) -> Result<(), ClosureError> + Send + 'a,
    ) -> WideAction<'a, StoredWide<E>> {
        let key = key.into().checked();
        self.action("modify wide entity", move |table, operation| async move {
            let mut call = Call::begin(&E::SCHEMA, &table, operation)?;
            let modified = call.modify(key, change).await;
            call.end(modified)
        })
    }

    /// Deletes an entity, whatever its version. Returns `false` when it does not exist.
    ///
    /// ```
    #[doc = include_str!("../../docs/report.md")]
    /// let reports = table.wide::<Report>();
    /// # reports.insert(&Report::new("ann", "2024")).await?;
    /// assert!(reports.delete(Report::key("ann", "2024")).await?);
    /// assert!(!reports.delete(Report::key("ann", "2024")).await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableNotFound`; [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when it may
    /// have been deleted.
    pub fn delete(&self, key: impl Into<Key<E>>) -> WideAction<'static, bool> {
        let key = key.into().checked();
        self.action("delete wide entity", move |table, operation| async move {
            let mut call = Call::begin(&E::SCHEMA, &table, operation)?;
            let deleted = call.delete(key).await;
            call.end(deleted)
        })
    }

    /// Deletes an entity if its stored version is the one that was read. Returns `false` when it
    /// does not exist.
    ///
    /// ```
    #[doc = include_str!("../../docs/report.md")]
    /// let reports = table.wide::<Report>();
    /// let report = reports.insert(&Report::new("ann", "2024")).await?;
    /// assert!(reports.delete_stored(&report).await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `UpdateConditionNotSatisfied` when the entity was written since the read, and those of
    /// [`delete`](Self::delete).
    pub fn delete_stored(&self, entity: &StoredWide<E>) -> WideAction<'static, bool> {
        let (key, head) = (entity.key.clone(), entity.head.clone());
        self.action("delete wide entity", move |table, operation| async move {
            let mut call = Call::begin(&E::SCHEMA, &table, operation)?;
            let deleted = call.delete_version(&key, &head).await;
            call.end(deleted)
        })
    }

    /// Reads all wide entities of a partition, in the order of their row keys. An entity whose row
    /// key is that of another one followed by a space may come before that one.
    ///
    /// If the struct has an [entity type](derive@crate::TableEntity#entity_type), entities of other
    /// types are passed over. Otherwise each entity of the partition that cannot be read as this
    /// type is an error, after which the stream continues.
    ///
    /// ```
    #[doc = include_str!("../../docs/report.md")]
    /// use futures::TryStreamExt;
    ///
    /// let reports = table.wide::<Report>();
    /// for title in ["2023", "2024"] {
    ///     reports.insert(&Report::new("ann", title)).await?;
    /// }
    /// let mut of_ann = reports.stream("ann");
    /// while let Some(report) = of_ann.try_next().await? {
    ///     println!("{}: {} pages", report.title, report.pages);
    /// }
    /// # assert_eq!(reports.stream("ann").try_collect::<Vec<_>>().await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`query`](crate::TableClient::query) and of [`get`](Self::get).
    pub fn stream(&self, partition: impl Into<Partition<E>>) -> EntityStream<StoredWide<E>> {
        let partition = partition.into().into_partition_key();
        super::stream::stream(self.table.clone(), partition)
    }

    /// Deletes what writes of this partition left that did not end: siblings that no head names.
    /// Returns of how many writes.
    ///
    /// Only writes of more than one transaction can leave any: when their program ends, or their
    /// deadline is met. A write is taken for one that has ended if its last transaction is older
    /// than the age, by the time of the service. An age that is too low does no harm but that a
    /// write that is still running fails, with [`Error::is_timeout`]. An hour is a good age. The
    /// clean-up may run beside writers and beside itself.
    ///
    /// ```
    #[doc = include_str!("../../docs/report.md")]
    /// use std::time::Duration;
    ///
    /// let left = table.wide::<Report>().clean_up_siblings("ann", Duration::from_secs(3600)).await?;
    /// assert_eq!(left, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableNotFound`, and other errors of the service. The clean-up can then be called again.
    pub fn clean_up_siblings(
        &self,
        partition: impl Into<Partition<E>>,
        older_than: Duration,
    ) -> WideAction<'static, usize> {
        let partition = partition.into().into_partition_key();
        self.action("clean up siblings", move |table, operation| async move {
            let mut call = Call::begin(&E::SCHEMA, &table, operation)?;
            let cleaned_up = call.clean_up(partition, older_than).await;
            call.end(cleaned_up)
        })
    }

    fn action<'a, T, F>(
        &self,
        operation: &'static str,
        run: impl FnOnce(Table, &'static str) -> F + Send + 'a,
    ) -> WideAction<'a, T>
    where
        F: Future<Output = Result<T, Error>> + Send + 'a,
    {
        let mut table = self.table.clone();
        WideAction {
            pipeline: self.table.pipeline.clone(),
            operation: Box::new(move |pipeline| {
                table.pipeline = pipeline;
                Box::pin(run(table, operation))
            }),
        }
    }
}

impl<E> Clone for WideTable<E> {
    fn clone(&self) -> Self {
        Self {
            table: self.table.clone(),
            entity: PhantomData,
        }
    }
}

impl<E> fmt::Debug for WideTable<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WideTable")
            .field("table", &self.table)
            .finish()
    }
}

/// An operation on a wide entity, which returns a `T`. Each method of a [`WideTable`] makes one.
#[must_use = "actions do nothing until awaited"]
pub struct WideAction<'a, T> {
    pipeline: PipelineHandle,
    operation: Operation<'a, T>,
}

type Operation<'a, T> = Box<dyn FnOnce(PipelineHandle) -> ActionFuture<'a, T> + Send + 'a>;

impl<'a, T> WideAction<'a, T> {
    fn run(self) -> ActionFuture<'a, T> {
        (self.operation)(self.pipeline)
    }
}

action!(impl['a, T: 'a] WideAction<'a, T>, pipeline => 'a, T);

impl<T> fmt::Debug for WideAction<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WideAction")
            .field("pipeline", &self.pipeline)
            .finish_non_exhaustive()
    }
}

/// A wide entity as the service stores it: the value, and the key, ETag and timestamp of its head.
///
/// It derefs to the value. It is no [`Stored`](crate::Stored): the verbs of a table would write the
/// head alone.
///
/// ```
#[doc = include_str!("../../docs/report.md")]
/// let report = table.wide().insert(&Report::new("ann", "2024")).await?;
/// println!("{} is of {:?}, version {}", report.key().row_key(), report.timestamp(), report.etag());
/// let report: Report = report.into_inner();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StoredWide<E> {
    pub(super) value: E,
    pub(super) key: EntityKey,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) head: Head,
}

impl<E> StoredWide<E> {
    /// The key under which the entity is stored. It does not change when the value's key fields
    /// change.
    pub const fn key(&self) -> &EntityKey {
        &self.key
    }

    /// The version that was last read or written: the ETag of the head, which each write changes.
    pub const fn etag(&self) -> &ETag {
        &self.head.etag
    }

    /// When that version was written. It is absent where the ETags of the backend contain no time.
    pub const fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// The value alone.
    pub fn into_inner(self) -> E {
        self.value
    }
}

impl<E: WideEntity> StoredWide<E> {
    /// Notes that the value was written, and as which version.
    pub(super) fn written(&mut self, head: Head) {
        self.timestamp = head.etag.timestamp();
        self.value.written_as(&head.etag);
        self.head = head;
    }
}

impl<E> Deref for StoredWide<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.value
    }
}

impl<E> DerefMut for StoredWide<E> {
    fn deref_mut(&mut self) -> &mut E {
        &mut self.value
    }
}
