//! Query Tables: a page of them, ordered by their lower-cased names.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/query-tables>. A filter sees one property, `TableName`, in the
//! case that the table was created with.

use std::borrow::Cow;

use bytes::Bytes;
use http::Response as HttpResponse;
use tablesdk_protocol::continuation::{decode_token, encode_token};
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;
use tablesdk_protocol::operation::query_tables::{Request, Response};
use tablesdk_protocol::{ErrorCode, ServiceError, ValueRef};

use crate::context::Context;
use crate::engine::{Engine, Table, matches};

pub(super) fn handle(
    engine: &Engine,
    context: &Context,
    request: &Request,
) -> Result<HttpResponse<Bytes>, ServiceError> {
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
    if items_max > 0 {
        for table in engine.read().tables(context.account(), &from) {
            let table = table?;
            if !is_wanted(request, &table) {
                continue;
            }
            if response.names.len() == items_max {
                let next = encode_token(&table.name.to_ascii_lowercase());
                response.next_table_name = Some(next);
                break;
            }
            response.names.push(table.name);
        }
    }
    Ok(response.encode(request.level, context.endpoint(), context.account()))
}

fn is_wanted(request: &Request, table: &Table) -> bool {
    let property = |name: &str| {
        (name == "TableName").then_some(ValueRef::String(Cow::Borrowed(table.name.as_str())))
    };
    request
        .filter
        .as_ref()
        .is_none_or(|filter| matches(filter, &property))
}
