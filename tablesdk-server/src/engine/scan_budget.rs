//! The amount of work of a scan before it yields to other tasks.
//!
//! A scan counts its work instead of reading a clock, so that the same query over the same entities always stops at the same
//! positions. This module knows neither runtime nor time.

/// What is left of the work of a slice, in units of about a nanosecond.
#[derive(Debug)]
pub(crate) struct ScanBudget {
    left: u64,
    /// Whether anything was looked at: only then can the work be done.
    is_begun: bool,
}

impl ScanBudget {
    /// About as much as others can wait for without noticing.
    pub(crate) const fn slice() -> Self {
        Self::of(1_000_000)
    }

    /// As little as there is: one entity.
    pub(crate) const fn least() -> Self {
        Self::of(1)
    }

    const fn of(left: u64) -> Self {
        Self {
            left,
            is_begun: false,
        }
    }

    /// Whether it is time to stop; if not, the next one is looked at.
    pub(super) const fn is_done(&mut self) -> bool {
        let is_done = self.is_begun && self.left == 0;
        self.is_begun = true;
        is_done
    }

    /// Whether nothing is left.
    pub(super) const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Counts something.
    pub(super) const fn spend(&mut self, cost: u64) {
        self.left = self.left.saturating_sub(cost);
    }

    /// Counts bytes that are gone through, at a unit each.
    pub(super) fn spend_bytes(&mut self, bytes: usize) {
        self.spend(u64::try_from(bytes).unwrap_or(u64::MAX));
    }
}
