//! Query Entities: returns a page of entities and the position of the next page.
//!
//! This module limits pages by number, by size and by time; the engine selects the entities. See
//! <https://learn.microsoft.com/rest/api/storageservices/query-timeout-and-pagination>.

use std::ops::ControlFlow;

use tablesdk_protocol::auth::sas::SasKeyRange;
use tablesdk_protocol::continuation::{EntityContinuation, decode_token, encode_token};
use tablesdk_protocol::limits::PAGE_BODY_BYTES_MAX;
use tablesdk_protocol::operation::query_entities::{Request, Response};
use tablesdk_protocol::wire::json::{EntityFormat, PageWriter};
use tablesdk_protocol::{ErrorCode, ServiceError};

use super::{Handled, entity_format, open, ordered};
use crate::engine::{
    Engine, Entity, Failure, KeyBounds, LastKey, Paging, Position, Query, Scan, SliceEnd,
};
use crate::request::auth::Principal;
use crate::request::context::Context;
use crate::service::query_budget::QueryBudget;
#[cfg(feature = "durable")]
use crate::service::query_budget::run_blocking;
use crate::storage::StorageError;

pub(super) async fn handle(
    engine: &Engine,
    context: &Context,
    principal: &Principal,
    request: &Request,
) -> Handled {
    let paging = engine.paging();
    let start = Start::of(request, paging)?;
    let within = principal.keys().map(key_bounds).unwrap_or_default();
    let slice_bytes = SLICE_BYTES_MAX + engine.part_bytes_max();
    context.reserve_response(slice_bytes).await?;
    let entities_max = request.top.unwrap_or(usize::MAX).min(paging.entities_max);
    let opened = open(engine, context, |view| {
        let table = view.require_table(context.account(), &request.table)?;
        let mut scan = Scan::new(&Query {
            table,
            filter: request.filter.as_ref(),
            from: start.position.as_ref(),
            within: &within,
        });
        let rest = match &context.page_end {
            Some(end) => scan.end_before(table, end)?,
            None => None,
        };
        if entities_max > 0 {
            scan.announce(view, entities_max);
        }
        Ok::<_, Failure>((scan, rest))
    });
    let ((mut scan, rest), view) = opened.await?;
    let select = request.select.as_deref();
    let format = entity_format(context, request.level, &request.table, select);
    let mut page = Page::new(&format, paging, request.top);
    if request.top == Some(0) {
        // SERVICE: a page without entities has no continuation token either.
    } else if paging.empty_pages && !start.is_after_empty_page {
        page.continuation = Some(start.after_empty_page());
    } else {
        let budget = QueryBudget::new(paging.max_query_time);
        loop {
            let mut slice_budget = budget.slice();
            #[cfg_attr(feature = "durable", expect(unused_mut, reason = "called at once"))]
            let mut slice = || scan.slice(&view, &mut slice_budget, |entity| page.add(entity));
            #[cfg(feature = "durable")]
            let progress = run_blocking(engine, context.peer.is_some(), slice).await;
            #[cfg(not(feature = "durable"))]
            let progress = slice();
            if let Some(counts) = &context.entity_counts {
                counts.examined(slice_budget.examined());
            }
            match progress? {
                SliceEnd::Paused => {}
                SliceEnd::NotFetched => {
                    scan.announce(&view, entities_max - page.items);
                    view.fetch_next().await?;
                    if slice_budget.examined() == 0 {
                        continue;
                    }
                }
                SliceEnd::Ended | SliceEnd::Stopped => break,
            }
            // If memory is short, the page ends.
            let next = page.content.len().saturating_add(slice_bytes);
            if !context.response_may_grow(next) || !budget.goes_on().await {
                page.continuation = scan.position()?.as_ref().map(continuation_at);
                break;
            }
        }
        if page.continuation.is_none() {
            page.continuation = rest.as_ref().map(at_border);
        }
    }
    if let Some(counts) = &context.entity_counts {
        counts.returned(page.items);
    }
    let response = page.into_response().encode(request.level);
    Ok(ordered(context, response))
}

/// The entities of a response, as far as they fit.
struct Page<'a> {
    content: PageWriter<'a>,
    items: usize,
    items_max: usize,
    /// The partition of the page, if pages end with partitions and it has an entity.
    partition_key: Option<String>,
    is_of_one_partition: bool,
    continuation: Option<EntityContinuation>,
}

impl<'a> Page<'a> {
    fn new(format: &'a EntityFormat<'a>, paging: &Paging, top: Option<usize>) -> Self {
        Self {
            content: format.page(),
            items: 0,
            items_max: top.unwrap_or(usize::MAX).min(paging.entities_max),
            partition_key: None,
            is_of_one_partition: paging.page_per_partition,
            continuation: None,
        }
    }

    /// Adds an entity. Breaks at the first one that does not fit, where the next page starts.
    fn add(&mut self, entity: &Entity<'_>) -> Result<ControlFlow<()>, StorageError> {
        let head = entity.head();
        if self.is_of_one_partition {
            match &self.partition_key {
                None => self.partition_key = Some(head.partition_key.to_owned()),
                Some(partition_key) if partition_key == head.partition_key => {}
                Some(_) => {
                    self.continuation = Some(at_border(&Position {
                        partition_key: head.partition_key.to_owned(),
                        row_key: String::new(),
                    }));
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        let length = self.content.len();
        if self.items < self.items_max {
            self.content
                .entity(head, entity.json(), entity.properties())?;
            // An entity that alone exceeds the size of a page is a page.
            if self.content.len() <= PAGE_BODY_BYTES_MAX || self.items == 0 {
                self.items += 1;
                if self.items == ITEMS_MANY {
                    self.reserve();
                }
                return Ok(ControlFlow::Continue(()));
            }
            self.content.truncate(length);
        }
        self.continuation = Some(continuation(head.partition_key, head.row_key));
        Ok(ControlFlow::Break(()))
    }

    /// Makes room for the rest of a page that has many entities already, so that it is not moved
    /// again and again while it grows.
    fn reserve(&mut self) {
        // The rest may be a little larger.
        let expected = self.content.len().saturating_mul(self.items_max) / (ITEMS_MANY - 1);
        let expected = expected.min(SLICE_BYTES_MAX);
        self.content
            .reserve(expected.saturating_sub(self.content.len()));
    }

    fn into_response(self) -> Response {
        Response {
            content: self.content.finish().into(),
            continuation: self.continuation,
        }
    }
}

/// Where a page starts.
struct Start {
    /// `None` for the first entity.
    position: Option<Position>,
    /// True if the page before this one was empty on purpose.
    is_after_empty_page: bool,
}

impl Start {
    /// The start position of a request. Without a row key it is the start of the partition.
    fn of(request: &Request, paging: &Paging) -> Result<Self, ServiceError> {
        let Some(continuation) = &request.continuation else {
            return Ok(Self {
                position: None,
                is_after_empty_page: false,
            });
        };
        let read = |token: &str| {
            decode_token(token).map_err(|_| ServiceError::from(ErrorCode::InvalidInput))
        };
        let partition = continuation.next_partition_key.as_str();
        let after_empty_page = partition
            .strip_suffix(AFTER_EMPTY_PAGE)
            .filter(|_| paging.empty_pages);
        let row_key = continuation.next_row_key.as_deref().map(read);
        Ok(Self {
            position: Some(Position {
                partition_key: read(after_empty_page.unwrap_or(partition))?,
                row_key: row_key.transpose()?.unwrap_or_default(),
            }),
            is_after_empty_page: after_empty_page.is_some(),
        })
    }

    /// The same position, for the page after an empty one.
    fn after_empty_page(&self) -> EntityContinuation {
        let mut continuation = match &self.position {
            Some(position) => continuation_at(position),
            None => continuation("", ""),
        };
        continuation.next_partition_key.push_str(AFTER_EMPTY_PAGE);
        continuation
    }
}

fn continuation_at(position: &Position) -> EntityContinuation {
    continuation(&position.partition_key, &position.row_key)
}

/// The token of a page that starts in another range of partitions.
fn at_border(position: &Position) -> EntityContinuation {
    let Position {
        partition_key,
        row_key,
    } = position;
    EntityContinuation {
        next_partition_key: encode_token(partition_key),
        // SERVICE: at the border of a range partition, the token names no row.
        next_row_key: (!row_key.is_empty()).then(|| encode_token(row_key)),
    }
}

/// The token of a page that starts with that key.
fn continuation(partition_key: &str, row_key: &str) -> EntityContinuation {
    EntityContinuation {
        next_partition_key: encode_token(partition_key),
        next_row_key: Some(encode_token(row_key)),
    }
}

/// The entities that a shared access signature covers.
fn key_bounds(keys: &SasKeyRange) -> KeyBounds {
    KeyBounds {
        first: keys.first.as_ref().map(|first| Position {
            partition_key: first.partition_key.clone(),
            row_key: first.row_key.clone().unwrap_or_default(),
        }),
        last: keys.last.as_ref().map(|last| LastKey {
            partition_key: last.partition_key.clone(),
            row_key: last.row_key.clone(),
        }),
    }
}

/// The approximate number of bytes that a slice adds to a page: the budget of a slice counts each
/// byte.
const SLICE_BYTES_MAX: usize = 1024 * 1024;
/// So many entities show how large a page will be.
const ITEMS_MANY: usize = 32;
/// The suffix of the token of an empty page, so that no empty page follows another.
const AFTER_EMPTY_PAGE: &str = "~";
