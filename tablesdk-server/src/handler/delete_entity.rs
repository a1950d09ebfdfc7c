//! Delete Entity: if it has the version that the request names.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/delete-entity1>. How versions compare is not known here.

use bytes::Bytes;
use http::Response as HttpResponse;
use tablesdk_protocol::ServiceError;
use tablesdk_protocol::operation::delete_entity::{Request, Response};

use crate::context::Context;
use crate::engine::{Action, Change, Command, Engine};

pub(super) async fn handle(
    engine: &Engine,
    context: &Context,
    request: &Request,
) -> Result<HttpResponse<Bytes>, ServiceError> {
    let change = Change {
        key: &request.key,
        action: Action::Delete(&request.if_match),
    };
    let command = Command::Change(&request.table, change);
    engine.commit(context.account(), &command).await?;
    Ok(Response.encode())
}
