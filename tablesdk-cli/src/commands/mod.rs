//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod copy;
#[cfg(feature = "explore")]
pub(crate) mod explore;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod import;
pub(crate) mod infer;
pub(crate) mod ls;
pub(crate) mod mcp;
pub(crate) mod outbox;
pub(crate) mod put;
pub(crate) mod query;
pub(crate) mod rm;
pub(crate) mod sas;
pub(crate) mod schema;

use crate::error::AnyError;
use crate::output::Report;

/// A command that carries whole tables, with its arguments.
pub(crate) trait Transfer {
    /// Executes it. An error, also in the report, is a failure of the whole command.
    async fn run(self) -> Result<Report, AnyError>;
}
