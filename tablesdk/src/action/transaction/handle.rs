//! The transaction as its closure sees it: reads are requests to the operation, changes are
//! collected.

use std::borrow::Borrow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, PartitionKey};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::commit::OPERATION;
use crate::action::batch::{Batch, check_partition};
use crate::action::extend::extension::{Extensions, LeftOut};
use crate::action::get_entity::RawEntity;
use crate::action::refusal::refused;
use crate::action::write::change::ChangeKind;
use crate::action::write::encoded::EncodedEntity;
use crate::entity::key::{IntoEntityKey, KeyOf, check_standalone_key};
use crate::entity::standalone::{check_no_entry, check_verified};
use crate::entity::{Standalone, Stored, TableEntity, WritableEntity};
use crate::error::Error;
use crate::query::Explanation;

/// A round of a transaction, as its closure sees it: it reads entities and collects changes. See
/// [`TableClient::transaction`](crate::TableClient::transaction).
///
/// The changes are sent together when the closure has returned `Ok`. A change that breaks a rule of
/// the service is reported then, so that no call in the chain returns a `Result`.
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use tablesdk::action::{ClosureError, Transaction};
///
/// /// Gives an employee another id.
/// async fn rename(tx: &Transaction, from: &str, to: &str) -> Result<(), ClosureError> {
///     let old = tx.get(Employee::key("Sales", from)).await?.ok_or("no such employee")?;
///     let new = Employee { id: to.to_owned(), ..Employee::clone(&old) };
///     tx.delete_stored(&old).insert(&new);
///     Ok(())
/// }
/// table.transaction("Sales", async |tx| rename(&tx, "1", "100").await).await?;
/// assert!(table.get(Employee::key("Sales", "1")).await?.is_none());
/// # assert_eq!(table.get(Employee::key("Sales", "100")).await?.unwrap().name, "Ada");
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    partition: PartitionKey,
    changes: Changes,
    reads: UnboundedSender<ReadRequest>,
}

/// The changes of a round, which its closure and the operation share.
#[derive(Clone)]
pub(super) struct Changes(Arc<Mutex<Option<Batch<'static>>>>);

/// A request of the closure for an entity.
pub(super) struct ReadRequest {
    pub(super) key: EntityKey,
    /// The extensions of the type of the entity.
    pub(super) extensions: Extensions,
    pub(super) respond: Respond,
}

/// Gets what was read, and what adds the key and the attempts to an error.
type Respond = Box<dyn FnOnce(Result<Option<&RawEntity>, Error>, &dyn Fn(Error) -> Error) + Send>;

impl Transaction {
    pub(super) fn new(
        partition: PartitionKey,
        batch: Batch<'static>,
    ) -> (Self, Changes, UnboundedReceiver<ReadRequest>) {
        let changes = Changes(Arc::new(Mutex::new(Some(batch))));
        let (reads, requests) = unbounded_channel();
        let transaction = Self {
            partition,
            changes: changes.clone(),
            reads,
        };
        (transaction, changes, requests)
    }

    /// Reads an entity of the partition, [expired](derive@crate::TableEntity#expires) or not.
    /// Returns `None` when it does not exist.
    ///
    /// The entity is checked when the changes are written: see
    /// [`TableClient::transaction`](crate::TableClient::transaction). A second read of the same key
    /// sends nothing and returns what the first read returned, whatever the closure has changed
    /// since. It may be of another type.
    ///
    /// Reads are sent one after the other, also those that the closure joins.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let name = table.transaction("Sales", async |tx| {
    ///     let ada = tx.get(Employee::key("Sales", "1")).await?;
    ///     // The two strings as they are stored.
    ///     let alan = tx.get::<Employee>(("Sales", "2")).await?;
    ///     Ok(ada.or(alan).map(|it| it.name.clone()))
    /// });
    /// assert_eq!(name.await?.as_deref(), Some("Ada"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TableClient::get`](crate::TableClient::get), and
    /// [`ErrorKind::Input`](crate::ErrorKind::Input), before anything is sent, for a key of another
    /// partition. An error that the closure returns by `?` is the error of the transaction. After a
    /// failed read, a closure that goes on may read, and not change: then the transaction fails.
    pub fn get<E: TableEntity>(
        &self,
        key: impl KeyOf<E>,
    ) -> impl Future<Output = Result<Option<Stored<E>>, Error>> + Send {
        const { check_verified::<E>(false) }
        let key = key.into_entity_key();
        let key = key.map_err(|error| refused(OPERATION, error));
        async move {
            let key = key?;
            check_partition(OPERATION, &self.partition, &key)?;
            let (reply, read) = oneshot::channel();
            let respond: Respond = Box::new(|found, annotate| {
                let decoded = found.and_then(|found| {
                    let decoded = found.map(RawEntity::decode).transpose();
                    decoded.map_err(annotate)
                });
                // The closure may have dropped its future.
                let _ = reply.send(decoded);
            });
            // Fails after the end of the round, which drops the receiver.
            let _ = self.reads.send(ReadRequest {
                key,
                // Hidden entities are read, too.
                extensions: Extensions::of::<E>(LeftOut::NONE),
                respond,
            });
            read.await.map_err(|_| refused(OPERATION, Ended))?
        }
    }

    /// Inserts an entity that must not exist yet.
    ///
    /// If it was read as missing and another client has inserted it since, the closure runs again.
    /// Otherwise an existing entity is the error of the transaction.
    pub fn insert<E: WritableEntity>(&self, entity: &E) -> &Self {
        self.write(ChangeKind::Insert, entity)
    }

    /// Inserts an entity, or replaces the existing one, whatever its version. An entity that was
    /// read is replaced if its version is still that one.
    pub fn upsert_replace<E: Standalone>(&self, entity: &E) -> &Self {
        self.write(ChangeKind::Update(Mode::Replace, None), entity)
    }

    /// Inserts an entity, or merges it into the existing one, whatever its version. An entity that
    /// was read is merged if its version is still that one.
    pub fn upsert_merge<E: Standalone>(&self, entity: &E) -> &Self {
        self.write(ChangeKind::Update(Mode::Merge, None), entity)
    }

    /// Replaces an entity if its stored version is the one that was read. Properties that the
    /// struct does not have are removed.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "its ETag is out of date after the transaction"
    )]
    pub fn replace<E: WritableEntity>(&self, entity: Stored<E>) -> &Self {
        self.write_stored(Mode::Replace, &entity)
    }

    /// Merges an entity if its stored version is the one that was read. Properties that the struct
    /// does not have stay, and so does the stored value of an `Option` that is `None`.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "its ETag is out of date after the transaction"
    )]
    pub fn merge<E: Standalone>(&self, entity: Stored<E>) -> &Self {
        self.write_stored(Mode::Merge, &entity)
    }

    /// Replaces an entity if its stored version is the one with that ETag, which came from outside.
    /// With [`ETag::ANY`], an entity that was read is replaced if its version is still that one,
    /// and another one whatever its version.
    pub fn replace_if<E: Standalone>(&self, entity: &E, etag: impl Borrow<ETag>) -> &Self {
        let if_match = IfMatch::from(etag.borrow());
        self.write(ChangeKind::Update(Mode::Replace, Some(if_match)), entity)
    }

    /// Merges into an entity if its stored version is the one with that ETag, which came from
    /// outside. With [`ETag::ANY`], as [`replace_if`](Self::replace_if).
    pub fn merge_if<E: Standalone>(&self, entity: &E, etag: impl Borrow<ETag>) -> &Self {
        let if_match = IfMatch::from(etag.borrow());
        self.write(ChangeKind::Update(Mode::Merge, Some(if_match)), entity)
    }

    /// Deletes an entity that must exist, whatever its version. An entity that was read is deleted
    /// if its version is still that one.
    pub fn delete<K: IntoEntityKey>(&self, key: K) -> &Self {
        const { check_standalone_key::<K>() }
        self.delete_when(IfMatch::Any, key)
    }

    /// Deletes an entity if its stored version is the one with that ETag, which came from outside.
    /// With [`ETag::ANY`], as [`delete`](Self::delete).
    pub fn delete_if<K: IntoEntityKey>(&self, key: K, etag: impl Borrow<ETag>) -> &Self {
        const { check_standalone_key::<K>() }
        self.delete_when(IfMatch::from(etag.borrow()), key)
    }

    /// Deletes an entity if its stored version is the one that was read.
    pub fn delete_stored<E: TableEntity>(&self, entity: &Stored<E>) -> &Self {
        const { check_no_entry::<E>() }
        let kind = ChangeKind::Delete(IfMatch::ETag(entity.etag().clone()));
        self.push(kind, Ok(EncodedEntity::deleted(entity)))
    }

    fn delete_when(&self, if_match: IfMatch, key: impl IntoEntityKey) -> &Self {
        let kind = ChangeKind::Delete(if_match);
        let key = key.into_entity_key();
        let key = key.map_err(|error| refused(kind.operation(), error));
        self.push(kind, key.map(EncodedEntity::of_key))
    }

    fn write<E: WritableEntity>(&self, kind: ChangeKind, entity: &E) -> &Self {
        let entity = EncodedEntity::inserted(kind.operation(), entity);
        self.push(kind, entity)
    }

    fn write_stored<E: WritableEntity>(&self, mode: Mode, entity: &Stored<E>) -> &Self {
        let if_match = IfMatch::ETag(entity.etag().clone());
        let kind = ChangeKind::Update(mode, Some(if_match));
        let encoded = EncodedEntity::replaced(kind.operation(), entity);
        self.push(kind, encoded)
    }

    /// Returns the number of requests and changes of the commit, as
    /// [`Batch::explain`](Batch::explain), with the changes of the closure so far. An entity that
    /// was only read is one change more, and its read was a request already.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// let hire = table.transaction("Sales", async |tx| {
    ///     tx.insert(&Employee::new("Sales", "1", "Ada"));
    ///     Ok(tx.explain()?.requests())
    /// });
    /// assert_eq!(hire.await?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Batch::explain`](Batch::explain). Without a change, nothing would be sent:
    /// [`ErrorKind::Input`](crate::ErrorKind::Input).
    pub fn explain(&self) -> Result<Explanation, Error> {
        match &*self.changes.batch() {
            Some(batch) => batch.explain(),
            None => Err(refused(OPERATION, Ended)),
        }
    }

    fn push(&self, kind: ChangeKind, entity: Result<EncodedEntity, Error>) -> &Self {
        self.add(|batch| batch.push(kind, entity, None))
    }

    /// Adds to the changes.
    pub(crate) fn add(&self, add: impl FnOnce(&mut Batch<'static>)) -> &Self {
        if let Some(batch) = &mut *self.changes.batch() {
            add(batch);
        }
        self
    }
}

impl Changes {
    /// `None` after the end of the round.
    fn batch(&self) -> MutexGuard<'_, Option<Batch<'static>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the round, and returns its changes.
    pub(super) fn end(&self) -> Option<Batch<'static>> {
        self.batch().take()
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Transaction")
            .field(&self.changes.batch())
            .finish()
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the closure of the transaction has returned")]
struct Ended;
