//! Query Entities with both keys: returns one entity, or not found.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/query-entities>. Conditions are
//! ignored on a read.

use bytes::Bytes;
use http::Response as HttpResponse;
use tablesdk_protocol::ErrorCode;
use tablesdk_protocol::operation::get_entity::{Request, Response};

use super::{Handled, OperationError, entity_format};
use crate::engine::{Engine, View};
use crate::request::context::Context;

pub(super) async fn handle(engine: &Engine, context: &Context, request: &Request) -> Handled {
    loop {
        let read = super::read(engine, context, |view| read(view, context, request));
        match read.await? {
            Ok(response) => return Ok(response),
            // Nothing is held during the wait, so the entity may have changed then.
            Err(Large { bytes }) => context.reserve_response(bytes).await?,
        }
    }
}

/// The memory for the entity is not available at once.
struct Large {
    bytes: usize,
}

fn read(
    view: &View,
    context: &Context,
    request: &Request,
) -> Result<Result<HttpResponse<Bytes>, Large>, OperationError> {
    let table = view.require_table(context.account(), &request.table)?;
    let Some(row) = view.entity(table, &request.key)? else {
        // SERVICE: not `EntityNotFound`, which is documented and never seen.
        return Err(ErrorCode::ResourceNotFound.into());
    };
    let entity = row.open(&request.key)?;
    let bytes = entity.json().len();
    if !context.try_reserve_response(bytes) {
        return Ok(Err(Large { bytes }));
    }
    if let Some(counts) = &context.entity_counts {
        counts.examined(1);
        counts.returned(1);
    }
    let select = request.select.as_deref();
    let format = entity_format(context, request.level, &request.table, select);
    let body = format.single(entity.head(), entity.json(), entity.properties())?;
    let response = Response {
        etag: Some(context.flavor.etag(entity.head().timestamp)),
        content: body.into(),
    };
    Ok(Ok(response.encode(request.level)))
}
