//! `insert`: Insert Entity.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;

use tablesdk_protocol::EntityKey;
use tablesdk_protocol::operation::insert_entity::{Request, Response};
use tablesdk_protocol::operation::{EntityBody, Prefer};
use tablesdk_protocol::wire::json::{MetadataLevel, read_entity};

use super::settle::{Sent, settle};
use super::{ActionFuture, EncodedEntity};
use crate::entity::{PropertyReader, Stored, WritableEntity};
use crate::pipeline::Effect;
use crate::{Error, TableClient};

/// Inserts an entity. See [`TableClient::insert`].
#[must_use = "actions do nothing until awaited"]
pub struct InsertEntity<E> {
    table: TableClient,
    entity: Result<EncodedEntity, Error>,
    marker: PhantomData<fn() -> E>,
}

impl<E: WritableEntity> InsertEntity<E> {
    pub(crate) fn new(table: TableClient, entity: &E) -> Self {
        let entity = EncodedEntity::new(OPERATION, entity);
        Self {
            table,
            entity,
            marker: PhantomData,
        }
    }

    async fn run(self) -> Result<Stored<E>, Error> {
        let EncodedEntity { key, body } = self.entity?;
        let request = Request {
            table: self.table.checked_name(OPERATION)?,
            entity: EntityBody::from_bytes(body.clone()),
            prefer: Prefer::ReturnNoContent,
            level: MetadataLevel::Minimal,
        };
        let mut run = self.table.pipeline.begin(OPERATION);
        let encoded = request.encode(&run.pipeline().endpoint);
        let response = match run.send(Effect::Write, &encoded).await {
            Ok(answer) => answer.response,
            Err(error) => {
                let sent = Sent {
                    table: &request.table,
                    key: &key,
                    body: Some(&body),
                    whole: true,
                };
                let (row, error) = settle(&mut run, sent, error).await?;
                return Err(error.into_outcome_unknown(row));
            }
        };
        let failed = |error: Error, key: &EntityKey| error.with_operation(OPERATION).with_key(key);
        let Response { etag, .. } =
            Response::decode(response).map_err(|error| failed(Error::response(error), &key))?;
        // What was sent is what is stored, and needs no way back over the network. It is read as any answer is read, so
        // that no field shows what was not stored.
        let sent = read_entity(&body).map_err(|error| failed(Error::response(error), &key))?;
        let value = E::read(&mut PropertyReader::new(&sent, Some(&etag)));
        let value = value.map_err(|error| failed(Error::response(error), &key))?;
        Ok(Stored::new(value, key, etag))
    }
}

impl<E: WritableEntity> IntoFuture for InsertEntity<E> {
    type Output = Result<Stored<E>, Error>;
    type IntoFuture = ActionFuture<'static, Stored<E>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<E> fmt::Debug for InsertEntity<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InsertEntity")
            .field("table", &self.table)
            .field("entity", &self.entity)
            .finish()
    }
}

const OPERATION: &str = "insert entity";
