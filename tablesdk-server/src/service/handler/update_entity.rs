//! Update, Merge, Insert Or Replace and Insert Or Merge Entity.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/update-entity2>. The key is the one of the URL; which of the
//! four it is shows only in mode and condition.

use tablesdk_protocol::ETag;
use tablesdk_protocol::operation::update_entity::{Request, Response};

use super::{Handled, OperationError, commit, or_missing_table, stored};
use crate::engine::{Action, Change, Command, Engine, Properties};
use crate::request::context::Context;

pub(super) async fn handle(engine: &Engine, context: &Context, request: &Request) -> Handled {
    let properties = read(engine, context, request).await?;
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
    let etag = ETag::from_timestamp(outcome.timestamp);
    Ok(Response { etag }.encode())
}

/// Reads the properties to write.
pub(super) async fn read(
    engine: &Engine,
    context: &Context,
    request: &Request,
) -> Result<Properties, OperationError> {
    // The same order as for an insert.
    let input = request
        .entity
        .read_with(context.flavor.accepts_any_guid())?;
    if !context.flavor.ignores_keys_of_updates() {
        input.require_readable_key()?;
    }
    let properties = stored(input, &request.entity, &request.key, context.flavor, false)
        .map_err(OperationError::from);
    or_missing_table(engine, context, &request.table, properties).await
}
