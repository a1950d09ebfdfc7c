//! Update, Merge, Insert Or Replace and Insert Or Merge Entity.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/update-entity2>. The key is the one of the URL; which of the
//! four it is shows only in mode and condition.

use bytes::Bytes;
use http::Response as HttpResponse;
use tablesdk_protocol::operation::update_entity::{Request, Response};
use tablesdk_protocol::{ETag, ServiceError};

use crate::context::Context;
use crate::engine::{Action, Change, Command, Engine};

pub(super) async fn handle(
    engine: &Engine,
    context: &Context,
    request: &Request,
) -> Result<HttpResponse<Bytes>, ServiceError> {
    // The same order as on an insert.
    let input = request.entity.read()?;
    let view = engine.read();
    view.require_table(context.account(), &request.table)?;
    drop(view);
    let properties = input.into_properties()?;

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
    let outcome = engine.commit(context.account(), &command).await?;
    let etag = ETag::from_timestamp(outcome.timestamp);
    Ok(Response { etag }.encode())
}
