//! What a query is made of: columns, filters, projections, and the streams it is read through.

mod column;
mod filter;
mod key_part_column;
mod literal;
mod page;
mod select;
mod stream;

pub use column::{Column, JsonColumn};
pub use filter::Filter;
pub(crate) use filter::FilterError;
pub use key_part_column::KeyPartColumn;
pub use literal::{Literal, LiteralRange};
pub(crate) use page::fingerprint;
pub use page::{Page, PageToken};
pub(crate) use select::Presence;
pub use select::{SelectColumn, Selection, Whole};
pub use stream::EntityStream;
