//! Query Tables: returns a page of tables, ordered by their lower-cased names.
//!
//! This module limits pages by number and by time; the engine selects the tables. See
//! <https://learn.microsoft.com/rest/api/storageservices/query-tables>.

use std::ops::ControlFlow;

use tablesdk_protocol::continuation::{decode_token, encode_token};
use tablesdk_protocol::filter::Filter;
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;
use tablesdk_protocol::operation::query_tables::{Request, Response};
use tablesdk_protocol::{ErrorCode, ServiceError, Value};

use super::{Handled, open, ordered};
use crate::engine::{Engine, SliceEnd, TableScan};
use crate::request::context::Context;
use crate::service::query_budget::QueryBudget;
use crate::storage::StorageError;

pub(super) async fn handle(engine: &Engine, context: &Context, request: &Request) -> Handled {
    let from = match &request.next_table_name {
        Some(token) => {
            decode_token(token).map_err(|_| ServiceError::from(ErrorCode::InvalidInput))?
        }
        None => String::new(),
    };
    let mut response = Response {
        names: Vec::new(),
        next_table_name: None,
    };
    let items_max = request.top.unwrap_or(PAGE_ITEMS_MAX);
    let table_bytes = TABLE_BYTES_MAX + 2 * context.endpoint().as_str().len();
    context
        .reserve_response(items_max.saturating_mul(table_bytes))
        .await?;
    if items_max > 0 {
        let in_any_case = !context.flavor.has_case_sensitive_tables();
        let filter = request.filter.as_ref();
        let in_lower_case = filter
            .filter(|_| in_any_case)
            .map(in_lower_case)
            .map(Box::new);
        let filter = in_lower_case.as_deref().or(filter);
        let mut scan = TableScan::new(context.account(), filter, in_any_case, from);
        let tables_max = items_max.saturating_add(1);
        let opened = open(engine, context, |view| {
            scan.announce(view, tables_max);
            Ok::<_, StorageError>(())
        });
        let ((), view) = opened.await?;
        let budget = QueryBudget::new(engine.paging().max_query_time);
        loop {
            let end = scan.slice(&view, &mut budget.slice(), |table| {
                if response.names.len() == items_max {
                    let next = encode_token(&table.name.to_ascii_lowercase());
                    response.next_table_name = Some(next);
                    return ControlFlow::Break(());
                }
                response.names.push(table.name);
                ControlFlow::Continue(())
            })?;
            match end {
                SliceEnd::Ended | SliceEnd::Stopped => break,
                SliceEnd::NotFetched => {
                    view.fetch_next().await?;
                }
                SliceEnd::Paused => {}
            }
            if !budget.goes_on().await {
                response.next_table_name = Some(encode_token(scan.position()));
                break;
            }
        }
    }
    let response = response.encode(request.level, context.endpoint(), context.account());
    Ok(ordered(context, response))
}

/// The same filter with the names of tables in lower case.
// SERVICE: that it compares in lower case, and not in upper case, is assumed. It matters for
// characters that no name has.
fn in_lower_case(filter: &Filter) -> Filter {
    filter.map_comparisons(|comparison| {
        let mut comparison = comparison.clone();
        if let Value::String(name) = &mut comparison.literal {
            name.make_ascii_lowercase();
        }
        Filter::Comparison(comparison)
    })
}

/// The size of a table in a page with full metadata, without the account's URL: three times its
/// encoded name, and the JSON around.
const TABLE_BYTES_MAX: usize = 400;
