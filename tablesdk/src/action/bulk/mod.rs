//! `bulk`: any number of entities over any partitions, in batches, several at a time. Not atomic,
//! resumable.

pub(crate) mod delete_all;
pub(crate) mod input;
pub(crate) mod modify_all;
pub(crate) mod pack;
pub(crate) mod position;
pub(crate) mod rate;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod turns;

pub use delete_all::DeleteAll;
pub use input::{BulkEntity, BulkStandalone};
use input::{BulkInput, BulkKey, BulkStored};
pub use modify_all::ModifyAll;
pub use report::{BulkError, BulkFailure, BulkProgress, BulkReport};
pub(crate) use send::{delete_unchanged, is_missing};

use std::fmt;
use std::pin::Pin;

use tablesdk_protocol::operation::update_entity::Mode;

use self::run::BulkRun;
use self::send::Verb;
use crate::action::write::encoded::EncodedEntity;
use crate::entity::{TableEntity, WritableEntity};
use crate::pipeline::Table;

/// Writes or deletes any number of entities. See [`TableClient::bulk`](crate::TableClient::bulk).
///
/// [`TableClient::bulk`](crate::TableClient::bulk) returns a `Bulk<'_, false>`, which has no input
/// yet. Each of the six verbs sets the input, a stream, and returns a `Bulk<'_>`, which is awaited.
/// An iterator becomes a stream with `futures::stream::iter`. The items are entities, references to
/// entities, or results with either.
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// use futures::{TryStreamExt, stream};
/// use tablesdk::Stored;
///
/// let employees = (0..250).map(|id| Employee::new("Sales", &id.to_string(), "Ada"));
/// let mut written = 0;
/// let report = table
///     .bulk()
///     .upsert_replace(stream::iter(employees))
///     .concurrency(4)
///     .buffer(1_000)
///     .max_failures(10)
///     .progress(|progress| written = progress.written)
///     .await?;
/// assert!(report.is_success());
/// assert_eq!(written, 250);
///
/// // The items may be references.
/// let employees = [Employee::new("Service", "1", "Grace"), Employee::new("Service", "2", "Alan")];
/// let report = table.bulk().upsert_replace(stream::iter(&employees)).await?;
/// assert_eq!(report.progress().written, 2);
///
/// // From one table into another. If the query fails, the run ends.
/// let former = service.table("FormerEmployees");
/// former.create_table().await?;
/// let found = table.query::<Employee>().stream().map_ok(Stored::into_inner);
/// let report = former.bulk().insert(found).await?;
/// assert_eq!(report.progress().written, 252);
///
/// let keys = (0..250).map(|id| Employee::key("Sales", id.to_string()));
/// let report = table.bulk().delete(stream::iter(keys)).await?;
/// assert!(report.is_success());
/// # Ok(())
/// # }
/// ```
///
/// Entries of [indexes](derive@crate::TableEntity#index) and
/// [copies](derive@crate::TableEntity#copy) are written with their entities: those in the partition
/// of the entity in the same batch, of whose 100 changes they are a part.
///
/// # Errors
///
/// [`BulkError`] when the run ended early: the table is missing or being deleted, the credential is
/// not valid, the input failed, or too many entities failed. The failure of a single entity is in
/// the report.
///
/// # Dropping it
///
/// A run that is dropped sends nothing more. The batches in flight may be carried out. The last
/// progress that was passed to [`progress`](Self::progress) remains valid: a run that resumes there
/// loses nothing.
#[must_use = "a bulk run does nothing until awaited"]
pub struct Bulk<'a, const HAS_INPUT: bool = true>(BulkRun<'a>);

call_options!(impl[const HAS_INPUT: bool] Bulk<'_, HAS_INPUT>, 0.table.pipeline);
bulk_options!(impl['a, const HAS_INPUT: bool] Bulk<'a, HAS_INPUT>, 0);

impl<'a> Bulk<'a, false> {
    pub(crate) fn new(table: Table) -> Self {
        Self(BulkRun::new(table))
    }

    /// Inserts entities that must not exist yet.
    pub fn insert<By: 'a>(
        self,
        entities: impl BulkInput<Item: BulkEntity<By>, Stream: Send + 'a>,
    ) -> Bulk<'a> {
        self.write(Verb::Insert, entities)
    }

    /// Replaces entities that were read, each if its stored version is the one that was read. An
    /// entity that was changed or deleted since is a [failure](BulkReport::failures), with the
    /// error of a [`replace`](crate::TableClient::replace).
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed.md")]
    /// use futures::{TryStreamExt, stream};
    ///
    /// let employees = (1..=60).map(|id| Employee::new("Sales", id, &format!("{id}@contoso.com")));
    /// let report = table.bulk().insert(stream::iter(employees)).await?;
    /// // Sixty entities and their entries in an index: two batches.
    /// assert_eq!((report.progress().written, report.progress().requests), (60, 2));
    ///
    /// let left = table.query::<Employee>().partition("Sales").stream().map_ok(|mut employee| {
    ///     employee.email = None;
    ///     employee
    /// });
    /// let report = table.bulk().replace(left).await?;
    /// assert!(report.is_success());
    /// assert_eq!(table.query::<ByEmail>().partition("Sales").count().await?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace<E: WritableEntity>(
        self,
        entities: impl BulkInput<Item: BulkStored<Entity = E>, Stream: Send + 'a>,
    ) -> Bulk<'a> {
        let inputs = input::stored(entities, |entity| {
            EncodedEntity::replaced(Verb::Replace.operation(), entity)
        });
        Bulk(self.0.with_input(Verb::Replace, inputs))
    }

    /// Inserts entities, or replaces the existing ones, whatever their version.
    pub fn upsert_replace<By: 'a>(
        self,
        entities: impl BulkInput<Item: BulkStandalone<By>, Stream: Send + 'a>,
    ) -> Bulk<'a> {
        self.write(Verb::Upsert(Mode::Replace), entities)
    }

    /// Inserts entities, or merges them into the existing ones, whatever their version.
    pub fn upsert_merge<By: 'a>(
        self,
        entities: impl BulkInput<Item: BulkStandalone<By>, Stream: Send + 'a>,
    ) -> Bulk<'a> {
        self.write(Verb::Upsert(Mode::Merge), entities)
    }

    /// Deletes entities by their keys, whatever their version. An entity that does not exist is
    /// counted as [missing](BulkProgress::missing), and is not a failure.
    pub fn delete(self, keys: impl BulkInput<Item: BulkKey, Stream: Send + 'a>) -> Bulk<'a> {
        Bulk(self.0.with_input(Verb::Delete, input::keys(keys)))
    }

    /// Deletes entities that were read, each if its stored version is the one that was read. An
    /// entity that has changed since stays, and is counted as [changed](BulkProgress::changed); one
    /// that no longer exists is counted as [missing](BulkProgress::missing). Neither is a failure.
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed.md")]
    /// # for id in 1..=3 {
    /// #     table.insert(&Employee::new("Sales", id, &format!("{id}@contoso.com"))).await?;
    /// # }
    /// let sales = table.query::<Employee>().partition("Sales").stream();
    /// let report = table.bulk().delete_stored(sales).await?;
    /// assert_eq!(report.progress().written, 3);
    /// assert_eq!(table.query::<ByEmail>().partition("Sales").count().await?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete_stored<E: TableEntity>(
        self,
        entities: impl BulkInput<Item: BulkStored<Entity = E>, Stream: Send + 'a>,
    ) -> Bulk<'a> {
        let inputs = input::stored(entities, |entity| Ok(EncodedEntity::deleted(entity)));
        Bulk(self.0.with_input(Verb::Delete, inputs))
    }

    fn write<By: 'a>(
        self,
        verb: Verb,
        entities: impl BulkInput<Item: BulkEntity<By>, Stream: Send + 'a>,
    ) -> Bulk<'a> {
        Bulk(self.0.with_input(verb, input::entities(verb, entities)))
    }
}

impl<const HAS_INPUT: bool> Bulk<'_, HAS_INPUT> {
    /// The maximum number of entities in a batch, from 1 to 100; 100 by default. With 1, each
    /// entity is a request of its own, for services that do not support batches or misread them.
    /// Entities with entries of indexes or copies in their partition need batches all the same.
    pub const fn batch_size(mut self, entities: usize) -> Self {
        self.0.batch_size = entities;
        self
    }

    /// The maximum number of entities that are held until their batches are full; 10,000 by
    /// default. The held entities never exceed 16 MiB. Must not be 0. If the input alternates
    /// between more partitions than fit, the batches are smaller.
    pub const fn buffer(mut self, entities: usize) -> Self {
        self.0.buffer = entities;
        self
    }

    /// Skips the input before that index: use the [`BulkProgress::resume_at`] of an earlier run
    /// over the same input. Indexes still count from the start of the whole input.
    pub const fn resume_at(mut self, index: u64) -> Self {
        self.0.first = index;
        self
    }
}

impl<'a> IntoFuture for Bulk<'a> {
    type Output = Result<BulkReport, BulkError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.0.run())
    }
}

impl<const HAS_INPUT: bool> fmt::Debug for Bulk<'_, HAS_INPUT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
