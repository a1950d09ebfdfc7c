//! `insert`: Insert Entity.

use std::error::Error as StdError;
use std::sync::LazyLock;

use bytes::Bytes;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::wire::json::read_entity_by;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, Timestamp};

use super::extend::extension::{Extensions, LeftOut};
use super::future::ActionFuture;
use super::get_entity::{fetch, is_hidden, read_content};
use super::write::change::{ChangeKind, EntityChange};
use super::write::encoded::{EncodedEntity, riders};
use super::write::keep_marker::KeepMarker;
use super::write::response::malformed_success;
use crate::entity::encrypted::without_secrets;
use crate::entity::{EntityError, PropertyReader, Stored, TableEntity, WritableEntity};
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun, Table};

/// Inserts an entity. See [`TableClient::insert`](crate::TableClient::insert).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// let ada = Employee::new("Sales", "1", "Ada");
/// // If responses are lost, a marker in the same partition shows the outcome.
/// let stored = table.insert(&ada).exactly_once().await?;
/// assert!(table.insert(&ada).exactly_once().await.unwrap_err().is_conflict());
/// # drop(stored);
/// # Ok(())
/// # }
/// ```
#[must_use = "actions do nothing until awaited"]
pub struct InsertEntity<E> {
    table: Table,
    entity: Result<EncodedEntity, Error>,
    exactly_once: Option<KeepMarker>,
    // `IntoFuture` calls it and needs no bound on `E`: a generic function without the bound gets
    // one compiler message, about the bound.
    run: fn(Self) -> ActionFuture<'static, Stored<E>>,
}

impl<E: WritableEntity> InsertEntity<E> {
    pub(crate) fn new(table: Table, entity: &E) -> Self {
        Self::encoded(table, EncodedEntity::inserted(OPERATION, entity))
    }

    pub(crate) const fn encoded(table: Table, entity: Result<EncodedEntity, Error>) -> Self {
        Self {
            table,
            entity,
            exactly_once: None,
            run: |action| {
                let handle = action.table.pipeline.clone();
                Box::pin(async move {
                    let stored = action.run().await;
                    stored.map_err(|error| handle.locate(error))
                })
            },
        }
    }

    // The service stores exactly the body of the request, so the client reads that back instead of
    // asking for the entity in the response: `Stored` shows no field that was not stored.
    async fn run(self) -> Result<Stored<E>, Error> {
        let entity = self.entity?;
        let (key, body) = (entity.key.clone(), entity.body.clone());
        // Before it is sent: afterwards, only the service may cause a failure.
        let (value, shows_etag) = read_back::<E>(&body, &NO_ETAG).map_err(|error| {
            let error = Error::input(Unreadable { source: error });
            error.with_operation(OPERATION).with_key(&key)
        })?;
        let extensions = Extensions::of::<E>(LeftOut::NONE);
        let again = extensions.can_hide().then(|| entity.clone());
        let kind = ChangeKind::Insert;
        let change = EntityChange::new(OPERATION, &self.table, kind, entity).await?;
        let mut run = self.table.pipeline.begin(OPERATION);
        let mut written = change.write(&mut run, self.exactly_once).await;
        if let Some(again) = again
            && let Err(error) = written
        {
            let over = Over {
                table: &self.table,
                extensions: &extensions,
                inserted: again,
                exactly_once: self.exactly_once,
            };
            written = Box::pin(over.insert::<E>(&mut run, error)).await;
        }
        let stored = match written {
            // What was sent is what is stored, and is not read over the network again. It is
            // decoded as a response would be, so that no field shows a value that was not stored.
            Ok(Some(etag)) if !shows_etag => Ok(Stored::new(value, key, etag)),
            Ok(Some(etag)) => match read_back(&body, &etag) {
                Ok((value, _)) => Ok(Stored::new(value, key, etag)),
                // A field needs the time, which the ETags of this backend do not contain.
                Err(_) => Box::pin(fetch_back(&mut run, &self.table, &key, &etag))
                    .await
                    .map_err(|error| run.annotate(error).with_key(&key)),
            },
            Ok(None) => Err(run.annotate(malformed_success("the response has no ETag"))),
            Err(error) => Err(error),
        };
        run.end(stored)
    }
}

/// An insert that met another entity, which may be hidden.
struct Over<'t> {
    table: &'t Table,
    extensions: &'t Extensions,
    inserted: EncodedEntity,
    exactly_once: Option<KeepMarker>,
}

impl Over<'_> {
    /// Replaces the entity under its ETag, if it is hidden. Returns the error of the insert if it
    /// is not.
    async fn insert<E: WritableEntity>(
        self,
        run: &mut OperationRun<'_>,
        mut error: Error,
    ) -> Result<Option<ETag>, Error> {
        self.extensions.begin(self.table);
        let mut round = 0;
        while error.is_conflict() && !error.has_details() {
            round += 1;
            let fetched = fetch(run, Effect::ReadNow, self.table, &self.inserted.key, None).await;
            let replaced = match fetched {
                Ok(found) => {
                    if !is_hidden(run, self.extensions, &found.content) {
                        return Err(error);
                    }
                    let key = &self.inserted.key;
                    let hidden = read_content::<E>(self.table, self.extensions, key, found).await;
                    let Ok(replaced) = hidden.and_then(|it| self.replacing::<E>(it)) else {
                        // It is of another type, for instance.
                        return Err(error);
                    };
                    Some(replaced)
                }
                Err(error) if error.is_not_found() => None,
                // Nothing was inserted, even if it is the response that cannot be read.
                Err(error) => return Err(error.into_not_done()),
            };
            let inserted = || (ChangeKind::Insert, self.inserted.clone());
            let (kind, entity) = replaced.unwrap_or_else(inserted);
            let change = EntityChange::new(OPERATION, self.table, kind, entity).await?;
            let rival = match change.write(run, self.exactly_once).await {
                Err(rival) if rival.is_out_of_date() && !rival.has_details() => rival,
                written => return written,
            };
            if round == ROUNDS || !run.pause_before_round(round).await {
                return Err(error);
            }
            // Another client has removed the hidden entity, or has written it.
            if rival.is_conflict() {
                error = rival;
            }
        }
        Err(error)
    }

    /// The replacement of a hidden entity: it has what goes along with the one, and gets the value
    /// of the other.
    fn replacing<E: WritableEntity>(
        &self,
        mut hidden: Stored<E>,
    ) -> Result<(ChangeKind, EncodedEntity), Error> {
        let if_match = IfMatch::ETag(hidden.etag().clone());
        let kind = ChangeKind::Update(Mode::Replace, Some(if_match));
        if const { !E::FACTS.has_riders } {
            return Ok((kind, self.inserted.clone()));
        }
        let value = read_back::<E>(&self.inserted.body, &NO_ETAG);
        (*hidden, _) = value.map_err(Error::input)?;
        let replaced = EncodedEntity {
            riders: riders(&*hidden, hidden.memory()).map_err(Error::input)?,
            ..self.inserted.clone()
        };
        Ok((kind, replaced))
    }
}

/// The value of an entity that was written, as it is read. Also whether it depends on the ETag.
fn read_back<E: TableEntity>(body: &Bytes, etag: &ETag) -> Result<(E, bool), Cause> {
    let read = read_entity_by(body, |sent| {
        let schema = const { &E::SCHEMA };
        let mut reader = PropertyReader::with_schema(sent, schema, Some(etag));
        let value = E::read(&mut reader).map_err(without_secrets::<E>)?;
        Ok((value, reader.has_given_etag()))
    })?;
    read.map_err(|error: EntityError| error.into())
}

/// Reads an entity that was stored with that ETag.
async fn fetch_back<E: TableEntity>(
    run: &mut OperationRun<'_>,
    table: &Table,
    key: &EntityKey,
    etag: &ETag,
) -> Result<Stored<E>, Error> {
    let read = match fetch(run, Effect::ReadNow, table, key, E::SCHEMA.select()).await {
        Ok(found) => {
            read_content::<E>(table, &Extensions::of::<E>(LeftOut::NONE), key, found).await
        }
        Err(error) => Err(error),
    };
    let why = match read {
        Ok(stored) if stored.etag() == etag => return Ok(stored),
        Ok(_) => "it was written again since".to_owned(),
        Err(error) => error.why(),
    };
    Err(Error::response(Unshown {
        etag: etag.clone(),
        why,
    }))
}

type Cause = Box<dyn StdError + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[error("it could be written, but not be read again")]
pub(crate) struct Unreadable {
    pub(crate) source: Cause,
}

#[derive(Debug, thiserror::Error)]
#[error("the entity was stored with the ETag {etag}, and cannot be returned: {why}")]
pub(crate) struct Unshown {
    pub(crate) etag: ETag,
    pub(crate) why: String,
}

impl<E> IntoFuture for InsertEntity<E> {
    type Output = Result<Stored<E>, Error>;
    type IntoFuture = ActionFuture<'static, Stored<E>>;

    fn into_future(self) -> Self::IntoFuture {
        (self.run)(self)
    }
}

call_options!(impl[E] InsertEntity<E>, table.pipeline);
exactly_once_options!(
    impl[E] InsertEntity<E>;
    /// Determines the outcome even when responses are lost. See [the
    /// guide](crate::guide::errors_and_retries#exactly-once) for what it costs.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// table.insert(&Employee::new("Sales", "1", "Ada")).exactly_once().await?;
    /// // No marker is left.
    /// assert_eq!(table.query::<Employee>().count().await?, 1);
    ///
    /// // Keeps the marker for ten minutes: `clean_up_markers` deletes it later.
    /// use std::time::Duration;
    ///
    /// let grace = Employee::new("Sales", "2", "Grace");
    /// table.insert(&grace).exactly_once_for(Duration::from_secs(600)).await?;
    /// assert_eq!(table.clean_up_markers("Sales").await?, 0);
    /// # Ok(())
    /// # }
    /// ```
);

debug_by_fields!(InsertEntity<E> { table, entity, exactly_once });

const OPERATION: &str = "insert entity";
const ROUNDS: u32 = 16;
/// Stands for the ETag that the service has not given yet.
static NO_ETAG: LazyLock<ETag> = LazyLock::new(|| ETag::from_timestamp(Timestamp::UNIX_EPOCH));
