//! `tables export`: an account to a file.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};
use tablesdk::TableServiceClient;
use tablesdk_cli::lines::Line;
use tablesdk_cli::pages::{Position, TablePages};
use tablesdk_cli::sheet::Style;

use super::Transfer;
use crate::account::Account;
use crate::error::{AnyError, UsageError};
use crate::output::{Bar, Failure, Report};
use crate::selection::Selection;
use crate::state::is_streamed;
use crate::target::Target;

/// Write the tables of an account to a file, as lines of JSON or as CSV
///
/// Each line is an entity with its table and the types of its properties:
///
///   {"format":"tablesdk","version":1}
///   {"table":"Employees"}
///   {"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Age":36}}
///   {"end":{"tables":1,"entities":1}}
///
/// Waiting steps and messages of outboxes are exported, too. Stored access policies,
/// service properties and markers of exactly-once writes are not. An export is not a
/// snapshot: entities that are written meanwhile may or may not be in it.
///
/// Standard error names each entity that cannot be read, and the command exits with 3. The
/// file has the other entities.
///
/// After an interruption, the same command continues. Until the export is complete, the
/// lines are in FILE.part, and the position is in FILE.export. If FILE is a link to a
/// file, that file is meant. A pipe or a device is written as the entities come, and
/// cannot be continued:
///
///   tables export - --table Employees | gzip > employees.jsonl.gz
///
/// A file whose name ends with .csv, or --format csv, is one table as Storage Explorer writes
/// it, with the type of each value:
///
///   PartitionKey,RowKey,Timestamp,Age,Age@type
///   Sales,1,2024-03-15T10:20:30.0000000Z,36,Edm.Int32
///
/// `tables import` reads it, and tells an empty string, whose type is in its row, from a
/// property that is absent. The columns are known only when the table was read: until
/// then, lines of JSON are in FILE.part, or in a temporary file if FILE is a pipe.
///
///   tables export sales.csv --table Employees --partition Sales
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Export {
    /// The file to write, which appears when it is complete; or - for standard output
    file: PathBuf,
    /// A table to export; repeat the option for more tables. Default: all tables
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    #[command(flatten)]
    selection: Selection,
    /// The form of the file. Default: csv if its name ends so, else json
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// The cells of CSV are safe for a spreadsheet.
    #[arg(skip)]
    is_guarded: bool,
    #[command(flatten)]
    account: Account,
}

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum FileFormat {
    /// Lines of JSON
    Json,
    /// CSV with the columns of Storage Explorer
    Csv,
}

impl Export {
    /// Returns true if the file is a pipe, a device or a terminal.
    pub(crate) fn is_streamed(&self) -> bool {
        is_streamed(&self.file)
    }

    /// Makes the cells of CSV safe for a spreadsheet. Returns whether the file is CSV.
    pub(crate) fn guard(&mut self) -> bool {
        self.is_guarded = true;
        self.is_csv()
    }

    fn is_csv(&self) -> bool {
        let extension = self.file.extension();
        let is_named_so = extension.is_some_and(|it| it.eq_ignore_ascii_case("csv"));
        self.format
            .map_or(is_named_so, |format| format == FileFormat::Csv)
    }

    /// The one table of a command that needs one.
    fn only_table(&self, reason: &str) -> Result<&str, AnyError> {
        match self.tables.as_slice() {
            [table] => Ok(table),
            _ => Err(UsageError(format!("{reason} needs exactly one --table").into()).into()),
        }
    }

    /// The filter that the options mean.
    fn filter(&self, service: &TableServiceClient) -> Result<Option<String>, AnyError> {
        if self.selection.is_all() {
            return Ok(None);
        }
        let table = self.only_table("a selection of entities")?;
        let filter = self.selection.odata(&service.table(table));
        Ok(filter.map_err(|error| UsageError(error.into()))?)
    }

    fn sheet(&self) -> Result<Option<Style>, AnyError> {
        if !self.is_csv() {
            return Ok(None);
        }
        self.only_table("CSV")?;
        let mut style = Style::default();
        style.for_windows = true;
        style.guarded = self.is_guarded;
        Ok(Some(style))
    }
}

/// The position after the pages that are written.
#[derive(Serialize, Deserialize)]
struct Progress {
    position: Position,
    /// The number of entities that could not be read.
    failed: u64,
}

impl Transfer for Export {
    async fn run(mut self) -> Result<Report, AnyError> {
        let service = std::mem::take(&mut self.account).connect()?;
        let filter = self.filter(&service)?;
        let sheet = self.sheet()?;
        let mut command = format!("export of {} {}", service.endpoint(), self.tables.join(","));
        if let Some(filter) = &filter {
            command = format!("{command} where {filter}");
        }
        let target = Target::<Progress>::open(&self.file, self.force, sheet, command);
        let (mut target, progress) = target?;
        let (position, mut failed) = match progress {
            Some(progress) => (Some(progress.position), progress.failed),
            None => (None, 0),
        };
        let mut failures = Vec::new();
        let mut lines = Vec::new();
        if position.is_none() {
            Line::Start.write(&mut lines);
        }
        let bar = Bar::of_tables();
        let mut pages = TablePages::open(&service, &self.tables, position).await?;
        pages.select(filter);
        while let Some(page) = pages.next().await? {
            if page.is_first {
                Line::Table(page.table.clone()).write(&mut lines);
            }
            for entity in page.entities {
                let table = page.table.clone();
                Line::Entity { table, entity }.write(&mut lines);
            }
            for error in &page.unreadable {
                failures.push(Failure::unreadable(&page.table, error));
                failed += 1;
            }
            target.write(&lines)?;
            lines.clear();
            bar.show(&pages);
            let position = pages.position().clone();
            target.save(Progress { position, failed })?;
        }
        let mut report = Report {
            verb: "Exported",
            failed,
            failures,
            ..Report::default()
        };
        report.count(pages.position());
        Line::End(report.totals).write(&mut lines);
        target.write(&lines)?;
        target.finish()?;
        Ok(report)
    }
}
