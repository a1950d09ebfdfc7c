//! Query Tables with a name: one table, or none.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/query-tables>.

use tablesdk_protocol::operation::get_table::{Request, Response};
use tablesdk_protocol::{ServiceError, TableName};

use super::{Handled, ordered, read};
use crate::engine::Engine;
use crate::request::context::Context;

pub(super) async fn handle(engine: &Engine, context: &Context, request: &Request) -> Handled {
    let table = read(engine, context, |view| {
        if is_never_enabled(&request.name) {
            return Ok(None);
        }
        view.table(context.account(), &request.name)
    });
    let table = table.await?;
    // SERVICE: not `TableNotFound`: here the table is the resource.
    let table = table.ok_or_else(|| ServiceError::from(context.flavor.missing_table()))?;
    let response = Response { name: table.name };
    let response = response.encode(request.level, context.endpoint(), context.account());
    Ok(ordered(context, response))
}

/// Returns true for a table of metrics that does not exist unless a program asks for such metrics.
// SERVICE: recorded for the classic tables and for those by the minute. Their entities are read all
// the same: there are none.
fn is_never_enabled(name: &TableName) -> bool {
    let name = name.as_str().to_ascii_lowercase();
    ["$metricstransactions", "$metricsminute"]
        .iter()
        .any(|start| name.starts_with(start))
}
