//! The program `tables`: see the documentation of the library.

mod account;
mod commands;
mod output;
mod state;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::{Command as _, copy, export, import};
use crate::output::Output;

/// Exports, imports and copies tables of Azure Table storage
///
/// Works with storage accounts, Azure Cosmos DB for Table, Azurite and tablesdk-server.
/// A command that was interrupted continues when it is started again with the same
/// arguments.
#[derive(Parser)]
#[command(name = "tables", version, after_help = EXIT_CODES, verbatim_doc_comment)]
struct Arguments {
    #[command(subcommand)]
    command: Commands,
    /// Print the result as one JSON object on standard output
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Commands {
    Export(export::Export),
    Import(import::Import),
    Copy(copy::Copy),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { command, json } = Arguments::parse();
    let output = Output::new(json);
    let run = async {
        match command {
            Commands::Export(export) => export.run().await,
            Commands::Import(import) => import.run().await,
            Commands::Copy(copy) => copy.run().await,
        }
    };
    tokio::select! {
        result = run => output.end(result),
        // The command is dropped, and saves how far it has come.
        _ = tokio::signal::ctrl_c() => ExitCode::from(INTERRUPTED),
    }
}

const EXIT_CODES: &str = "\
Exit codes:
  0    everything was done
  1    the command failed or ended early
  2    the arguments are not valid
  3    the command reached its end, but single entities failed
  130  Ctrl-C";

/// As shells report SIGINT.
const INTERRUPTED: u8 = 130;

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
