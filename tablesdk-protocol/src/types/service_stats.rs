//! The statistics of the service: the state of the replication to the secondary.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/get-table-service-stats>.

use crate::types::Timestamp;

/// The state of an account's replication to its secondary location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceStats {
    /// The state of the secondary location.
    pub status: GeoReplicationStatus,
    /// Every write before this time can be read from the secondary; `None` where that is not known.
    pub last_sync_time: Option<Timestamp>,
}

impl ServiceStats {
    /// The statistics of a service.
    pub const fn new(status: GeoReplicationStatus, last_sync_time: Option<Timestamp>) -> Self {
        Self {
            status,
            last_sync_time,
        }
    }
}

/// The state of a secondary location, which decides if it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GeoReplicationStatus {
    /// It can.
    Live,
    /// It is being filled for the first time.
    Bootstrap,
    /// It cannot.
    Unavailable,
}

impl GeoReplicationStatus {
    /// The word of the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Bootstrap => "bootstrap",
            Self::Unavailable => "unavailable",
        }
    }

    pub(crate) fn from_wire(text: &str) -> Option<Self> {
        let all = [Self::Live, Self::Bootstrap, Self::Unavailable];
        all.into_iter().find(|status| status.as_str() == text)
    }
}
