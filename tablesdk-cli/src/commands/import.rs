//! `tables import`: a file into an account. `FILE.import` contains the number of lines that are done.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use clap::Args;
use serde::{Deserialize, Serialize};
use tablesdk_cli::import::{ImportError, WriteOptions, import};

use super::Transfer;
use crate::account::Account;
use crate::output::{AnyError, Bar, Failure, Report, with_causes};
use crate::state::{StateFile, with_suffix};

/// Write the tables and entities of a file into an account
///
/// Tables are created if they do not exist. The service gives entities new timestamps.
///
/// Standard error names each entity that failed, by file and line, and the command exits
/// with 3. After an interruption, the same command continues after the lines that are
/// done, whose number is in FILE.import; some entities may be written again.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Import {
    /// The file to read, as `tables export` writes it
    file: PathBuf,
    #[command(flatten)]
    account: Account,
    #[command(flatten)]
    options: WriteOptions,
}

/// The number of lines that are done, and the number of entities in them that failed.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Progress {
    lines: u64,
    failed: u64,
}

impl Transfer for Import {
    async fn run(self) -> Result<Report, AnyError> {
        let service = self.account.connect()?;
        let shown = self.file.display();
        let cannot_read = |error| format!("{shown} cannot be read: {error}");
        let file = File::open(&self.file).map_err(cannot_read)?;
        let metadata = file.metadata().map_err(cannot_read)?;
        // The progress does not belong to another file of the same name.
        let changed = metadata.modified()?.duration_since(UNIX_EPOCH)?.as_nanos();
        let command = format!(
            "import of {} bytes, changed at {changed}, to {}",
            metadata.len(),
            service.endpoint()
        );
        let (mut state, progress) =
            StateFile::<Progress>::open(with_suffix(&self.file, ".import"), command)?;
        let before = progress.unwrap_or_default();

        let bar = Bar::of_bytes(metadata.len());
        let from = BufReader::with_capacity(1 << 20, bar.0.wrap_read(file));
        let mut unsaved = None;
        let report = import(
            &service,
            from,
            &self.options,
            before.lines,
            |lines, failed| {
                let failed = before.failed + failed;
                unsaved = state.save_sometimes(Progress { lines, failed }).err();
            },
        )
        .await;
        drop(bar);

        let mut failures = Vec::new();
        let mut progress = Progress {
            lines: report.lines,
            ..before
        };
        for (line, failure) in &report.failures {
            failures.push(Failure::new(format!("{shown}:{line}"), failure));
            progress.failed += u64::from(*line <= report.lines);
        }
        let is_done = failures.len() as u64 + before.failed == progress.failed;
        match &report.error {
            None | Some(ImportError::Truncated) if is_done => state.remove()?,
            _ => state.save(progress)?,
        }
        let error = report.error.as_ref();
        let error = error.map(|error| format!("{shown}: {}", with_causes(error)));
        let error = error.or_else(|| unsaved.map(|error| format!("{shown}.import: {error}")));
        Ok(Report {
            verb: "Imported",
            totals: report.totals,
            own: report.own,
            left_behind: None,
            failed: before.failed + failures.len() as u64,
            failures,
            error,
            ..Report::default()
        })
    }
}
