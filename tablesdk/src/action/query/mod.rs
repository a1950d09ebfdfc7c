//! How queries are read: the request of a page, the pages of one query, and several queries in parallel.

mod awaited;
pub(super) mod conditions;
pub(super) mod merged;
mod page;
pub(super) mod paged;
pub(super) mod parallel;
pub(super) mod request;
