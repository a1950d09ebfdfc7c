//! How queries are read.

pub(super) mod parallel;
