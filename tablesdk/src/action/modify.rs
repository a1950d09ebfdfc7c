//! `modify`: reads an entity, changes it, and writes it on the condition that nobody else did in between; again, if so.

use std::error::Error as StdError;
use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;

use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::wire::json::read_entity;
use tablesdk_protocol::{EntityKey, IfMatch, Value};

use super::get_entity::fetch;
use super::update_entity::send;
use super::{ActionFuture, EncodedEntity};
use crate::entity::{
    EntityError, PropertySchema, Stored, WritableEntity, write_entity, write_entity_with,
};
use crate::{Error, TableClient};

/// Changes an entity by way of a closure. See [`TableClient::modify`].
#[must_use = "actions do nothing until awaited"]
pub struct Modify<E, F> {
    table: TableClient,
    key: Result<EntityKey, EntityError>,
    change: F,
    rounds: usize,
    marker: PhantomData<fn() -> E>,
}

/// What the closure of [`TableClient::modify`] may fail with: any error.
pub type ModifyError = Box<dyn StdError + Send + Sync>;

impl<E, F> Modify<E, F>
where
    E: WritableEntity,
    F: FnMut(&mut E) -> Result<(), ModifyError> + Send + 'static,
{
    pub(crate) const fn new(
        table: TableClient,
        key: Result<EntityKey, EntityError>,
        change: F,
    ) -> Self {
        Self {
            table,
            key,
            change,
            rounds: ROUNDS,
            marker: PhantomData,
        }
    }

    /// How often it reads and writes when somebody else keeps writing, at most: 16 times unless told otherwise. Not 0.
    pub const fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds;
        self
    }

    async fn run(mut self) -> Result<Stored<E>, Error> {
        let refused = |error| Error::input(error).with_operation(OPERATION);
        let key = self.key.map_err(refused)?;
        let failed = |error: Error| error.with_operation(OPERATION).with_key(&key);
        if self.rounds == 0 {
            let error = Error::input("a modification needs at least one round");
            return Err(failed(error));
        }
        loop {
            self.rounds -= 1;
            let (content, etag) = fetch(&self.table, &key, None).await?;
            let (mut stored, rest) = {
                let entity =
                    read_entity(&content).map_err(|error| failed(Error::response(error)))?;
                let stored = Stored::<E>::read(&entity, etag)
                    .map_err(|error| failed(Error::response(error)))?;
                let rest = unmodelled(&stored, &entity).map_err(failed)?;
                (stored, rest)
            };
            (self.change)(&mut stored).map_err(|error| failed(Error::caller(error)))?;
            let encoded = encode(&stored, &rest).map_err(|error| failed(Error::input(error)))?;
            let if_match = IfMatch::ETag(stored.etag().clone());
            match send(&self.table, Mode::Replace, Some(if_match), encoded).await {
                Ok(etag) => {
                    stored.written(etag);
                    return Ok(stored);
                }
                Err(error) if error.is_precondition_failed() && self.rounds > 0 => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The properties that the type neither has nor keeps: they are written back as they are.
fn unmodelled<E: WritableEntity>(
    stored: &Stored<E>,
    entity: &tablesdk_protocol::wire::json::JsonEntity<'_>,
) -> Result<Vec<(String, Value)>, Error> {
    let kept = write_entity::<E>(stored, stored.key()).map_err(Error::input)?;
    let kept = read_entity(&kept).map_err(Error::response)?;
    let schema = E::SCHEMA.properties();
    let mut rest = Vec::new();
    for property in entity.properties() {
        let name = property.name();
        let is_modelled = |known: &PropertySchema| known.name() == name || known.is_alias(name);
        if kept.property(name).is_some() || schema.iter().any(is_modelled) {
            continue;
        }
        if let Some(value) = property.to_value().map_err(Error::response)? {
            rest.push((name.to_owned(), value));
        }
    }
    Ok(rest)
}

fn encode<E: WritableEntity>(
    stored: &Stored<E>,
    rest: &[(String, Value)],
) -> Result<EncodedEntity, EntityError> {
    let key = stored.unchanged_key()?.clone();
    let body = write_entity_with::<E>(stored, &key, rest)?;
    Ok(EncodedEntity { key, body })
}

impl<E, F> IntoFuture for Modify<E, F>
where
    E: WritableEntity,
    F: FnMut(&mut E) -> Result<(), ModifyError> + Send + 'static,
{
    type Output = Result<Stored<E>, Error>;
    type IntoFuture = ActionFuture<'static, Stored<E>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<E, F> fmt::Debug for Modify<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Modify")
            .field("table", &self.table)
            .field("key", &self.key)
            .field("rounds", &self.rounds)
            .finish_non_exhaustive()
    }
}

const OPERATION: &str = "modify entity";
const ROUNDS: usize = 16;
