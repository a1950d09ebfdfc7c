//! The amount of work of a scan before it yields to other tasks.
//!
//! A scan counts its work instead of reading a clock, so that the same query over the same entities
//! always stops at the same positions. This module knows neither runtime nor time.

/// The remaining work of a slice, in units of about a nanosecond.
#[derive(Debug)]
pub(crate) struct ScanBudget {
    left: u64,
    examined: u64,
    /// True if anything was examined: a slice examines at least one entity or table.
    is_begun: bool,
}

impl ScanBudget {
    /// A millisecond: other tasks can wait that long.
    pub(crate) const fn slice() -> Self {
        Self::of(1_000_000)
    }

    /// No limit: for work that is no request.
    pub(crate) const fn unlimited() -> Self {
        Self::of(u64::MAX)
    }

    /// The least work: one entity or table.
    pub(crate) const fn least() -> Self {
        Self::of(1)
    }

    const fn of(left: u64) -> Self {
        Self {
            left,
            examined: 0,
            is_begun: false,
        }
    }

    /// Returns true if the slice must end before the next entity or table.
    pub(super) const fn is_done(&mut self) -> bool {
        let is_done = self.is_begun && self.left == 0;
        self.is_begun = true;
        is_done
    }

    /// Returns true if the budget is spent.
    pub(super) const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// How many entities or tables were examined.
    pub(crate) const fn examined(&self) -> u64 {
        self.examined
    }

    /// Counts an entity or a table that is examined, and the work that it takes whatever its size.
    pub(super) const fn examine(&mut self, cost: u64) {
        self.examined += 1;
        self.spend(cost);
    }

    /// Counts work.
    pub(super) const fn spend(&mut self, cost: u64) {
        self.left = self.left.saturating_sub(cost);
    }

    /// Counts bytes, one unit each.
    pub(super) fn spend_bytes(&mut self, bytes: usize) {
        self.spend(u64::try_from(bytes).unwrap_or(u64::MAX));
    }
}
