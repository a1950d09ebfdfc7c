//! What a query is made of: columns, filters, projections, and the streams it is read through.
//!
//! Queries begin with [`TableClient::query`](crate::TableClient::query), and their options are methods of
//! [`QueryEntities`](crate::action::QueryEntities). The guides to [queries](crate::guide::queries) and [paging](crate::guide::paging)
//! put it together.

mod column;
mod continuations;
mod explain;
mod key_part_column;
mod literal;
mod page;
mod resolve;
mod select;
mod stream;

pub use crate::filter::{AccessClass, Filter};
pub use column::{Column, JsonColumn};
pub(crate) use continuations::Continuations;
pub use explain::Explanation;
pub use key_part_column::KeyPartColumn;
pub use literal::{Literal, LiteralRange};
pub(crate) use page::fingerprint;
pub use page::{Page, PageToken};
pub use resolve::{Resolve, ResolveError};
pub(crate) use select::{Keys, Presence};
pub use select::{SelectColumn, Selection, SelectionError, Whole};
pub use stream::EntityStream;
pub(crate) use stream::Pages;
