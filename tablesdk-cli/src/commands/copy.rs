//! `tables copy`: an account into another, page by page. A file contains the position.

use std::path::PathBuf;

use clap::Args;
use futures::stream;
use serde::{Deserialize, Serialize};
use tablesdk::TableServiceClient;
use tablesdk_cli::import::WriteOptions;
use tablesdk_cli::pages::{Position, TablePage, TablePages};

use super::Transfer;
use crate::account::{Auth, Token, connect};
use crate::error::{AnyError, UsageError, with_causes};
use crate::output::{Bar, Failure, Report};
use crate::state::StateFile;

/// Copy tables from one account into another
///
/// Tables are created if they do not exist. The service gives entities new timestamps.
/// Waiting steps and messages of outboxes go along. Stored access policies, service
/// properties and markers of exactly-once writes are not copied.
///
/// Standard error names each entity that failed, and the command exits with 3. After an
/// interruption, the same command continues; some entities may be written again.
///
///   tables copy --from env:OLD --to env:NEW
///   tables copy --from file:./old.txt --to emulator --table Employees
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
pub(crate) struct Copy {
    /// The account to read
    ///
    /// A connection string, the URL of an account with a shared access signature, the URL of
    /// an emulator, or the word emulator. Other users of this machine can see the arguments
    /// of a program: env:NAME is an environment variable that contains the value, and
    /// file:PATH a file.
    #[arg(long, value_name = "ACCOUNT", verbatim_doc_comment)]
    from: String,
    /// The account to write: as --from
    #[arg(long, value_name = "ACCOUNT")]
    to: String,
    /// Microsoft Entra ID, for a URL of a table service without a signature
    #[arg(long, value_enum, value_name = "SOURCE")]
    auth: Option<Auth>,
    /// A table to copy; repeat the option for more tables. Default: all tables
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    #[command(flatten)]
    options: WriteOptions,
    /// The file with the position, until the copy is complete
    #[arg(long, value_name = "FILE", default_value = "tables.copy")]
    state: PathBuf,
}

/// The position after the pages that are copied, and the number of their entities that failed.
#[derive(Default, Serialize, Deserialize)]
struct Progress {
    position: Option<Position>,
    failed: u64,
}

impl Transfer for Copy {
    async fn run(self) -> Result<Report, AnyError> {
        let mut token = Token::new(self.auth);
        let from = connect("--from", &self.from, &mut token)?;
        let to = connect("--to", &self.to, &mut token)?;
        token.check()?;
        if from.endpoint() == to.endpoint() {
            return Err(UsageError("the two accounts are the same".into()).into());
        }
        let (source, target) = (from.endpoint(), to.endpoint());
        let command = format!("copy of {source} {} to {target}", self.tables.join(","));
        let (mut state, progress) = StateFile::<Progress>::open(self.state, command)?;
        let Progress { position, failed } = progress.unwrap_or_default();

        let bar = Bar::of_tables();
        let mut report = Report {
            verb: "Copied",
            failed,
            ..Report::default()
        };
        let mut pages = TablePages::open(&from, &self.tables, position).await?;
        while let Some(page) = pages.next().await? {
            if let Err(error) = write(&to, page, &self.options, &mut report).await {
                // The page is copied again when the command continues.
                report.error = Some(with_causes(&*error));
                return Ok(report);
            }
            bar.show(&pages);
            report.count(pages.position());
            state.save(Progress {
                position: Some(pages.position().clone()),
                failed: report.failed,
            })?;
        }
        report.count(pages.position());
        state.remove()?;
        Ok(report)
    }
}

/// Writes a page. An error means that entities of it may be missing.
async fn write(
    to: &TableServiceClient,
    page: TablePage,
    options: &WriteOptions,
    report: &mut Report,
) -> Result<(), AnyError> {
    let table = to.table(&page.table);
    if page.is_first && options.create_tables {
        table.create_table().if_missing().await?;
    }
    let count = page.entities.len() as u64;
    let entities = stream::iter(page.entities);
    let bulk = options.bulk(&table, report.failures.len(), entities);
    let (written, error) = match bulk.await {
        Ok(written) => (written, None),
        Err(error) => {
            let text = with_causes(&error);
            (error.into_report(), Some(text))
        }
    };
    let failures = written.failures().iter();
    let failures = failures.map(|failure| Failure::new(page.table.clone(), failure));
    report.failures.extend(failures);
    report.failed += written.failures().len() as u64;
    let unreadable = page.unreadable.iter();
    report
        .failures
        .extend(unreadable.map(|error| Failure::unreadable(&page.table, error)));
    report.failed += page.unreadable.len() as u64;
    match error {
        Some(error) => Err(error.into()),
        None if written.progress().resume_at < count => {
            Err("entities may have been written or not: run the command again".into())
        }
        None => Ok(()),
    }
}
