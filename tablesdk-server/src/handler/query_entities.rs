//! Query Entities: a page of them, and where the next one starts.
//!
//! Cuts pages by number and by size; which entities belong in one is the engine's business. See
//! <https://learn.microsoft.com/rest/api/storageservices/query-timeout-and-pagination>.

use std::ops::ControlFlow;

use bytes::Bytes;
use http::Response as HttpResponse;
use tablesdk_protocol::auth::sas::SasKeyRange;
use tablesdk_protocol::continuation::{EntityContinuation, decode_token, encode_token};
use tablesdk_protocol::limits::{PAGE_BODY_BYTES_MAX, PAGE_ITEMS_MAX};
use tablesdk_protocol::operation::query_entities::{Request, Response};
use tablesdk_protocol::wire::json::{EntityFormat, EntityHead};
use tablesdk_protocol::{ErrorCode, ServiceError};

use crate::access::Principal;
use crate::context::Context;
use crate::engine::{Engine, Position, Query, Span, SpanEnd};

pub(super) fn handle(
    engine: &Engine,
    context: &Context,
    principal: &Principal,
    request: &Request,
) -> Result<HttpResponse<Bytes>, ServiceError> {
    let from = request.continuation.as_ref().map(position).transpose()?;
    let within = principal.keys().map(span).unwrap_or_default();
    let view = engine.read();
    let table = view.require_table(context.account(), &request.table)?;
    let format = EntityFormat {
        level: request.level,
        endpoint: context.endpoint(),
        account: context.account(),
        table: request.table.as_str(),
        select: request.select.as_deref(),
    };
    let mut page = Page::new(&format, request.top.unwrap_or(PAGE_ITEMS_MAX));
    // SERVICE: no entities are wanted, and none are left over either.
    if request.top != Some(0) {
        let query = Query {
            table: table.id,
            filter: request.filter.as_ref(),
            from: from.as_ref(),
            within: &within,
        };
        query.run(&view, |entity| {
            page.add(entity.head(), |out| {
                format.page_entity(out, entity.head(), entity.properties());
            })
        })?;
    }
    Ok(page.into_response().encode(request.level))
}

/// The entities of an answer, as far as they fit.
struct Page {
    content: Vec<u8>,
    items: usize,
    items_max: usize,
    continuation: Option<EntityContinuation>,
}

impl Page {
    fn new(format: &EntityFormat<'_>, items_max: usize) -> Self {
        Self {
            content: format.page_start(),
            items: 0,
            items_max,
            continuation: None,
        }
    }

    /// Adds an entity. Breaks at the first one that does not fit, which is then where the next page starts.
    fn add(&mut self, head: EntityHead<'_>, write: impl FnOnce(&mut Vec<u8>)) -> ControlFlow<()> {
        let length = self.content.len();
        if self.items < self.items_max {
            write(&mut self.content);
            // An entity that alone exceeds the size of a page is one.
            if self.content.len() <= PAGE_BODY_BYTES_MAX || self.items == 0 {
                self.items += 1;
                return ControlFlow::Continue(());
            }
            self.content.truncate(length);
        }
        self.continuation = Some(EntityContinuation {
            next_partition_key: encode_token(head.partition_key),
            next_row_key: Some(encode_token(head.row_key)),
        });
        ControlFlow::Break(())
    }

    fn into_response(self) -> Response {
        Response {
            content: EntityFormat::page_end(self.content).into(),
            continuation: self.continuation,
        }
    }
}

/// The entities that a shared access signature covers.
fn span(keys: &SasKeyRange) -> Span {
    Span {
        first: keys.first.as_ref().map(|first| Position {
            partition_key: first.partition_key.clone(),
            row_key: first.row_key.clone().unwrap_or_default(),
        }),
        last: keys.last.as_ref().map(|last| SpanEnd {
            partition_key: last.partition_key.clone(),
            row_key: last.row_key.clone(),
        }),
    }
}

/// The place that a continuation names. Without a row key it is the start of the partition.
fn position(continuation: &EntityContinuation) -> Result<Position, ServiceError> {
    let read =
        |token: &str| decode_token(token).map_err(|_| ServiceError::from(ErrorCode::InvalidInput));
    let row_key = continuation.next_row_key.as_deref().map(read);
    Ok(Position {
        partition_key: read(&continuation.next_partition_key)?,
        row_key: row_key.transpose()?.unwrap_or_default(),
    })
}
