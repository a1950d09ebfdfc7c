//! Insert Entity: inserts the entity of the body, unless an entity with its keys exists.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/insert-entity>. This module defines
//! the order of the checks of an insert; the engine repeats some of them.

use bytes::Bytes;
use http::{HeaderValue, Response as HttpResponse, header};
use tablesdk_protocol::EntityKey;
use tablesdk_protocol::operation::insert_entity::{Request, Response};
use tablesdk_protocol::operation::{EntityInput, Prefer};
use tablesdk_protocol::wire::json::{EntityHead, StoredReader};

use super::{
    Handled, OperationError, commit, entity_format, or_missing_table, read_stored, stored,
};
use crate::engine::{Action, Change, Command, Engine, Outcome, Properties};
use crate::flavor::Flavor;
use crate::request::auth::{Principal, Write};
use crate::request::context::Context;
use crate::storage::StorageError;

pub(super) async fn handle(
    engine: &Engine,
    context: &Context,
    principal: &Principal,
    request: &Request,
) -> Handled {
    let (key, properties) = read(engine, context, request, &mut StoredReader::default()).await?;
    let authorized = principal.authorize(&Write::insert(&request.table, Some(&key)));
    let authorized = authorized.map_err(OperationError::from);
    or_missing_table(engine, context, &request.table, authorized).await?;
    let change = Change {
        key: &key,
        action: Action::Insert(&properties),
    };
    let command = Command::Change(&request.table, change);
    let outcome = commit(engine, context, &command).await?;
    Ok(response(context, request, &key, &properties, outcome)?)
}

pub(super) fn response(
    context: &Context,
    request: &Request,
    key: &EntityKey,
    properties: &Properties,
    outcome: Outcome,
) -> Result<HttpResponse<Bytes>, StorageError> {
    let response = Response {
        etag: context.flavor.etag(outcome.timestamp),
        content: echo(context, request, key, properties, outcome)?,
    };
    let mut response = response.encode(request, context.endpoint(), key);
    if context.flavor.has_gateway() {
        locate_as_cosmos_db(&mut response);
    }
    Ok(response)
}

/// Writes the URL of the entity as Cosmos DB does.
// SERVICE: recorded for this character; that others are encoded is assumed.
fn locate_as_cosmos_db(response: &mut HttpResponse<Bytes>) {
    let headers = response.headers_mut();
    let location = headers
        .get(header::LOCATION)
        .and_then(|value| value.to_str().ok());
    if let Some(location) = location.filter(|location| location.contains("%40"))
        && let Ok(location) = HeaderValue::try_from(location.replace("%40", "@"))
    {
        headers.insert(header::LOCATION, location);
    }
}

/// Reads the entity to insert.
pub(super) async fn read<'r>(
    engine: &Engine,
    context: &Context,
    request: &'r Request,
    reader: &mut StoredReader<'r>,
) -> Result<(EntityKey, Properties), OperationError> {
    if let Some((keys, properties)) = read_stored(reader, &request.entity, context.flavor, true)
        && let (Some(partition_key), Some(row_key)) = (keys.partition_key, keys.row_key)
        && let Ok(key) = EntityKey::new(partition_key, row_key)
    {
        return Ok((key, properties));
    }
    let input = request.entity.read_as(context.flavor.entity_style())?;
    let flavor = context.flavor;
    or_missing_table(
        engine,
        context,
        &request.table,
        values(input, request, flavor),
    )
    .await
}

fn values(
    mut input: EntityInput<'_>,
    request: &Request,
    flavor: Flavor,
) -> Result<(EntityKey, Properties), OperationError> {
    let key = input.take_key()?;
    let properties = stored(input, &request.entity, &key, flavor, true)?;
    Ok((key, properties))
}

/// The entity as JSON, if the response contains it.
pub(super) fn echo(
    context: &Context,
    request: &Request,
    key: &EntityKey,
    properties: &Properties,
    outcome: Outcome,
) -> Result<Option<Bytes>, StorageError> {
    let echo = (request.prefer != Prefer::ReturnNoContent).then(|| {
        let format = entity_format(context, request.level, &request.table, None);
        let head = EntityHead {
            partition_key: key.partition_key().as_str(),
            row_key: key.row_key().as_str(),
            timestamp: outcome.timestamp,
        };
        let stored = properties.at(outcome.timestamp);
        format.single(head, stored.json(), stored.properties())
    });
    Ok(echo.transpose()?.map(Bytes::from))
}
