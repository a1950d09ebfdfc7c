//! `replace`, `merge`, the upserts and the writes with an ETag from outside: Update, Merge, Insert
//! Or Replace and Insert Or Merge Entity.

use bytes::Bytes;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, IfMatch};

use super::write::change::{ChangeKind, EntityChange};
use super::write::changed_only::changes;
use super::write::encoded::EncodedEntity;
use super::write::keep_marker::KeepMarker;
use crate::entity::{Standalone, Stored, TableEntity, WritableEntity};
use crate::error::Error;
use crate::pipeline::{OperationRun, Table};

/// Writes an entity, and returns its new ETag.
///
/// A `Write` is the action of [`TableClient::upsert_replace`](crate::TableClient::upsert_replace),
/// [`upsert_merge`](crate::TableClient::upsert_merge),
/// [`replace_if`](crate::TableClient::replace_if) and [`merge_if`](crate::TableClient::merge_if); a
/// `Write<&mut Stored<E>>` is the action of [`replace`](crate::TableClient::replace) and
/// [`merge`](crate::TableClient::merge), and puts the new ETag into the [`Stored`], too.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// use tablesdk::ETag;
///
/// let etag = table.upsert_merge(&Employee::new("Sales", "1", "Ada")).await?;
/// let next = table.replace_if(&Employee::new("Sales", "1", "Grace"), ETag::ANY).await?;
/// assert_ne!(etag, next, "each write makes a version");
///
/// let error = table.replace_if(&Employee::new("Sales", "1", "Alan"), etag).await.unwrap_err();
/// assert!(error.is_precondition_failed());
///
/// let mut grace = table.get(Employee::key("Sales", "1")).await?.expect("she works here");
/// grace.name.push_str(" Hopper");
/// let etag = table.replace(&mut grace).exactly_once().await?;
/// assert_eq!(grace.etag(), &etag);
/// # Ok(())
/// # }
/// ```
#[must_use = "actions do nothing until awaited"]
pub struct Write<T = ()> {
    table: Table,
    mode: Mode,
    if_match: Option<IfMatch>,
    /// The entity to send, or the result of a write that sends nothing.
    entity: Result<EncodedEntity, Result<ETag, Error>>,
    stored: T,
    /// The content of the entity after the write, if it is tracked.
    tracked: Option<Bytes>,
    exactly_once: Option<KeepMarker>,
}

impl Write {
    pub(crate) fn of_value<E: WritableEntity>(
        table: Table,
        mode: Mode,
        if_match: Option<IfMatch>,
        entity: &E,
    ) -> Self {
        let kind = ChangeKind::Update(mode, if_match.clone());
        let entity = EncodedEntity::inserted(kind.operation(), entity);
        Self::new(table, mode, if_match, entity, ())
    }

    pub(crate) fn encoded(
        table: Table,
        mode: Mode,
        if_match: Option<IfMatch>,
        entity: EncodedEntity,
    ) -> Self {
        Self::new(table, mode, if_match, Ok(entity), ())
    }

    async fn run(self) -> Result<ETag, Error> {
        let entity = match self.entity {
            Ok(entity) => entity,
            Err(result) => return result,
        };
        let kind = ChangeKind::Update(self.mode, self.if_match);
        send_alone(&self.table, kind, entity, self.exactly_once).await
    }
}

impl<'e, E: WritableEntity> Write<&'e mut Stored<E>> {
    pub(crate) fn of_stored(table: Table, mode: Mode, stored: &'e mut Stored<E>) -> Self {
        let if_match = Some(IfMatch::ETag(stored.etag().clone()));
        let kind = ChangeKind::Update(mode, if_match.clone());
        let entity = EncodedEntity::replaced(kind.operation(), stored);
        Self::new(table, mode, if_match, entity, stored)
    }

    /// For a merge: sends only the properties that differ from what was read with
    /// [`tracked`](super::GetEntity::tracked). A value that became `None` turns the merge into a
    /// replace of the whole entity under its ETag, including the properties that the struct does
    /// not have. When nothing differs, nothing is sent, the version is not compared, and the ETag
    /// that was read is returned.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let key = Employee::key("Sales", "1");
    /// let mut ada = table.get(key).tracked().await?.expect("she works here");
    /// ada.name.push_str(" Lovelace");
    /// table.merge(&mut ada).changed_only().await?;
    ///
    /// // Tracking goes on with what was written.
    /// table.merge(&mut ada).changed_only().await?;
    /// # assert_eq!(table.get(Employee::key("Sales", "1")).await?.unwrap().name, "Ada Lovelace");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`merge`](crate::TableClient::merge); and [`ErrorKind::Input`](crate::ErrorKind::Input)
    /// when the entity was not read with `tracked`, when it was written in another way since, or
    /// when this is a replace.
    pub fn changed_only(mut self) -> Self {
        if self.tracked.is_some() {
            // It was called before.
            return self;
        }
        self.entity = match changes(self.mode, self.stored) {
            Ok(Some((mode, entity, content))) => {
                self.mode = mode;
                self.tracked = Some(content);
                Ok(entity)
            }
            Ok(None) => Err(Ok(self.stored.etag().clone())),
            Err(error) => {
                let kind = ChangeKind::Update(self.mode, self.if_match.clone());
                let error = error.with_operation(kind.operation());
                Err(Err(error.with_key(self.stored.key())))
            }
        };
        self
    }
}

impl<E: TableEntity> Write<&mut Stored<E>> {
    async fn run(self) -> Result<ETag, Error> {
        let entity = match self.entity {
            Ok(entity) => entity,
            Err(result) => return result,
        };
        let kind = ChangeKind::Update(self.mode, self.if_match);
        let etag = send_alone(&self.table, kind, entity, self.exactly_once).await?;
        self.stored.written(etag.clone());
        if let Some(content) = self.tracked {
            self.stored.track(content);
        }
        Ok(etag)
    }
}

impl<T> Write<T> {
    fn new(
        table: Table,
        mode: Mode,
        if_match: Option<IfMatch>,
        entity: Result<EncodedEntity, Error>,
        stored: T,
    ) -> Self {
        Self {
            table,
            mode,
            if_match,
            entity: entity.map_err(Err),
            stored,
            tracked: None,
            exactly_once: None,
        }
    }
}

action!(impl[] Write, table.pipeline => ETag);
action!(impl['e, E: TableEntity] Write<&'e mut Stored<E>>, table.pipeline => 'e, ETag);
exactly_once_options!(
    impl[T] Write<T>;
    /// Determines the outcome even when responses are lost. See [the
    /// guide](crate::guide::errors_and_retries#exactly-once) for what it costs.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// let etag = table.upsert_replace(&Employee::new("Sales", "1", "Ada")).exactly_once().await?;
    /// table.replace_if(&Employee::new("Sales", "1", "Grace"), etag).exactly_once().await?;
    /// # Ok(())
    /// # }
    /// ```
);

debug_by_fields!(Write<T> { table, mode, if_match, entity, exactly_once });

// Here, because `Error` is above the entities.
impl<E: Standalone> Stored<E> {
    /// A value with the ETag of its stored version, both from outside: what a client of this
    /// program sends back, or what a test returns in place of the service. The key is that of the
    /// value; the timestamp is the one in the ETag.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # let etag = table.insert(&Employee::new("Sales", "1", "Ada")).await?.etag().clone();
    /// use tablesdk::Stored;
    ///
    /// let mut ada = Stored::from_parts(Employee::new("Sales", "1", "Ada Lovelace"), etag)?;
    /// table.replace(&mut ada).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) when the value has no valid key, and for
    /// [`ETag::ANY`], which is the ETag of no version.
    // Not deferred to the write, as that of other input: `key()` returns the key.
    pub fn from_parts(mut entity: E, etag: ETag) -> Result<Self, Error> {
        let key = entity.entity_key().map_err(Error::input)?;
        if etag == ETag::ANY {
            return Err(Error::input(AnyVersion).with_key(&key));
        }
        entity.written_as(&etag);
        Ok(Self::new(entity, key, etag))
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "`*` is the ETag of no version: write the value by `replace_if` or `merge_if` with `ETag::ANY`"
)]
struct AnyVersion;

/// Writes an entity as an operation of its own, and returns its new ETag.
async fn send_alone(
    table: &Table,
    kind: ChangeKind,
    entity: EncodedEntity,
    exactly_once: Option<KeepMarker>,
) -> Result<ETag, Error> {
    let mut run = table.pipeline.begin(kind.operation());
    let etag = send(&mut run, table, kind, entity, exactly_once).await;
    run.end(etag)
}

/// Writes an entity as a part of that run, and returns its new ETag.
pub(crate) async fn send(
    run: &mut OperationRun<'_>,
    table: &Table,
    kind: ChangeKind,
    entity: EncodedEntity,
    exactly_once: Option<KeepMarker>,
) -> Result<ETag, Error> {
    let change = EntityChange::new(run.operation(), table, kind, entity).await;
    let change = change.map_err(|error| run.annotate(error))?;
    change.write_entity(run, exactly_once).await
}
