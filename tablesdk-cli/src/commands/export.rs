//! `tables export`: an account to a file.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};
use tablesdk_cli::lines::Line;
use tablesdk_cli::pages::{Position, TablePages};

use super::Transfer;
use crate::account::Account;
use crate::output::{AnyError, Bar, Failure, Report};
use crate::state::is_streamed;
use crate::target::Target;

/// Write the tables of an account to a file, as lines of JSON
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
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Export {
    /// The file to write, which appears when it is complete; or - for standard output
    file: PathBuf,
    #[command(flatten)]
    account: Account,
    /// A table to export; repeat the option for more tables. Default: all tables
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

impl Export {
    /// Whether the file is a pipe, a device or a terminal.
    pub(crate) fn is_streamed(&self) -> bool {
        is_streamed(&self.file)
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
    async fn run(self) -> Result<Report, AnyError> {
        let service = self.account.connect()?;
        let command = format!("export of {} {}", service.endpoint(), self.tables.join(","));
        let (mut target, progress) = Target::<Progress>::open(&self.file, self.force, command)?;
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
