//! Delete Table: deletes the table and all its entities.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/delete-table>. The engine frees the
//! space later.

use std::sync::Arc;

use tablesdk_protocol::operation::delete_table::{Request, Response};

use super::{Handled, commit};
use crate::engine::Engine;
use crate::request::context::Context;
use crate::service::clean_up;

pub(super) async fn handle(engine: &Arc<Engine>, context: &Context, request: &Request) -> Handled {
    let command = engine.delete_table(&request.name);
    commit(engine, context, &command).await?;
    clean_up::start(engine, context.timer).await;
    Ok(Response.encode())
}
