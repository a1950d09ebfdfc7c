//! The output of a command: progress on a terminal, its result, and its exit code.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::Value as Json;
use tablesdk::action::BulkFailure;
use tablesdk_cli::lines::Totals;
use tablesdk_cli::own::{LeftBehind, OwnEntities};
use tablesdk_cli::pages::{Position, TablePages};
use tablesdk_cli::schema::Count;

use crate::error::{AnyError, is_usage, with_causes};
use crate::escape::{harmless, harmless_json};
use crate::show::{Format, Printer};

/// Where a command reports.
pub(crate) struct Output {
    /// The form that the arguments name.
    format: Option<Format>,
    /// Cells of CSV are safe for a spreadsheet.
    is_guarded: bool,
    started: Instant,
}

/// The result of a command.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// The first word of the result.
    #[serde(skip)]
    pub(crate) verb: &'static str,
    #[serde(skip)]
    pub(crate) subject: Subject,
    #[serde(flatten)]
    pub(crate) totals: Totals,
    /// How many of the entities are those that the client stores for purposes of its own.
    pub(crate) own: OwnEntities,
    /// How many of these stayed in the account that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left_behind: Option<LeftBehind>,
    /// How many values had no type in the file of an import, and got one by their text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) guessed: Option<u64>,
    /// The number of entities that failed, including those of earlier runs that this one continued.
    pub(crate) failed: u64,
    pub(crate) failures: Vec<Failure>,
    /// How many of those that failed were changed meanwhile.
    #[serde(skip)]
    pub(crate) changed: u64,
    /// Why the command ended early.
    pub(crate) error: Option<String>,
}

/// The tables or entities that a report is about.
#[derive(Debug, Default)]
pub(crate) enum Subject {
    #[default]
    Tables,
    /// Entities of this table.
    Entities(String),
    /// This table as a whole.
    Table(String),
}

impl Report {
    /// Takes the numbers of what was read.
    pub(crate) fn count(&mut self, position: &Position) {
        self.totals = position.totals;
        self.own = position.own();
        self.left_behind = Some(position.left_behind());
    }
}

/// An entity that failed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failure {
    /// The file and line, or the table.
    pub(crate) place: String,
    partition_key: Option<String>,
    row_key: Option<String>,
    outcome_unknown: bool,
    error: String,
}

impl Failure {
    pub(crate) fn new(place: String, failure: &BulkFailure) -> Self {
        let key = failure.key();
        Self {
            place,
            partition_key: key.map(|key| key.partition_key().as_str().to_owned()),
            row_key: key.map(|key| key.row_key().as_str().to_owned()),
            outcome_unknown: failure.is_outcome_unknown(),
            error: with_causes(failure.error()),
        }
    }

    /// An entity of a table that cannot be read.
    pub(crate) fn unreadable(table: &str, error: &tablesdk::Error) -> Self {
        let key = error.key();
        Self {
            place: table.to_owned(),
            partition_key: key.map(|key| key.partition_key().as_str().to_owned()),
            row_key: key.map(|key| key.row_key().as_str().to_owned()),
            outcome_unknown: false,
            error: with_causes(error),
        }
    }
}

impl Output {
    pub(crate) fn new(format: Option<Format>, is_guarded: bool) -> Self {
        Self {
            format,
            is_guarded,
            started: Instant::now(),
        }
    }

    /// Returns true if the arguments name a form.
    pub(crate) fn has_form(&self) -> bool {
        self.format.is_some()
    }

    /// Returns true if the arguments name JSON. A single text needs no other form in a pipe.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Some(Format::Json)
    }

    /// The printer of entities.
    pub(crate) fn printer(&self) -> Printer {
        let format = self.format.unwrap_or_else(Format::of_standard_output);
        Printer::new(format, self.is_guarded)
    }

    /// Prints the summary of a command that carries whole tables.
    pub(crate) fn summary(&self, result: Result<Report, AnyError>) -> ExitCode {
        let is_usage = result.as_ref().is_err_and(is_usage);
        let report = result.unwrap_or_else(|error| Report {
            error: Some(with_causes(&*error)),
            ..Report::default()
        });
        // If an output is closed, no program reads it.
        let _ = self.print(&report);
        match report {
            _ if is_usage => ExitCode::from(INVALID_ARGUMENTS),
            Report { error: Some(_), .. } => ExitCode::FAILURE,
            Report { failed: 0, .. } => ExitCode::SUCCESS,
            _ => ExitCode::from(PARTLY_FAILED),
        }
    }

    fn print(&self, report: &Report) -> io::Result<()> {
        // Standard output is that of the entities.
        let mut out = io::stderr().lock();
        for failure in &report.failures {
            let line = format!("{}: {}", failure.place, failure.error);
            writeln!(out, "{}", harmless(&line))?;
        }
        if report.changed > 0 {
            let changed = counted(report.changed, "entity", "entities");
            writeln!(out, "tables: {changed} changed meanwhile and stayed")?;
        }
        let failed = report.failed - report.changed;
        let earlier = failed.saturating_sub(report.failures.len() as u64);
        if earlier > 0 {
            let failed = counted(earlier, "entity", "entities");
            writeln!(out, "tables: {failed} failed in an earlier run")?;
        }
        if let Some(error) = &report.error {
            writeln!(out, "tables: {}", harmless(error))?;
        }
        if self.is_json() {
            let line = serde_json::to_string(report)?;
            return writeln!(out, "{}", harmless_json(&line));
        }
        if report.error.is_some() {
            return Ok(());
        }
        let Totals { tables, entities } = report.totals;
        let of_them = match failed {
            0 => String::new(),
            failed => format!(", {failed} of which failed,"),
        };
        let seconds = self.started.elapsed().as_secs_f64();
        let verb = report.verb;
        let entities = counted(entities, "entity", "entities");
        let tables = counted(tables, "table", "tables");
        match &report.subject {
            Subject::Tables => writeln!(
                out,
                "{verb} {tables} with {entities}{of_them} in {seconds:.1} s"
            )?,
            Subject::Entities(table) => {
                writeln!(out, "{verb} {entities} of {table} in {seconds:.1} s")?;
            }
            Subject::Table(table) => writeln!(out, "{verb} the table {table} in {seconds:.1} s")?,
        }
        if let Some(guessed) = report.guessed
            && report.totals.entities > 0
        {
            writeln!(out, "Their timestamps are new: the service sets them")?;
            if let Some(text) = of_guesses(guessed) {
                writeln!(out, "{text}: --types strings keeps them as strings")?;
            }
        }
        let own = report.own;
        print_counts(
            &mut out,
            "Among them, of the client itself",
            &[
                (own.messages, "messages"),
                (own.steps, "other steps"),
                (own.outboxes, "heads and pointers of outboxes"),
                (own.expiry_entries, "entries of expiry buckets"),
            ],
        )?;
        let left = report.left_behind.unwrap_or_default();
        print_counts(
            &mut out,
            "Left behind",
            &[
                (left.markers, "markers of exactly_once"),
                (left.wide_intents, "intents of wide entities"),
                (left.late_steps, "steps that were committed meanwhile"),
            ],
        )
    }
}

/// Prints what there is of several kinds, as `Left behind: 2 markers of exactly_once`.
fn print_counts(out: &mut impl io::Write, title: &str, counts: &[(u64, &str)]) -> io::Result<()> {
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let texts: Vec<_> = counts
        .map(|(count, kind)| format!("{count} {kind}"))
        .collect();
    if texts.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}: {}", texts.join(", "))
}

/// A number of things, as `1 entity` or `2 entities`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}

/// The entities of a table that were looked at, as `all 12 entities, in 1 partition`.
pub(crate) fn of_sample(count: u64, partitions: Count, is_complete: bool) -> String {
    let count = counted(count, "entity", "entities");
    let partitions = match partitions {
        Count::Exactly(1) => "1 partition".to_owned(),
        _ => format!("{partitions} partitions"),
    };
    if is_complete {
        return format!("all {count}, in {partitions}");
    }
    format!("{count}, in {partitions}; --sample COUNT looks at more")
}

/// How many values of a file got a type by their text, if any did.
pub(crate) fn of_guesses(guessed: u64) -> Option<String> {
    let values = counted(guessed, "value", "values");
    (guessed > 0).then(|| format!("{values} without a type got one by their text"))
}

/// Prints the result of a command that changes something: for programs as JSON, if the arguments
/// say so, and else to people.
pub(crate) fn result(output: &Output, json: &Json, text: &str) -> io::Result<()> {
    if output.is_json() {
        return writeln!(io::stdout(), "{}", harmless_json(&json.to_string()));
    }
    note(text);
    Ok(())
}

/// Says something about what is printed, to people.
pub(crate) fn note(text: &str) {
    // If standard error is closed, nobody reads it.
    let _ = writeln!(io::stderr(), "{}", harmless(text));
}

/// The exit code of a command that has printed what it found.
pub(crate) fn shown(result: Result<(), AnyError>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    // The program that reads, such as `head`, has ended.
    let kind = error.downcast_ref().map(io::Error::kind);
    if kind == Some(io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    note(&format!("tables: {}", with_causes(&*error)));
    if is_usage(&error) {
        return ExitCode::from(INVALID_ARGUMENTS);
    }
    ExitCode::FAILURE
}

/// A progress bar on standard error, if that is a terminal. It disappears when it is dropped.
pub(crate) struct Bar(pub(crate) ProgressBar);

impl Bar {
    pub(crate) fn of_bytes(length: u64) -> Self {
        let template = "{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
        Self::new(length, template)
    }

    pub(crate) fn of_tables() -> Self {
        Self::new(0, "{bar:30} {pos}/{len} tables, {elapsed}: {msg}")
    }

    pub(crate) fn of_entities(count: u64) -> Self {
        Self::new(count, "{bar:30} {pos}/{len} entities, {eta} left")
    }

    fn new(length: u64, template: &str) -> Self {
        let bar = ProgressBar::new(length);
        // The templates are constants.
        Self(match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }

    /// Shows the progress of reading tables.
    pub(crate) fn show(&self, pages: &TablePages) {
        let Totals { tables, entities } = pages.position().totals;
        self.0.set_length(tables + pages.tables_left() as u64);
        self.0.set_position(tables);
        self.0.set_message(format!("{entities} entities"));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

const INVALID_ARGUMENTS: u8 = 2;
const PARTLY_FAILED: u8 = 3;
