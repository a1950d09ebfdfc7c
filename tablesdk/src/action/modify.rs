//! `modify`: reads an entity, changes it, and writes it if it has not changed since the read. Otherwise it starts over.

use std::marker::PhantomData;

use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::wire::json::read_entity;
use tablesdk_protocol::{EntityKey, IfMatch, Value};

use super::EncodedEntity;
use super::get_entity::fetch;
use super::update_entity::send;
use super::write::change::ChangeKind;
use super::write::exactly_once::KeepMarker;
use super::write::unmodelled::{left_as_is, unmodelled};
use crate::entity::{EntityError, Stored, WritableEntity, values_of, write_values};
use crate::error::{ClosureError, Error};
use crate::pipeline::{Effect, OperationRun, Table};

/// Changes an entity with a closure. See [`TableClient::modify`](crate::TableClient::modify).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use tablesdk::ErrorKind;
///
/// let key = || Employee::key("Sales", "1");
/// let ada = table.modify(key(), |e: &mut Employee| {
///     e.name.push_str(" Lovelace");
///     Ok(())
/// });
/// ada.rounds(3).exactly_once().await?;
///
/// // An error of the closure calls it off: nothing is written.
/// let refused = table.modify(key(), |_: &mut Employee| Err("not on a Sunday".into()));
/// assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::CalledOff);
/// # Ok(())
/// # }
/// ```
#[must_use = "actions do nothing until awaited"]
pub struct Modify<E, F> {
    table: Table,
    key: Result<EntityKey, EntityError>,
    change: F,
    rounds: u32,
    exactly_once: Option<KeepMarker>,
    marker: PhantomData<fn() -> E>,
}

impl<E, F> Modify<E, F>
where
    E: WritableEntity,
    F: FnMut(&mut E) -> Result<(), ClosureError> + Send + 'static,
{
    pub(crate) const fn new(table: Table, key: Result<EntityKey, EntityError>, change: F) -> Self {
        Self {
            table,
            key,
            change,
            rounds: ROUNDS,
            exactly_once: None,
            marker: PhantomData,
        }
    }

    /// The maximum number of rounds of reading and writing when other clients keep writing the entity; 16 by default. Must not be
    /// 0.
    ///
    /// All rounds together have the [deadline](crate::RetryPolicy::deadline) of the client. The pause between two rounds is random.
    /// Its upper limit is an eighth of [`RetryPolicy::delay`](crate::RetryPolicy::delay) at first, and doubles each time, up to a
    /// tenth of [`RetryPolicy::max_delay`](crate::RetryPolicy::max_delay).
    pub const fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    async fn run(mut self) -> Result<Stored<E>, Error> {
        let refused = |error| Error::input(error).with_operation(OPERATION);
        let key = self.key.clone().map_err(refused)?;
        if self.rounds == 0 {
            let error = Error::input("a modification needs at least one round");
            return Err(error.with_operation(OPERATION).with_key(&key));
        }
        let table = self.table.clone();
        let mut run = table.begin(OPERATION);
        let modified = self.in_rounds(&mut run, &key).await;
        run.end(modified)
    }

    async fn in_rounds(
        &mut self,
        run: &mut OperationRun<'_>,
        key: &EntityKey,
    ) -> Result<Stored<E>, Error> {
        let mut round = 0;
        loop {
            round += 1;
            let fetched = fetch(run, Effect::ReadNow, &self.table, key, None).await;
            let (content, etag) = fetched?;
            let failed = |error: Error| run.annotate(error).with_key(key);
            let (mut stored, rest) = {
                let entity =
                    read_entity(&content).map_err(|error| failed(Error::response(error)))?;
                let stored = Stored::<E>::read(&entity, etag)
                    .map_err(|error| failed(Error::entity(error)))?;
                let rest = unmodelled(&stored, &entity).map_err(failed)?;
                (stored, rest)
            };
            (self.change)(&mut stored).map_err(|error| failed(Error::called_off(error)))?;
            let encoded = encode(&stored, rest).map_err(|error| failed(Error::input(error)))?;
            let if_match = IfMatch::ETag(stored.etag().clone());
            let kind = ChangeKind::Update(Mode::Replace, Some(if_match));
            match send(run, &self.table, kind, encoded, self.exactly_once).await {
                Ok(etag) => {
                    stored.written(etag);
                    return Ok(stored);
                }
                Err(error) => {
                    let starts_over = error.is_precondition_failed()
                        && round < self.rounds
                        && run.pause_before_round(round).await;
                    if !starts_over {
                        return Err(error);
                    }
                }
            }
        }
    }
}

fn encode<E: WritableEntity>(
    stored: &Stored<E>,
    rest: Vec<(String, Value)>,
) -> Result<EncodedEntity, EntityError> {
    let key = stored.unchanged_key()?.clone();
    let mut values = values_of::<E>(stored, &key)?;
    let rest = left_as_is::<E>(rest, stored, &values);
    values.extend(rest);
    let body = write_values(&key, &values)?;
    Ok(EncodedEntity { key, body })
}

action!(
    impl[E: WritableEntity, F: FnMut(&mut E) -> Result<(), ClosureError> + Send + 'static]
    Modify<E, F>, table.pipeline => Stored<E>
);
exactly_once_options!(
    impl[E, F] Modify<E, F>;
    /// Determines the outcome of each write even when responses are lost. The change is made once if the operation succeeds, and
    /// not at all if it fails. See [the guide](crate::guide::errors_and_retries#exactly-once) for what it costs.
);

debug_by_fields!(Modify<E, F> { table, key, rounds });

const OPERATION: &str = "modify entity";
const ROUNDS: u32 = 16;
