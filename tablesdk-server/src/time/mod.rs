//! Clocks and time limits.

pub(crate) mod clock;
pub(crate) mod monotonic_clock;
pub(crate) mod time_limit;
