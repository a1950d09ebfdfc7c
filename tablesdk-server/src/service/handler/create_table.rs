//! Create Table: creates the table that the body names, unless it exists.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/create-table>. The protocol crate
//! validates the name.

use http::{HeaderValue, StatusCode, header};
use tablesdk_protocol::operation::create_table::{Request, Response};

use super::{Handled, commit, ordered};
use crate::engine::{Command, Engine};
use crate::request::context::{Context, Reason};

pub(super) async fn handle(engine: &Engine, context: &Context, request: &Request) -> Handled {
    let command = Command::CreateTable(&request.name);
    commit(engine, context, &command).await?;
    let response = Response {
        prefer: request.prefer,
        level: request.level,
        account: context.account().to_owned(),
        name: request.name.clone(),
    };
    let mut response = ordered(context, response.encode(context.endpoint()));
    if context.flavor.has_gateway() {
        let etag = context.flavor.etag(context.now);
        if let Ok(etag) = HeaderValue::from_str(etag.as_str()) {
            response.headers_mut().insert(header::ETAG, etag);
        }
        if response.status() == StatusCode::CREATED {
            response.extensions_mut().insert(Reason::OK);
        }
    }
    Ok(response)
}
