//! The parts of a query: columns, filters, projections, and the streams of its results.
//!
//! Queries begin with [`TableClient::query`](crate::TableClient::query), and their options are
//! methods of [`QueryEntities`](crate::action::QueryEntities). The guides to
//! [queries](crate::guide::queries) and [paging](crate::guide::paging) put it together.

pub(crate) mod column;
mod continuations;
mod dynamic_column;
mod explain;
mod into_filter;
pub(crate) mod json_column;
pub(crate) mod key_part_column;
mod literal;
mod mixed_integers;
mod opaque_column;
mod page;
mod ranges;
pub(crate) mod resolve;
pub(crate) mod select;
pub(crate) mod selections;
mod set_column;
mod stream;

pub use crate::filter::{AccessClass, Filter};
#[doc(alias("is_none", "is_null"))]
pub use column::Column;
pub(crate) use continuations::Continuations;
pub(crate) use explain::Advice;
pub use explain::Explanation;
pub use into_filter::IntoFilter;
pub(crate) use json_column::JsonColumn;
pub(crate) use key_part_column::KeyPartColumn;
pub use literal::Literal;
pub(crate) use opaque_column::{incomparable, opaque_column};
pub use page::Page;
#[doc(alias("TableContinuationToken", "continuation_token"))]
pub use page::PageToken;
pub(crate) use page::{fingerprint, of_token};
pub(crate) use resolve::Resolve;
pub use select::Selection;
pub(crate) use select::column;
pub(crate) use select::{SelectionError, Whole, list};
pub(crate) use selections::{Keyed, Keys, Presence, ReadBy, Values};
pub(crate) use set_column::SetColumn;
pub use stream::EntityStream;
pub(crate) use stream::Pages;
