//! Update, Merge, Insert Or Replace and Insert Or Merge Entity.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/update-entity2>. The key is the one of
//! the URL; which of the four it is shows only in mode and condition.

use bytes::Bytes;
use http::{HeaderValue, Response as HttpResponse, header};
use tablesdk_protocol::operation::update_entity::{Request, Response};
use tablesdk_protocol::wire::json::StoredReader;

use super::{Handled, OperationError, commit, or_missing_table, read_stored, stored};
use crate::engine::{Action, Change, Command, Engine, Outcome, Properties};
use crate::request::context::Context;

pub(super) async fn handle(engine: &Engine, context: &Context, request: &Request) -> Handled {
    let properties = read(engine, context, request, &mut StoredReader::default()).await?;
    let action = Action::Update {
        mode: request.mode,
        if_match: request.if_match.as_ref(),
        properties: &properties,
    };
    let change = Change {
        key: &request.key,
        action,
    };
    let command = Command::Change(&request.table, change);
    let outcome = commit(engine, context, &command).await?;
    Ok(response(context, request, outcome))
}

pub(super) fn response(
    context: &Context,
    request: &Request,
    outcome: Outcome,
) -> HttpResponse<Bytes> {
    let etag = context.flavor.etag(outcome.timestamp);
    let mut response = Response { etag }.encode();
    if request.if_match.is_none() && context.flavor.types_upserts() {
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
    }
    response
}

/// Reads the properties to write.
pub(super) async fn read<'r>(
    engine: &Engine,
    context: &Context,
    request: &'r Request,
    reader: &mut StoredReader<'r>,
) -> Result<Properties, OperationError> {
    if let Some((_, properties)) = read_stored(reader, &request.entity, context.flavor, false) {
        return Ok(properties);
    }
    // The same order as for an insert.
    let input = request.entity.read_as(context.flavor.entity_style())?;
    if !context.flavor.ignores_keys_of_updates() {
        input.require_readable_key()?;
    }
    let properties = stored(input, &request.entity, &request.key, context.flavor, false)
        .map_err(OperationError::from);
    or_missing_table(engine, context, &request.table, properties).await
}
