//! The marker of `exactly_once`: its key, and how long it is kept.

use std::time::Duration;

use tablesdk_protocol::wire::json::JsonEntity;
use tablesdk_protocol::{Guid, Value};

/// The minimum time that the marker stays after a success. Zero: it is deleted at once, unless the
/// outcome of an attempt is ambiguous.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepMarker(pub(crate) Duration);

impl KeepMarker {
    pub(crate) const NOT: Self = Self(Duration::ZERO);

    /// The time that was chosen for the marker, or none: `exactly_once` leaves an earlier
    /// `exactly_once_for` as it is.
    pub(crate) const fn unless_chosen(chosen: Option<Self>) -> Option<Self> {
        match chosen {
            None => Some(Self::NOT),
            chosen => chosen,
        }
    }

    /// The time in a marker; `None` where it cannot be read.
    pub(crate) fn read(marker: &JsonEntity<'_>) -> Option<Self> {
        let Some(property) = marker.property(KEEP_SECONDS) else {
            return Some(Self::NOT);
        };
        match property.to_value().ok()? {
            None => Some(Self::NOT),
            Some(Value::Int64(seconds)) => {
                let seconds = u64::try_from(seconds).ok()?;
                Some(Self(Duration::from_secs(seconds)))
            }
            Some(_) => None,
        }
    }

    /// In whole seconds, rounded up.
    pub(super) fn seconds(self) -> i64 {
        let whole = self.0.as_secs();
        let seconds = whole.saturating_add(u64::from(self.0.subsec_nanos() > 0));
        i64::try_from(seconds).unwrap_or(i64::MAX)
    }
}

/// Returns true if an entity with this row key is a marker.
pub(crate) fn is_marker(row_key: &str) -> bool {
    row_key
        .strip_prefix(PREFIX)
        .is_some_and(|id| id.parse::<Guid>().is_ok())
}

/// The prefix of the row keys of all markers. It sorts after letters and digits.
pub(crate) const PREFIX: &str = "~tablesdk.once.";
/// Sorts after the row keys of all markers, which go on with a GUID.
pub(crate) const PREFIX_END: &str = "~tablesdk.once.~";
/// The minimum time that a marker stays after its timestamp, where the caller set one.
pub(crate) const KEEP_SECONDS: &str = "TablesdkKeepSeconds";
