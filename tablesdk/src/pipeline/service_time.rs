//! The time of the service, by the dates of its responses.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

use http::{HeaderMap, header};
use tablesdk_protocol::Timestamp;

/// How far the client's clock is from the service's. Nothing is noted before the first use, so that
/// a program without expiring entities does not read the dates.
#[derive(Debug, Default)]
pub(super) struct ServiceTime(OnceLock<AtomicI64>);

impl ServiceTime {
    /// The time of the service. Before its first date, and of a server in the same process, which
    /// sends none, that of the client. It is behind by the time that the last response took, and
    /// never ahead.
    pub(super) fn at(&self, now: Timestamp) -> Timestamp {
        match self.ahead().load(Ordering::Relaxed) {
            UNKNOWN => now,
            ahead => {
                let ticks = now.unix_ticks().saturating_add(ahead);
                Timestamp::from_unix_ticks(ticks).unwrap_or(now)
            }
        }
    }

    /// Returns true if a response has shown the time of the service.
    pub(super) fn is_known(&self) -> bool {
        self.ahead().load(Ordering::Relaxed) != UNKNOWN
    }

    /// Notes dates from now on.
    pub(super) fn watch(&self) {
        self.ahead();
    }

    fn ahead(&self) -> &AtomicI64 {
        self.0.get_or_init(|| AtomicI64::new(UNKNOWN))
    }

    /// Notes the date of a response.
    pub(super) fn note(&self, headers: &HeaderMap, now: impl FnOnce() -> Timestamp) {
        let Some(ahead) = self.0.get() else {
            return;
        };
        if let Some(date) = date_of(headers) {
            let ticks = date.unix_ticks().saturating_sub(now().unix_ticks());
            ahead.store(ticks, Ordering::Relaxed);
        }
    }
}

/// The date of a response, if it has one.
pub(crate) fn date_of(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(header::DATE)?.to_str().ok()?;
    Timestamp::parse_http_date(date).ok()
}

const UNKNOWN: i64 = i64::MIN;
