//! How queries are read: the request of a page, the pages of one query, and several queries in parallel.

mod awaited;
pub(super) mod conditions;
pub(super) mod merged;
pub(super) mod own_pages;
mod page;
pub(super) mod paged;
pub(super) mod parallel;
pub(super) mod request;
