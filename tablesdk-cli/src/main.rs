//! The program `tables`: see the documentation of the library.

mod account;
mod commands;
mod error;
mod escape;
mod guard;
mod output;
mod prompt;
mod removal;
mod requests;
mod room;
mod selection;
mod show;
mod state;
mod target;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory as _, Parser, Subcommand};
use tokio::runtime::Runtime;

#[cfg(feature = "explore")]
use crate::commands::explore;
use crate::commands::{
    Transfer as _, completions, copy, export, get, import, infer, ls, mcp, outbox, put, query, rm,
    sas, schema,
};
use crate::error::UsageError;
use crate::escape::harmless;
use crate::output::{Output, shown};
use crate::show::Format;

/// Shows, changes and carries tables of Azure Table storage
///
/// Works with storage accounts, Azure Cosmos DB for Table, Azurite and tablesdk-server. The
/// account is that of $AZURE_STORAGE_CONNECTION_STRING, or of the options of a command:
///
///   tables ls --emulator
///   tables query Employees --partition Sales
///   tables COMMAND --help
#[derive(Parser)]
#[command(name = "tables", version, after_help = EXIT_CODES, verbatim_doc_comment)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
struct Arguments {
    #[command(subcommand)]
    command: Commands,
    /// The form of the output. Default: a table on a terminal, else lines of JSON
    #[arg(long, global = true, value_enum, value_name = "FORM")]
    output: Option<Format>,
    /// Make CSV safe for a spreadsheet: a text that would be a formula begins with an apostrophe
    ///
    /// A file of this form is for people. An import would keep the apostrophes.
    #[arg(long, global = true)]
    spreadsheet: bool,
}

#[derive(Subcommand)]
enum Commands {
    Ls(ls::Ls),
    Query(query::Query),
    Get(get::Get),
    Put(put::Put),
    Rm(rm::Rm),
    Schema(schema::Schema),
    Infer(infer::Infer),
    Export(export::Export),
    Import(import::Import),
    Copy(copy::Copy),
    Sas(sas::Sas),
    Outbox(outbox::Outbox),
    #[cfg(feature = "explore")]
    Explore(explore::Explore),
    Mcp(mcp::Mcp),
    Completions(completions::Completions),
}

impl Commands {
    /// Returns true if the command prints values that CSV can hold.
    const fn prints(&self) -> bool {
        matches!(
            self,
            Self::Ls(_) | Self::Query(_) | Self::Get(_) | Self::Schema(_) | Self::Outbox(_)
        )
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refused(error),
    };
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return shown(Err(error.into())),
    };
    let code = runtime.block_on(run(arguments));
    // A read of standard input may still wait, and is not waited for.
    runtime.shutdown_background();
    code
}

async fn run(arguments: Arguments) -> ExitCode {
    let Arguments {
        mut command,
        output,
        spreadsheet,
    } = arguments;
    if spreadsheet {
        let is_csv = match &mut command {
            Commands::Export(export) => export.guard(),
            _ => output == Some(Format::Csv),
        };
        if !is_csv {
            let problem = "--spreadsheet is for CSV: use --output csv, or --format csv to export";
            return shown(Err(UsageError(problem.into()).into()));
        }
    }
    if output == Some(Format::Csv) && !command.prints() {
        let problem = "the command prints no table: --output csv does not apply. An export to CSV has --format csv";
        return shown(Err(UsageError(problem.into()).into()));
    }
    let output = Output::new(output, spreadsheet);
    // A read of a pipe waits for what comes, and would keep Ctrl-C waiting. There is no progress to
    // save.
    let has_own_end = match &command {
        Commands::Export(export) => export.is_streamed(),
        Commands::Import(import) => import.is_streamed(),
        Commands::Put(_) => true,
        // It asks again if changes would be lost.
        #[cfg(feature = "explore")]
        Commands::Explore(_) => true,
        _ => false,
    };
    let run = async {
        match command {
            Commands::Ls(ls) => shown(ls.run(&output).await),
            Commands::Query(query) => shown(query.run(&output).await),
            Commands::Get(get) => shown(get.run(&output).await),
            Commands::Put(put) => output.summary(put.run().await),
            Commands::Rm(rm) => output.summary(rm.run().await),
            Commands::Outbox(outbox) => shown(outbox.run(&output).await),
            Commands::Schema(schema) => shown(schema.run(&output).await),
            Commands::Infer(infer) => shown(infer.run(&output).await),
            Commands::Export(export) => output.summary(export.run().await),
            Commands::Import(import) => output.summary(import.run().await),
            Commands::Copy(copy) => output.summary(copy.run().await),
            Commands::Sas(sas) => shown(sas.run(&output).await),
            #[cfg(feature = "explore")]
            Commands::Explore(explore) => match explore.run(&output).await {
                Ok(()) => ExitCode::from(INTERRUPTED),
                error => shown(error),
            },
            Commands::Mcp(mcp) => shown(mcp.run(&output).await),
            Commands::Completions(completions) => {
                shown(completions.run(Arguments::command(), &output))
            }
        }
    };
    tokio::select! {
        // The signal is awaited before the command begins.
        biased;
        // The command is dropped, and saves how far it has come.
        _ = tokio::signal::ctrl_c(), if !has_own_end => ExitCode::from(INTERRUPTED),
        code = run => code,
    }
}

/// Prints a help text, or what is wrong with the arguments. After an unknown command, this includes
/// the list of all commands.
fn refused(mut error: clap::Error) -> ExitCode {
    if let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) {
        let given = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let given = given.take_while(|word| word != unknown);
        let tip = format!("the commands are {}", names_after(given));
        let tip = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    let text = error.render().to_string();
    // If an output is closed, no program reads it.
    let _ = if text.lines().all(|line| harmless(line) == line) {
        error.print()
    } else {
        let lines: Vec<_> = text.lines().map(harmless).collect();
        writeln!(io::stderr(), "{}", lines.join("\n"))
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1))
}

/// The names of the commands that may follow the words.
fn names_after(words: impl Iterator<Item = String>) -> String {
    let all = Arguments::command();
    let command = words.fold(&all, |command, word| {
        command.find_subcommand(word).unwrap_or(command)
    });
    let names: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
    names.join(", ")
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
