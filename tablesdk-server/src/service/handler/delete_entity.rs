//! Delete Entity: deletes the entity if its ETag matches the request's condition.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/delete-entity1>. The comparison of
//! ETags is not part of this module.

use tablesdk_protocol::operation::delete_entity::{Request, Response};

use super::{Handled, commit};
use crate::engine::{Action, Change, Command, Engine};
use crate::request::context::Context;

pub(super) async fn handle(engine: &Engine, context: &Context, request: &Request) -> Handled {
    let change = Change {
        key: &request.key,
        action: Action::Delete(&request.if_match),
    };
    let command = Command::Change(&request.table, change);
    commit(engine, context, &command).await?;
    Ok(Response.encode())
}
