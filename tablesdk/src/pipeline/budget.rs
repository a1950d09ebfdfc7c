//! Limits that the operations of a client share: a retry budget, and permits for requests in
//! flight.

use std::sync::atomic::{AtomicU32, Ordering};

/// A budget of retries, which successes refill.
///
/// A service in trouble fails every request, and a retry for each would multiply the load at the
/// worst moment. Once the budget is empty, operations fail without a retry. A retry after a failure
/// to connect is free: no request has reached the service.
#[derive(Debug)]
pub(super) struct Budget {
    tenths: AtomicU32,
    full: u32,
}

impl Budget {
    pub(super) const fn new(repetitions: u32) -> Self {
        let full = repetitions.saturating_mul(TENTHS);
        Self {
            tenths: AtomicU32::new(full),
            full,
        }
    }

    /// Takes a retry from the budget, if there is one.
    pub(super) fn take(&self) -> bool {
        let taken = |tenths: u32| tenths.checked_sub(TENTHS);
        // A count: nothing else is ordered by it.
        self.tenths
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken)
            .is_ok()
    }

    /// Records a success at the first attempt.
    pub(super) fn refill(&self) {
        let filled = |tenths: u32| (tenths < self.full).then(|| tenths + 1);
        // Full is full.
        let _ = self
            .tenths
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, filled);
    }
}

/// The cost of a retry. A success earns one tenth of it.
const TENTHS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_successes_earn_one_repetition() {
        let budget = Budget::new(2);
        budget.refill();
        assert!(budget.take() && budget.take() && !budget.take());
        for _ in 0..9 {
            budget.refill();
        }
        assert!(!budget.take());
        budget.refill();
        assert!(budget.take() && !budget.take());
    }
}
