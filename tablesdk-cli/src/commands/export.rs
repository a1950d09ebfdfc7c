//! `tables export`: an account to a file.
//!
//! The file is written as `FILE.part`, and gets its name when it is complete. `FILE.export` contains the position. A link to a file stays:
//! all three are where that file is.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use tablesdk_cli::lines::Line;
use tablesdk_cli::pages::{Position, TablePages};

use super::Transfer;
use crate::account::Account;
use crate::output::{AnyError, Bar, Failure, Report, UsageError};
use crate::state::{StateFile, is_file, open_private, with_suffix};

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
/// file, that file is meant. Pipes and devices are refused.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Export {
    /// The file to write; it appears when it is complete
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

/// The length of the file, and the position after the pages in it.
#[derive(Serialize, Deserialize)]
struct Progress {
    bytes: u64,
    position: Position,
    /// The number of entities that could not be read.
    failed: u64,
}

impl Transfer for Export {
    async fn run(self) -> Result<Report, AnyError> {
        let file = target(&self.file, self.force)?;
        let shown = file.display();
        let service = self.account.connect()?;
        let command = format!("export of {} {}", service.endpoint(), self.tables.join(","));
        let (mut state, progress) =
            StateFile::<Progress>::open(with_suffix(&file, ".export"), command)?;
        let part = with_suffix(&file, ".part");
        is_file(&part)?;
        let cannot_write = |error| format!("{} cannot be written: {error}", part.display());
        let mut out = open_private(&part).map_err(cannot_write)?;
        let (mut bytes, position, mut failed) = match progress {
            Some(progress) => (progress.bytes, Some(progress.position), progress.failed),
            None => (0, None, 0),
        };
        let mut failures = Vec::new();
        if out.metadata()?.len() < bytes {
            let part = part.display();
            return Err(format!(
                "{part} is shorter than it was: remove it and {shown}.export to start from the beginning"
            )
            .into());
        }
        // What was written after the position was saved is exported again.
        out.set_len(bytes).map_err(cannot_write)?;
        out.seek(SeekFrom::End(0))?;

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
            let position = pages.position().clone();
            out.write_all(&lines).map_err(cannot_write)?;
            out.sync_data().map_err(cannot_write)?;
            bytes += lines.len() as u64;
            lines.clear();
            bar.show(&pages);
            state.save(Progress {
                bytes,
                position,
                failed,
            })?;
        }
        let mut report = Report {
            verb: "Exported",
            failed,
            failures,
            ..Report::default()
        };
        report.count(pages.position());
        Line::End(report.totals).write(&mut lines);
        out.write_all(&lines).map_err(cannot_write)?;
        out.sync_all().map_err(cannot_write)?;
        // It may have become something else meanwhile.
        is_file(&file)?;
        fs::rename(&part, &file).map_err(cannot_write)?;
        state.remove()?;
        Ok(report)
    }
}

/// The file to write: the one that a link leads to.
fn target(file: &Path, is_forced: bool) -> Result<PathBuf, AnyError> {
    let shown = file.display();
    let exists = is_file(file)?;
    if exists && !is_forced {
        return Err(format!("{shown} exists: choose another name, or use --force").into());
    }
    if !fs::symlink_metadata(file).is_ok_and(|found| found.is_symlink()) {
        return Ok(file.to_owned());
    }
    if !exists {
        let problem = format!("{shown} is a link to a file that does not exist: name that file");
        return Err(UsageError(problem.into()).into());
    }
    fs::canonicalize(file).map_err(|error| format!("{shown} cannot be read: {error}").into())
}
