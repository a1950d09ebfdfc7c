//! Create Table: creates the table that the body names, unless it exists.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/create-table>. The protocol crate validates the name.

use tablesdk_protocol::operation::create_table::{Request, Response};

use super::{Handled, commit};
use crate::engine::{Command, Engine};
use crate::request::context::Context;

pub(super) async fn handle(engine: &Engine, context: &Context, request: &Request) -> Handled {
    let command = Command::CreateTable(&request.name);
    commit(engine, context, &command).await?;
    let response = Response {
        prefer: request.prefer,
        level: request.level,
        account: context.account().to_owned(),
        name: request.name.clone(),
    };
    Ok(response.encode(context.endpoint()))
}
