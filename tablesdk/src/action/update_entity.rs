//! `replace`, `merge`, the upserts and the writes with an ETag from outside: Update, Merge, Insert Or Replace and Insert Or Merge Entity.

use std::fmt;

use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, IfMatch};

use super::write::change::{ChangeKind, EntityChange};
use super::write::changed_only::changes;
use super::write::encoded::EncodedEntity;
use super::write::keep_marker::KeepMarker;
use crate::entity::{Standalone, Stored, WritableEntity};
use crate::error::Error;
use crate::pipeline::{OperationRun, Table};

/// Writes an entity, and returns the new ETag. See [`TableClient::upsert_replace`](crate::TableClient::upsert_replace),
/// [`upsert_merge`](crate::TableClient::upsert_merge), [`replace_if`](crate::TableClient::replace_if) and
/// [`merge_if`](crate::TableClient::merge_if).
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
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct WriteEntity {
    table: Table,
    kind: ChangeKind,
    entity: Result<EncodedEntity, Error>,
    exactly_once: Option<KeepMarker>,
}

impl WriteEntity {
    pub(crate) fn new<E: WritableEntity>(
        table: Table,
        mode: Mode,
        if_match: Option<IfMatch>,
        entity: &E,
    ) -> Self {
        let kind = ChangeKind::Update(mode, if_match);
        let entity = EncodedEntity::inserted(kind.operation(), entity);
        Self {
            table,
            kind,
            entity,
            exactly_once: None,
        }
    }

    pub(crate) const fn encoded(
        table: Table,
        mode: Mode,
        if_match: Option<IfMatch>,
        entity: Result<EncodedEntity, Error>,
    ) -> Self {
        Self {
            table,
            kind: ChangeKind::Update(mode, if_match),
            entity,
            exactly_once: None,
        }
    }

    async fn run(self) -> Result<ETag, Error> {
        let entity = self.entity?;
        let mut run = self.table.pipeline.begin(self.kind.operation());
        let etag = send(&mut run, &self.table, self.kind, entity, self.exactly_once).await;
        run.end(etag)
    }
}

action!(impl[] WriteEntity, table.pipeline => ETag);
exactly_once_options!(
    impl[] WriteEntity;
    /// Determines the outcome even when responses are lost. See [the guide](crate::guide::errors_and_retries#exactly-once) for what
    /// it costs.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// let etag = table.upsert_replace(&Employee::new("Sales", "1", "Ada")).exactly_once().await?;
    /// table.replace_if(&Employee::new("Sales", "1", "Grace"), etag).exactly_once().await?;
    /// # Ok(())
    /// # }
    /// ```
);

/// Writes an entity if its stored version is the one that was read, and puts the new ETag into it. See
/// [`TableClient::replace`](crate::TableClient::replace) and [`TableClient::merge`](crate::TableClient::merge).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// let mut ada = table.get(Employee::key("Sales", "1")).await?.expect("she works here");
/// ada.name = "Ada Lovelace".to_owned();
/// table.replace(&mut ada).exactly_once().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "actions do nothing until awaited"]
pub struct UpdateEntity<'e, E> {
    table: Table,
    mode: Mode,
    entity: &'e mut Stored<E>,
    changed_only: bool,
    exactly_once: Option<KeepMarker>,
}

/// Without the values, which are private.
impl<E> fmt::Debug for UpdateEntity<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpdateEntity")
            .field("table", &self.table)
            .field("mode", &self.mode)
            .field("key", self.entity.key())
            .field("changed_only", &self.changed_only)
            .field("exactly_once", &self.exactly_once)
            .finish()
    }
}

impl<'e, E: WritableEntity> UpdateEntity<'e, E> {
    pub(crate) const fn new(table: Table, mode: Mode, entity: &'e mut Stored<E>) -> Self {
        Self {
            table,
            mode,
            entity,
            changed_only: false,
            exactly_once: None,
        }
    }

    /// For a merge: sends only the properties that differ from what was read with [`tracked`](super::GetEntity::tracked). A value
    /// that became `None` turns the merge into a replace of the whole entity under its ETag, including the properties that the
    /// struct does not have. When nothing differs, nothing is sent, and the version is not compared.
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
    /// As [`merge`](crate::TableClient::merge); and [`ErrorKind::Input`](crate::ErrorKind::Input) when the entity was not read with
    /// `tracked`, when it was written in another way since, or when this is a replace.
    pub const fn changed_only(mut self) -> Self {
        self.changed_only = true;
        self
    }

    /// Encodes before the future is made: the future then holds no shared borrow of the value, for which the value would have to
    /// be `Sync`.
    fn run(self) -> impl Future<Output = Result<(), Error>> + Send + 'e {
        let Self {
            table,
            mode,
            entity,
            changed_only,
            exactly_once,
        } = self;
        let if_match = IfMatch::ETag(entity.etag().clone());
        let kind = ChangeKind::Update(mode, Some(if_match.clone()));
        let update = if changed_only {
            changes(mode, entity)
        } else {
            let encoded = EncodedEntity::replaced(kind.operation(), entity);
            encoded.map(|encoded| Some((mode, encoded, None)))
        };
        let update = update.map_err(|error| {
            let error = error.with_operation(kind.operation());
            error.with_key(entity.key())
        });
        async move {
            let Some((mode, encoded, after)) = update? else {
                return Ok(());
            };
            let kind = ChangeKind::Update(mode, Some(if_match));
            let mut run = table.pipeline.begin(kind.operation());
            let etag = send(&mut run, &table, kind, encoded, exactly_once).await;
            entity.written(run.end(etag)?);
            if let Some(content) = after {
                entity.track(content);
            }
            Ok(())
        }
    }
}

action!(impl['e, E: WritableEntity] UpdateEntity<'e, E>, table.pipeline => 'e, ());
exactly_once_options!(
    impl[E: WritableEntity] UpdateEntity<'_, E>;
    /// Determines the outcome even when responses are lost. See [the guide](crate::guide::errors_and_retries#exactly-once) for what
    /// it costs.
);

// Here, because `Error` is above the entities.
impl<E: Standalone> Stored<E> {
    /// A value with the ETag of its stored version, both from outside: what a client of this program sends back, or what a test
    /// returns in place of the service. The key is that of the value; the timestamp is the one in the ETag.
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
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) when the value has no valid key, and for [`ETag::ANY`], which is the ETag of no version.
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
