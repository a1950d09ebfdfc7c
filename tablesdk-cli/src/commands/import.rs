//! `tables import`: a file into an account. `FILE.import` contains how far it has come.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use clap::Args;
use serde::{Deserialize, Serialize};
use tablesdk::Timestamp;
use tablesdk::action::BulkFailure;
use tablesdk_cli::dump::Dump;
use tablesdk_cli::import::{ImportError, ImportReport, WriteOptions, import};
use tablesdk_cli::records::{Empty, Place, ReadOptions, Records, Types};

use super::Transfer;
use crate::account::Account;
use crate::error::{AnyError, with_causes};
use crate::output::{Bar, Failure, Report};
use crate::state::{StateFile, is_standard, is_streamed, with_suffix};

/// Write the tables and entities of a file into an account
///
/// The file has lines as `tables export` or `tables query` writes them, other JSON, or CSV
/// with types as Storage Explorer writes it, or without. Its content decides:
///
///   {"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Age":36}}
///   {"PartitionKey":"Sales","RowKey":"1","Age":36}               with --table Employees
///   [{"PartitionKey":"Sales","RowKey":"1","Age":36}]             with --table Employees
///   {"value":[{"PartitionKey":"Sales","RowKey":"1","Age":36}]}   with --table Employees
///   PartitionKey,RowKey,Age                                      with --table Employees
///
/// A dump of `AzCopy` 7 is read, too, and so is what Azurite stores: the file is a manifest, a
/// data file or `__azurite_db_table__.json`, or the folder of one of them.
///
///   tables import employees.typed.csv --table Employees
///   tables query Employees --scan --all --output json | tables import - --table Copies
///
/// Tables are created if they do not exist. The service gives entities new timestamps.
///
/// Standard error names each entity that failed, by file and line, and the command exits
/// with 3. After an interruption, the same command continues after the entities that are
/// done, whose number is in FILE.import; some entities may be written again. What comes
/// from a pipe cannot be continued.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Import {
    /// The file to read, or - for standard input
    file: PathBuf,
    #[command(flatten)]
    reading: ReadOptions,
    #[command(flatten)]
    options: WriteOptions,
    #[command(flatten)]
    account: Account,
}

/// The number of the last record that is done, and how many of those before it failed.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Progress {
    records: u64,
    failed: u64,
    contents: Contents,
}

/// A fingerprint of the contents of a file. A new time alone does not change it.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Contents {
    bytes: u64,
    /// The hash of the first and the last bytes of each file.
    ends: u64,
}

impl Contents {
    fn of(dump: &Dump) -> io::Result<Self> {
        let mut bytes = 0;
        let mut ends = DefaultHasher::new();
        for file in &dump.files {
            let mut file = File::open(file)?;
            let length = file.metadata()?.len();
            for start in [0, length.saturating_sub(END_BYTES)] {
                let mut end = Vec::new();
                file.seek(SeekFrom::Start(start))?;
                file.by_ref().take(END_BYTES).read_to_end(&mut end)?;
                ends.write(&end);
            }
            bytes += length;
        }
        let ends = ends.finish();
        Ok(Self { bytes, ends })
    }
}

/// When a dump was changed, as `14:03 UTC on 2024-03-15`.
fn changed(dump: &Dump) -> String {
    let times = dump.files.iter().filter_map(|file| {
        let changed = fs::metadata(file).ok()?.modified().ok()?;
        changed.duration_since(UNIX_EPOCH).ok()
    });
    let last = times.max().unwrap_or_default().as_nanos();
    let ticks = i64::try_from(last / 100).unwrap_or(i64::MAX);
    let Ok(last) = Timestamp::from_unix_ticks(ticks) else {
        return "an unknown time".to_owned();
    };
    let last = last.to_string();
    let (day, time) = last.split_once('T').unwrap_or_default();
    let minute = time.get(..5).unwrap_or_default();
    format!("{minute} UTC on {day}")
}

impl Import {
    /// Returns true if the entities come from a pipe or a terminal.
    pub(crate) fn is_streamed(&self) -> bool {
        is_streamed(&self.file)
    }
}

impl Transfer for Import {
    async fn run(self) -> Result<Report, AnyError> {
        let Self {
            file: path,
            account,
            mut reading,
            options,
        } = self;
        let service = account.connect()?;
        let shown = path.display();
        let cannot_read = |error| format!("{shown} cannot be read: {error}");
        if is_standard(&path) {
            let records = records(io::stdin(), &reading);
            let done = import(&service, records, &options, 0, |_, _| {}).await;
            return Ok(report(&path, &done, 0));
        }
        if is_streamed(&path) {
            let file = File::open(&path).map_err(cannot_read)?;
            let done = import(&service, records(file, &reading), &options, 0, |_, _| {}).await;
            return Ok(report(&path, &done, 0));
        }
        let dump = Dump::find(&path)?;
        reading.table = reading.table.or_else(|| dump.table.clone());
        let contents = Contents::of(&dump).map_err(cannot_read)?;
        let command = format!("import to {}{}", service.endpoint(), words(&reading));
        let (mut state, before) = state((&path, &dump), contents, command)?;

        let bar = Bar::of_bytes(contents.bytes);
        let records = records(bar.0.wrap_read(dump.reader()), &reading);
        let mut unsaved = None;
        let saved = |records, failed| {
            let progress = Progress {
                records,
                failed: before.failed + failed,
                ..before
            };
            unsaved = state.save_sometimes(progress).err();
        };
        let done = import(&service, records, &options, before.records, saved).await;
        drop(bar);

        let before_end = |(place, _): &&(Place, BulkFailure)| place.number() <= done.done;
        let failed = done.failures.iter().filter(before_end).count();
        let is_done = failed == done.failures.len();
        let records = done.done.max(before.records);
        match &done.error {
            None | Some(ImportError::Truncated) if is_done => state.remove()?,
            // There is nothing to continue after.
            Some(_) if records == 0 => state.remove()?,
            _ => state.save(Progress {
                records,
                failed: before.failed + failed as u64,
                ..before
            })?,
        }
        let mut report = report(&path, &done, before.failed);
        let unsaved = unsaved.map(|error| format!("{shown}.import: {error}"));
        report.error = report.error.or(unsaved);
        Ok(report)
    }
}

fn records<R: Read>(from: R, reading: &ReadOptions) -> Records<BufReader<R>> {
    Records::new(BufReader::with_capacity(BUFFER_BYTES, from), reading)
}

/// The state of the import of a file, and what an earlier run has done.
fn state(
    (path, dump): (&Path, &Dump),
    contents: Contents,
    command: String,
) -> Result<(StateFile<Progress>, Progress), AnyError> {
    let (state, progress) = StateFile::open(with_suffix(path, ".import"), command)?;
    let progress: Progress = progress.unwrap_or(Progress {
        records: 0,
        failed: 0,
        contents,
    });
    if progress.contents == contents {
        return Ok((state, progress));
    }
    let (shown, since) = (path.display(), changed(dump));
    Err(format!(
        "{shown} is not the file of the interrupted import: it has other contents since {since}; remove {shown}.import to start from the beginning"
    )
    .into())
}

/// The options that change what is in a file, as an appendix of a sentence. `--as-string` is none:
/// with it, entities are read that are errors without it, and those before them stay as they are.
fn words(reading: &ReadOptions) -> String {
    let mut words = String::new();
    let mut add = |option: &str| words.extend([" with --", option]);
    if let Some(table) = &reading.table {
        add(&format!("table {table}"));
    }
    if reading.types == Types::Strings {
        add("types strings");
    }
    match reading.empty {
        Some(Empty::Absent) => add("empty absent"),
        Some(_) => add("empty strings"),
        None => {}
    }
    words
}

fn report(path: &Path, done: &ImportReport, failed_before: u64) -> Report {
    let shown = if is_standard(path) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    };
    let failures = done.failures.iter();
    let failures = failures.map(|(place, failure)| {
        let place = match place {
            Place::Line(number) => format!("{shown}:{number}"),
            place => format!("{shown}: {place}"),
        };
        Failure::new(place, failure)
    });
    let failures: Vec<_> = failures.collect();
    let error = done.error.as_ref();
    Report {
        verb: "Imported",
        totals: done.totals,
        own: done.own,
        guessed: Some(done.guessed),
        failed: failed_before + failures.len() as u64,
        failures,
        error: error.map(|error| format!("{shown}: {}", with_causes(error))),
        ..Report::default()
    }
}

const BUFFER_BYTES: usize = 1 << 20;
const END_BYTES: u64 = 1 << 16;
