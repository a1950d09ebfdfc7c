//! `tables completions`: what a shell needs to complete commands and options.

use std::io::{self, Write as _};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::error::{AnyError, UsageError};
use crate::output::Output;

/// Print the completions of a shell
///
///   bash   source <(tables completions bash)
///   zsh    source <(tables completions zsh)
///   fish   tables completions fish | source
///
/// The line is for one session. To keep it, put it into the file that your shell reads when it
/// starts, such as ~/.bashrc.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, mut command: Command, output: &Output) -> Result<(), AnyError> {
        if output.has_form() {
            return Err(UsageError("a script has one form: leave --output out".into()).into());
        }
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "tables", &mut script);
        io::stdout().lock().write_all(&script)?;
        Ok(())
    }
}
