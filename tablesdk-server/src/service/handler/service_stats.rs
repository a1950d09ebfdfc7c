//! Get Table Service Stats: the secondary is always live and in sync with the primary.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/get-table-service-stats>.

use tablesdk_protocol::operation::service_stats::Response;
use tablesdk_protocol::{ErrorCode, GeoReplicationStatus, ServiceStats};

use super::Handled;
use crate::request::address::Location;
use crate::request::context::Context;

pub(super) fn handle(context: &Context) -> Handled {
    if context.location() == Location::Primary {
        return Err(ErrorCode::InvalidQueryParameterValue.into());
    }
    let stats = ServiceStats::new(GeoReplicationStatus::Live, Some(context.now));
    Ok(Response { stats }.encode())
}
