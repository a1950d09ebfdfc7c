//! The configurable limits of pages.
//!
//! The defaults are those of the service. Smaller pages and rare kinds of pages show whether a
//! client follows continuation tokens. The handlers apply these settings.

use std::time::Duration;

use tablesdk_protocol::limits::PAGE_ITEMS_MAX;

/// The settings of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paging {
    /// The maximum number of entities in a page, at least one.
    pub(crate) entities_max: usize,
    /// True if an empty page precedes each page with entities.
    pub(crate) empty_pages: bool,
    /// True if a page ends with its partition.
    pub(crate) page_per_partition: bool,
    /// How long a query may search before its page ends; zero for one entity.
    pub(crate) max_query_time: Duration,
}

impl Default for Paging {
    fn default() -> Self {
        Self {
            entities_max: PAGE_ITEMS_MAX,
            empty_pages: false,
            page_per_partition: false,
            max_query_time: QUERY_TIME_MAX,
        }
    }
}

/// How long a query of the service searches before it returns the results so far.
const QUERY_TIME_MAX: Duration = Duration::from_secs(5);
