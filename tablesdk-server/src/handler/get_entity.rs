//! Query Entities with both keys: one entity, or none.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/query-entities>. Conditions have no meaning on a read.

use bytes::Bytes;
use http::Response as HttpResponse;
use tablesdk_protocol::operation::get_entity::{Request, Response};
use tablesdk_protocol::wire::json::EntityFormat;
use tablesdk_protocol::{ErrorCode, ServiceError};

use crate::context::Context;
use crate::engine::Engine;

pub(super) fn handle(
    engine: &Engine,
    context: &Context,
    request: &Request,
) -> Result<HttpResponse<Bytes>, ServiceError> {
    let view = engine.read();
    let table = view.require_table(context.account(), &request.table)?;
    let Some(row) = view.entity(table.id, &request.key)? else {
        // SERVICE: not `EntityNotFound`, which is documented and never seen.
        return Err(ErrorCode::ResourceNotFound.into());
    };
    let entity = row.read()?;
    let format = EntityFormat {
        level: request.level,
        endpoint: context.endpoint(),
        account: context.account(),
        table: request.table.as_str(),
        select: request.select.as_deref(),
    };
    let response = Response {
        etag: Some(entity.etag()),
        content: format.single(entity.head(), entity.properties()).into(),
    };
    Ok(response.encode(request.level))
}
