//! The statistics of the service as XML.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/get-table-service-stats>.

use serde::{Deserialize, Serialize};

use super::{XmlError, parse_content, parse_optional};
use crate::types::{GeoReplicationStatus, ServiceStats, Timestamp};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct StorageServiceStats {
    geo_replication: GeoReplication,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct GeoReplication {
    status: String,
    last_sync_time: Option<String>,
}

/// Prints the statistics.
pub fn write_service_stats(stats: &ServiceStats) -> Vec<u8> {
    let time = stats.last_sync_time.map(Timestamp::to_http_date);
    let geo_replication = GeoReplication {
        status: stats.status.as_str().to_owned(),
        // SERVICE: the element is empty if the time is not known.
        last_sync_time: Some(time.unwrap_or_default()),
    };
    super::write(
        "StorageServiceStats",
        &StorageServiceStats { geo_replication },
    )
}

/// Reads the statistics.
///
/// # Errors
///
/// When the document has another form.
pub fn read_service_stats(document: &[u8]) -> Result<ServiceStats, XmlError> {
    let document: StorageServiceStats = super::read(document, "StorageServiceStats")?;
    let replication = document.geo_replication;
    let time = |text: &str| Timestamp::parse_http_date(text).ok();
    Ok(ServiceStats {
        status: parse_content(&replication.status, GeoReplicationStatus::from_wire)?,
        last_sync_time: parse_optional(replication.last_sync_time, time)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_has_the_form_of_the_service() {
        let golden = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>Tue, 25 Aug 2020 16:46:24 GMT</LastSyncTime></GeoReplication></StorageServiceStats>";
        let stats = read_service_stats(golden.as_bytes()).unwrap();
        assert_eq!(
            stats.last_sync_time.unwrap().to_string(),
            "2020-08-25T16:46:24Z"
        );
        let written = write_service_stats(&stats);
        assert_eq!(String::from_utf8(written).unwrap(), golden);
        let unknown = ServiceStats {
            status: GeoReplicationStatus::Unavailable,
            last_sync_time: None,
        };
        assert_eq!(
            read_service_stats(&write_service_stats(&unknown)),
            Ok(unknown)
        );
        assert!(read_service_stats(golden.replace("live", "dead").as_bytes()).is_err());
    }
}
