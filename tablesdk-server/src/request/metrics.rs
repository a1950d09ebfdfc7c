//! The metrics of a server: the number of requests by operation and status, and their duration.
//!
//! This module knows no sockets. Its output is the text format of Prometheus:
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Counts of one server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, u16), Requests>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    count: u64,
    time: Duration,
}

impl Metrics {
    /// Counts a response.
    pub(crate) fn responded(&self, operation: &'static str, status: u16, time: Duration) {
        let mut all = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = all.entry((operation, status)).or_default();
        requests.count += 1;
        requests.time += time;
    }

    /// The counts in the text format of Prometheus, and whether writes are possible.
    pub(crate) fn text(&self, is_writable: bool, gauges: &[Gauge]) -> String {
        let all = self.requests.lock();
        let all = all.unwrap_or_else(PoisonError::into_inner).clone();
        let mut text = String::new();
        family(
            &mut text,
            "tablesdk_requests_total",
            "counter",
            "Answered requests by operation and HTTP status.",
        );
        for ((operation, status), requests) in &all {
            let _ = writeln!(
                text,
                "tablesdk_requests_total{{operation=\"{operation}\",status=\"{status}\"}} {}",
                requests.count
            );
        }
        family(
            &mut text,
            "tablesdk_request_seconds_total",
            "counter",
            "Time from the end of the body to the answer, summed up by operation and HTTP status.",
        );
        for ((operation, status), requests) in &all {
            let _ = writeln!(
                text,
                "tablesdk_request_seconds_total{{operation=\"{operation}\",status=\"{status}\"}} {:.6}",
                requests.time.as_secs_f64()
            );
        }
        family(
            &mut text,
            "tablesdk_storage_writable",
            "gauge",
            "1, or 0 if nothing can be written: see /ready.",
        );
        let _ = writeln!(text, "tablesdk_storage_writable {}", u8::from(is_writable));
        for gauge in gauges {
            family(&mut text, gauge.name, "gauge", gauge.help);
            let _ = writeln!(text, "{} {}", gauge.name, gauge.value);
        }
        text
    }
}

/// A number that only some storages have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gauge {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) value: usize,
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_operation_and_status() {
        let metrics = Metrics::default();
        for _ in 0..2 {
            metrics.responded("QueryEntity", 200, Duration::from_millis(250));
        }
        metrics.responded("QueryEntity", 404, Duration::ZERO);
        let gauge = Gauge {
            name: "tablesdk_example",
            help: "An example.",
            value: 7,
        };
        let text = metrics.text(false, &[gauge]);
        for line in [
            r#"tablesdk_requests_total{operation="QueryEntity",status="200"} 2"#,
            r#"tablesdk_requests_total{operation="QueryEntity",status="404"} 1"#,
            r#"tablesdk_request_seconds_total{operation="QueryEntity",status="200"} 0.500000"#,
            "tablesdk_storage_writable 0",
            "# TYPE tablesdk_requests_total counter",
            "# HELP tablesdk_example An example.",
            "tablesdk_example 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
