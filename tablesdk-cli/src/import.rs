//! Imports lines into an account: creates tables, and writes the entities with bulk runs of the client.
//!
//! Entities in consecutive lines of one table are the input of one bulk run. Its indexes are line numbers: progress, failures and
//! the line to resume at come from the run.

use std::collections::HashSet;
use std::io::{self, BufRead};

use clap::builder::RangedU64ValueParser;
use futures::{Stream, StreamExt as _, stream};
use tablesdk::action::{Bulk, BulkError, BulkFailure};
use tablesdk::{DynamicEntity, TableClient, TableServiceClient};

use crate::lines::{Line, LineError, MAX_LINE_BYTES, Totals};
use crate::own::{AsStored, OwnEntities, renewed};

/// What happens to an entity that exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum Mode {
    /// The existing entity is replaced
    #[default]
    Replace,
    /// The properties are merged into the existing entity
    Merge,
    /// The existing entity does not change, and the new one counts as failed
    Insert,
}

/// How entities are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
#[non_exhaustive]
pub struct WriteOptions {
    /// What happens if an entity exists already
    #[arg(long, value_enum, default_value_t)]
    pub mode: Mode,
    /// Maximum number of entities in a request; 1 for services that misread batches
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100))]
    pub batch_size: usize,
    /// Maximum number of requests in flight
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub concurrency: usize,
    /// End the command after this number of failed entities
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub max_failures: usize,
    /// Do not create missing tables, for a shared access signature without this permission
    #[arg(long = "no-create-tables", action = clap::ArgAction::SetFalse)]
    pub create_tables: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            batch_size: 100,
            concurrency: 16,
            max_failures: 1000,
            create_tables: true,
        }
    }
}

impl WriteOptions {
    /// A bulk run with these options, after `failures` failures. It writes the entities as they are, also those that the client stores for
    /// purposes of its own.
    pub fn bulk<'a>(
        &self,
        table: &TableClient,
        failures: usize,
        entities: impl Stream<Item = DynamicEntity> + Send + 'a,
    ) -> Bulk<'a> {
        let entities = entities.map(AsStored);
        let bulk = table
            .bulk()
            .batch_size(self.batch_size)
            .concurrency(self.concurrency)
            .max_failures(self.max_failures.saturating_sub(failures));
        match self.mode {
            Mode::Insert => bulk.insert(entities),
            Mode::Merge => bulk.upsert_merge(entities),
            Mode::Replace => bulk.upsert_replace(entities),
        }
    }
}

/// The result of an import, up to its end or to the error that ended it.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ImportReport {
    /// The number of tables and entities in the lines that were read, including skipped lines.
    pub totals: Totals,
    /// How many of these entities are the client's own.
    pub own: OwnEntities,
    /// The number of lines, from the start, that are done: the entity is stored, or was itself rejected. To continue this import, skip
    /// these lines.
    pub lines: u64,
    /// The entities that were not written, with the numbers of their lines.
    pub failures: Vec<(u64, BulkFailure)>,
    /// The error that ended the import.
    pub error: Option<ImportError>,
}

/// Why an import ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The last line has other numbers than the lines before it.
    #[error(
        "line {line}: the last line counts {} tables and {} entities, and the file has {} and {}",
        expected.tables, expected.entities, found.tables, found.entities
    )]
    Counts {
        /// The number of the line.
        line: u64,
        /// The numbers in the line.
        expected: Totals,
        /// The numbers of tables and entities before the line.
        found: Totals,
    },
    /// The table of a line cannot be created.
    #[error("line {line}: {error}")]
    CreateTable {
        /// The number of the line.
        line: u64,
        /// The error.
        error: tablesdk::Error,
    },
    /// A line is malformed.
    #[error("line {line}: {error}")]
    Line {
        /// The number of the line, from 1.
        line: u64,
        /// The error.
        error: LineError,
    },
    /// The line is the first line of a file, and others are before it; or it comes where a first line must be.
    #[error("line {line}: a file begins with a line of its format, and has no other")]
    Order {
        /// The number of the line.
        line: u64,
    },
    /// A line cannot be read.
    #[error("line {line} cannot be read: {error}")]
    Read {
        /// The number of the line.
        line: u64,
        /// The error.
        error: io::Error,
    },
    /// The file ends without its last line. All lines before are done.
    #[error("the file ends without its last line: it was truncated; all lines before are imported")]
    Truncated,
    /// A bulk run ended early. The report has its failures.
    #[error(transparent)]
    Write(BulkError),
}

/// Imports lines. `skip` is the value of [`lines`](ImportReport::lines) of an earlier import of the same lines. Calls `progress` with
/// this value, and the number of entities that failed, after each request.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// use tablesdk_cli::import::{WriteOptions, import};
///
/// let file = r#"{"format":"tablesdk","version":1}
/// {"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Name":"Ada"}}
/// {"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"2","Name":"Grace"}}
/// {"end":{"tables":0,"entities":2}}
/// "#;
/// let report = import(&service, file.as_bytes(), &WriteOptions::default(), 0, |_, _| {}).await;
/// assert!(report.error.is_none() && report.failures.is_empty());
/// assert_eq!((report.totals.entities, report.lines), (2, 4));
/// # Ok(())
/// # }
/// ```
pub async fn import(
    service: &TableServiceClient,
    from: impl BufRead + Send,
    options: &WriteOptions,
    skip: u64,
    progress: impl FnMut(u64, u64) + Send,
) -> ImportReport {
    let mut import = Import {
        service,
        options,
        known: HashSet::new(),
        report: ImportReport::default(),
        pending: None,
        progress,
    };
    let mut reader = Reader::new(from);
    let result = Box::pin(import.run(&mut reader, skip)).await;
    import.report.error = result.err();
    import.report.totals = reader.all;
    import.report.own = reader.own;
    import.report
}

struct Import<'a, P> {
    service: &'a TableServiceClient,
    options: &'a WriteOptions,
    /// Tables that exist, in lower case.
    known: HashSet<String>,
    report: ImportReport,
    /// The first line whose entity was neither stored nor rejected: a resumed import begins there.
    pending: Option<u64>,
    progress: P,
}

impl<P: FnMut(u64, u64) + Send> Import<'_, P> {
    async fn run<R: BufRead + Send>(
        &mut self,
        reader: &mut Reader<R>,
        skip: u64,
    ) -> Result<(), ImportError> {
        while let Some(line) = reader.next()? {
            if reader.number > skip {
                match line {
                    Line::Table(table) => self.create(&table, reader.number).await?,
                    Line::Entity { table, entity } => {
                        self.create(&table, reader.number).await?;
                        self.write(reader, &table, entity).await?;
                    }
                    _ => {}
                }
            }
            let next = reader.done() + 1;
            self.report.lines = self.pending.unwrap_or(next) - 1;
        }
        if reader.is_complete {
            Ok(())
        } else {
            Err(ImportError::Truncated)
        }
    }

    async fn create(&mut self, table: &str, line: u64) -> Result<(), ImportError> {
        if self.options.create_tables && self.known.insert(table.to_ascii_lowercase()) {
            let create = self.service.table(table).create_table().if_missing().await;
            create.map_err(|error| ImportError::CreateTable { line, error })?;
        }
        Ok(())
    }

    /// Writes the entity that was just read, and the entities in the next lines of the same table.
    async fn write<R: BufRead + Send>(
        &mut self,
        reader: &mut Reader<R>,
        table: &str,
        entity: DynamicEntity,
    ) -> Result<(), ImportError> {
        let first = reader.number;
        let pending = self.pending;
        let progress = &mut self.progress;
        let others = std::iter::from_fn(|| reader.next_entity_of(table));
        let entities = stream::iter(std::iter::once(entity).chain(others).map(renewed));
        let failures = self.report.failures.len();
        let bulk = self
            .options
            .bulk(&self.service.table(table), failures, entities)
            .progress(|now| {
                let next = pending.unwrap_or(first + now.resume_at);
                progress(next - 1, failures as u64 + now.failed);
            })
            .await;
        let report = match &bulk {
            Ok(report) => report,
            Err(error) => error.report(),
        };
        let failures = report.failures().iter();
        let failures = failures.map(|failure| (first + failure.index(), failure.clone()));
        self.report.failures.extend(failures);
        let next = first + report.progress().resume_at;
        if next <= reader.done() {
            self.pending.get_or_insert(next);
        }
        self.report.lines = self.pending.unwrap_or(next) - 1;
        bulk.map(drop).map_err(ImportError::Write)
    }
}

/// Reads lines, and compares the numbers in the last line of each file with those before it.
struct Reader<R> {
    from: R,
    line: Vec<u8>,
    /// The number of lines that were read.
    number: u64,
    /// A line that was read and not returned yet.
    peeked: Option<Result<Line, ImportError>>,
    /// The tables and entities of all files, and of this file.
    all: Totals,
    own: OwnEntities,
    file: Totals,
    is_complete: bool,
}

impl<R: BufRead> Reader<R> {
    fn new(from: R) -> Self {
        Self {
            from,
            line: Vec::new(),
            number: 0,
            peeked: None,
            all: Totals::default(),
            own: OwnEntities::default(),
            file: Totals::default(),
            is_complete: true,
        }
    }

    /// The number of lines that were returned.
    fn done(&self) -> u64 {
        self.number - u64::from(self.peeked.is_some())
    }

    fn next(&mut self) -> Result<Option<Line>, ImportError> {
        match self.peeked.take() {
            Some(line) => line.map(Some),
            None => self.read(),
        }
    }

    /// The entity of the next line, if it belongs to this table.
    fn next_entity_of(&mut self, table: &str) -> Option<DynamicEntity> {
        match self.next().transpose()? {
            Ok(Line::Entity {
                table: other,
                entity,
            }) if other == table => Some(entity),
            line => {
                self.peeked = Some(line);
                None
            }
        }
    }

    fn read(&mut self) -> Result<Option<Line>, ImportError> {
        self.line.clear();
        let line = self.number + 1;
        // One byte more than a line can have, with its end, so that a longer line is recognized.
        let max = MAX_LINE_BYTES as u64 + 2;
        let read = io::Read::take(&mut self.from, max).read_until(b'\n', &mut self.line);
        match read {
            Ok(0) => return Ok(None),
            Ok(_) => self.number = line,
            Err(error) => return Err(ImportError::Read { line, error }),
        }
        let text = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let read = Line::read(text).map_err(|error| ImportError::Line { line, error })?;
        if self.is_complete != (read == Line::Start) {
            return Err(ImportError::Order { line });
        }
        match &read {
            Line::Start => {
                self.is_complete = false;
                self.file = Totals::default();
            }
            Line::Table(_) => {
                self.file.tables += 1;
                self.all.tables += 1;
            }
            Line::Entity { entity, .. } => {
                self.file.entities += 1;
                self.all.entities += 1;
                self.own.count(entity);
            }
            Line::End(expected) if *expected == self.file => self.is_complete = true,
            Line::End(expected) => {
                return Err(ImportError::Counts {
                    line,
                    expected: *expected,
                    found: self.file,
                });
            }
        }
        Ok(Some(read))
    }
}
