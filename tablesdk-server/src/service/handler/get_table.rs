//! Query Tables with a name: one table, or none.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/query-tables>.

use tablesdk_protocol::ServiceError;
use tablesdk_protocol::operation::get_table::{Request, Response};

use super::{Handled, read};
use crate::engine::Engine;
use crate::request::context::Context;

pub(super) async fn handle(engine: &Engine, context: &Context, request: &Request) -> Handled {
    let table = read(engine, context, |view| {
        view.table(context.account(), &request.name)
    });
    let table = table.await?;
    // SERVICE: not `TableNotFound`: here the table is the resource.
    let table = table.ok_or_else(|| ServiceError::from(context.flavor.missing_table()))?;
    let response = Response { name: table.name };
    Ok(response.encode(request.level, context.endpoint(), context.account()))
}
