//! Guides: one page for each matter that takes more than the documentation of an item.

#[doc = include_str!("errors_and_retries.md")]
pub mod errors_and_retries {}
