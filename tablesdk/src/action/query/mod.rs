//! How queries are read: the request of a page, the pages of one query, and several queries in
//! parallel.

mod awaited;
pub(crate) mod conditions;
pub(crate) mod merged;
pub(crate) mod own_pages;
mod page;
pub(crate) mod paged;
pub(crate) mod parallel;
pub(crate) mod request;
