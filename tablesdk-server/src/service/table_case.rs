//! The case of table names, in a flavor in which it matters: a table is found only by the name with
//! which it was created.
//!
//! The engine compares names without regard to case, so two tables still cannot have names that
//! differ only in case.

use tablesdk_protocol::operation::Operation;
use tablesdk_protocol::{ErrorCode, TableName};

use super::error::OperationError;
use crate::engine::Engine;
use crate::request::context::Context;

/// Refuses an operation that names its table in another case. The operations of a batch are refused
/// where they are carried out.
pub(super) async fn require(
    engine: &Engine,
    context: &Context,
    operation: &Operation,
) -> Result<(), OperationError> {
    if !context.flavor.has_case_sensitive_tables() {
        return Ok(());
    }
    match operation {
        Operation::DeleteEntity(request) => require_table(engine, context, &request.table).await,
        Operation::GetEntity(request) => require_table(engine, context, &request.table).await,
        Operation::InsertEntity(request) => require_table(engine, context, &request.table).await,
        Operation::QueryEntities(request) => require_table(engine, context, &request.table).await,
        Operation::UpdateEntity(request) => require_table(engine, context, &request.table).await,
        Operation::GetTable(request) => require_table(engine, context, &request.name).await,
        _ if context.flavor.manages_tables_in_any_case() => Ok(()),
        Operation::GetTableAcl(request) => require_table(engine, context, &request.table).await,
        Operation::SetTableAcl(request) => require_table(engine, context, &request.table).await,
        Operation::DeleteTable(request) => {
            require_name(engine, context, &request.name, ErrorCode::ResourceNotFound).await
        }
        _ => Ok(()),
    }
}

/// Refuses a name in another case for an operation on entities.
pub(super) async fn require_table(
    engine: &Engine,
    context: &Context,
    name: &TableName,
) -> Result<(), OperationError> {
    require_name(engine, context, name, ErrorCode::TableNotFound).await
}

async fn require_name(
    engine: &Engine,
    context: &Context,
    name: &TableName,
    missing: ErrorCode,
) -> Result<(), OperationError> {
    if !context.flavor.has_case_sensitive_tables() {
        return Ok(());
    }
    let read = engine.read(|view| view.table(context.account(), name));
    let stored = read.await?;
    if stored.is_some_and(|table| table.name != name.as_str()) {
        return Err(missing.into());
    }
    Ok(())
}
