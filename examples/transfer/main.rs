//! Whole tables between accounts and files: `cargo run --example transfer`.
//!
//! ```text
//! transfer export --from ACCOUNT FILE [--table NAME]...
//! transfer import --to ACCOUNT FILE [--mode MODE] [--batch-size N]
//! transfer copy --from ACCOUNT --to ACCOUNT --state FILE [--table NAME]... [--mode MODE] [--batch-size N]
//! ```
//!
//! An account is a connection string, or `env:NAME` for one in an environment variable, which other users of the machine do not
//! see in the list of processes. Files are lines of JSON, as `tablesdk::transfer` tells. All three go on where they were
//! interrupted when they are called again: an export from `FILE.part`, an import from `FILE.import`, a copy from its state.
//!
//! Without arguments it shows all of that between two bundled servers.

mod copy;
mod export;
mod import;
mod progress;
mod state;
mod tour;

use std::error::Error;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tablesdk::TableServiceClient;
use tablesdk::transfer::{Import, ImportMode};

#[derive(Parser)]
#[command(
    name = "transfer",
    about = "Moves whole tables between accounts and files"
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Writes tables to a file.
    Export {
        /// The account to read: a connection string, or env:NAME
        #[arg(long)]
        from: String,
        #[command(flatten)]
        tables: Tables,
        /// The file to write; it must not exist
        file: PathBuf,
    },
    /// Reads a file into an account.
    Import {
        /// The account to write: a connection string, or env:NAME
        #[arg(long)]
        to: String,
        #[command(flatten)]
        mode: Mode,
        /// The file to read
        file: PathBuf,
    },
    /// Reads one account into another.
    Copy {
        /// The account to read: a connection string, or env:NAME
        #[arg(long)]
        from: String,
        /// The account to write: a connection string, or env:NAME
        #[arg(long)]
        to: String,
        #[command(flatten)]
        tables: Tables,
        #[command(flatten)]
        mode: Mode,
        /// The file that keeps how far it has come; removed at the end
        #[arg(long)]
        state: PathBuf,
    },
}

#[derive(Args)]
struct Tables {
    /// A table to read, once or more; all of the account without it
    #[arg(long = "table", value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Args)]
struct Mode {
    /// What happens to entities that exist already
    #[arg(long, value_enum, default_value_t = Existing::Replace)]
    mode: Existing,
    /// How many entities go into one request; 1 for emulators that misread batches
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=100), default_value_t = 100)]
    batch_size: u8,
}

#[derive(Clone, Copy, ValueEnum)]
enum Existing {
    /// They are replaced.
    Replace,
    /// The properties of the file are merged into them.
    Merge,
    /// They end the import, also where an interrupted one has written them.
    Refuse,
}

impl Mode {
    /// An import of that kind.
    fn import(&self, to: &TableServiceClient) -> Import {
        let mode = match self.mode {
            Existing::Replace => ImportMode::UpsertReplace,
            Existing::Merge => ImportMode::UpsertMerge,
            Existing::Refuse => ImportMode::Insert,
        };
        to.import(mode).batch_size(self.batch_size.into())
    }
}

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let done = match Arguments::parse().command {
        Some(Command::Export { from, tables, file }) => {
            export::run(&account(&from)?, &tables.names, &file, None).await?
        }
        Some(Command::Import { to, mode, file }) => {
            import::run(&account(&to)?, &mode, &file, None).await?
        }
        Some(Command::Copy {
            from,
            to,
            tables,
            mode,
            state,
        }) => {
            let (from, to) = (account(&from)?, account(&to)?);
            copy::run(&from, &to, &tables.names, &mode, &state, None).await?
        }
        None => return tour::run().await,
    };
    println!("{done}");
    Ok(())
}

/// The account that an argument names.
fn account(argument: &str) -> Result<TableServiceClient, AnyError> {
    match argument.strip_prefix("env:") {
        Some(name) => {
            let text = std::env::var(name).map_err(|error| format!("{name}: {error}"))?;
            Ok(TableServiceClient::from_connection_string(&text)?)
        }
        None => Ok(TableServiceClient::from_connection_string(argument)?),
    }
}
