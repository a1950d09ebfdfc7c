//! Guides: one page for each matter that takes more than the documentation of an item.

#[doc = include_str!("batches_and_bulk.md")]
pub mod batches_and_bulk {}

#[doc = include_str!("concurrency.md")]
pub mod concurrency {}

#[doc = include_str!("entities.md")]
pub mod entities {}

#[doc = include_str!("credentials.md")]
pub mod credentials {}

#[doc = include_str!("errors_and_retries.md")]
pub mod errors_and_retries {}

#[doc = include_str!("moving_from_dotnet_and_python.md")]
pub mod moving_from_dotnet_and_python {}

#[doc = include_str!("moving_from_the_old_crate.md")]
pub mod moving_from_the_old_crate {}

#[doc = include_str!("observability.md")]
pub mod observability {}

#[doc = include_str!("paging.md")]
pub mod paging {}

#[doc = include_str!("queries.md")]
pub mod queries {}

#[doc = include_str!("testing.md")]
pub mod testing {}
