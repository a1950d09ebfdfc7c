//! The operations, one file each, under the names that they have in the protocol: from the decoded request through the
//! engine to the answer.
//!
//! Knows neither sockets nor signatures nor how things are stored. What all answers have in common is added elsewhere.

mod create_table;
mod delete_entity;
mod delete_table;
mod get_entity;
mod insert_entity;
mod query_entities;
mod query_tables;
mod update_entity;

use bytes::Bytes;
use http::{Method, Response};
use tablesdk_protocol::operation::{Operation, ReceivedRequest};
use tablesdk_protocol::{ErrorCode, ResourcePath, ServiceError};

use crate::context::Context;
use crate::engine::Engine;

/// Carries out the operation that the request asks for.
pub(crate) async fn handle(
    engine: &Engine,
    context: &Context,
    request: ReceivedRequest,
) -> Result<Response<Bytes>, ServiceError> {
    refuse_unfinished(&request)?;
    match Operation::decode(request)? {
        Operation::CreateTable(request) => create_table::handle(engine, context, request).await,
        Operation::DeleteEntity(request) => delete_entity::handle(engine, context, &request).await,
        Operation::DeleteTable(request) => delete_table::handle(engine, context, &request).await,
        Operation::GetEntity(request) => get_entity::handle(engine, context, &request),
        Operation::InsertEntity(request) => insert_entity::handle(engine, context, request).await,
        Operation::QueryEntities(request) => query_entities::handle(engine, context, &request),
        Operation::QueryTables(request) => query_tables::handle(engine, context, &request),
        Operation::UpdateEntity(request) => update_entity::handle(engine, context, &request).await,
        _ => Err(ErrorCode::NotImplemented.into()),
    }
}

/// Names what this server does not do yet, where the protocol would only say that something is not implemented.
fn refuse_unfinished(request: &ReceivedRequest) -> Result<(), ServiceError> {
    let is = |method: Method| request.method == method;
    let comp = request.options.get("comp");
    let message = match &request.resource {
        ResourcePath::Service if comp == Some("properties") => {
            "Table service properties are not implemented by this server yet."
        }
        ResourcePath::Service if comp == Some("stats") => {
            "Table service statistics are not implemented by this server yet."
        }
        ResourcePath::EntitySet(_) if comp == Some("acl") => {
            "Stored access policies are not implemented by this server yet."
        }
        ResourcePath::Batch if is(Method::POST) => {
            "Entity group transactions are not implemented by this server yet."
        }
        ResourcePath::Metadata if is(Method::GET) => {
            "The service's metadata document is not implemented by this server yet."
        }
        ResourcePath::Table(_) if is(Method::GET) => {
            "Reading a single table is not implemented by this server yet."
        }
        _ => return Ok(()),
    };
    Err(ServiceError::new(ErrorCode::NotImplemented, message))
}

#[cfg(test)]
mod tests;
