//! The configurable limits of pages.
//!
//! The defaults are those of the service. Smaller pages and rare kinds of pages show whether a client follows continuation tokens.
//! The handlers apply these settings.

use std::time::Duration;

use tablesdk_protocol::limits::PAGE_ITEMS_MAX;

/// What the builder chooses about pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paging {
    /// The most entities of a page, at least one.
    pub(crate) entities_max: usize,
    /// Whether each page with entities comes after one without.
    pub(crate) empty_pages: bool,
    /// Whether a page ends with its partition.
    pub(crate) page_per_partition: bool,
    /// How long a query may look for entities before its page ends; zero for one entity.
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

/// How long a query of the service looks for entities before it answers with what it has.
const QUERY_TIME_MAX: Duration = Duration::from_secs(5);
