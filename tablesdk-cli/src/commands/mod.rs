//! The commands, one file each.

pub(crate) mod copy;
pub(crate) mod export;
pub(crate) mod import;

use crate::output::{AnyError, Report};

/// A command with its arguments.
pub(crate) trait Command {
    /// Executes it. An error, also in the report, is a failure of the whole command.
    async fn run(self) -> Result<Report, AnyError>;
}
