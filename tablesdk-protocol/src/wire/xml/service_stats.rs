//! The statistics of the service as XML.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/get-table-service-stats>.

use super::reader::{Element, require, take};
use super::{Writer, XmlError};
use crate::{GeoReplicationStatus, ServiceStats, Timestamp};

/// Prints the statistics.
pub fn write_service_stats(stats: &ServiceStats) -> Vec<u8> {
    let time = stats.last_sync_time.map(Timestamp::to_http_date);
    let mut out = Writer::with_byte_order_mark();
    out.group("StorageServiceStats", |out| {
        out.group("GeoReplication", |out| {
            out.value("Status", stats.status.as_str());
            out.value("LastSyncTime", &time.unwrap_or_default());
        });
    });
    out.end()
}

/// Reads the statistics.
///
/// # Errors
///
/// When the document has another form.
pub fn read_service_stats(document: &[u8]) -> Result<ServiceStats, XmlError> {
    let root = Element::parse(document)?.named("StorageServiceStats")?;
    let mut fields = root.fields(&["GeoReplication"])?;
    let replication = require(&mut fields, "GeoReplication")?;
    let mut fields = replication.fields(&["Status", "LastSyncTime"])?;
    let status = require(&mut fields, "Status")?.parse_value(|text| {
        let all = [
            GeoReplicationStatus::Live,
            GeoReplicationStatus::Bootstrap,
            GeoReplicationStatus::Unavailable,
        ];
        all.into_iter().find(|status| status.as_str() == text)
    })?;
    let time = take(&mut fields, "LastSyncTime").filter(|time| time.value() != Ok(""));
    let time = time.map(|time| time.parse_value(|text| Timestamp::parse_http_date(text).ok()));
    Ok(ServiceStats {
        status,
        last_sync_time: time.transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_shape_of_the_service() {
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
