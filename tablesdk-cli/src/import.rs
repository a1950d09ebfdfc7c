//! Imports records into an account: creates tables, and writes the entities with bulk runs of the
//! client.
//!
//! Consecutive entities of one table are the input of one bulk run. Progress, failures and the
//! record to resume at come from the run.

use std::collections::HashSet;
use std::io::BufRead;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::builder::RangedU64ValueParser;
use futures::{Stream, StreamExt as _, stream};
use tablesdk::action::{Bulk, BulkError, BulkFailure};
use tablesdk::{DynamicEntity, TableClient, TableServiceClient};

use crate::lines::{Line, Totals};
use crate::own::{AsStored, OwnEntities, renewed};
use crate::records::{Place, RecordError, Records};

/// The effect on an entity that exists already.
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
    /// How to handle an entity that exists already
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
    /// A bulk run with these options, after `failures` failures. It writes the entities as they
    /// are, also those that the client stores for purposes of its own.
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
    /// The number of tables, and of entities, in the records that were read, including skipped
    /// ones.
    pub totals: Totals,
    /// How many of these entities are the client's own.
    pub own: OwnEntities,
    /// How many values had no type in the file, and got one by their text.
    pub guessed: u64,
    /// The number of the last record up to which all are done: the entity is stored, or was itself
    /// rejected. To continue this import, skip the records up to this number.
    pub done: u64,
    /// The entities that were not written, with their places.
    pub failures: Vec<(Place, BulkFailure)>,
    /// The error that ended the import.
    pub error: Option<ImportError>,
}

/// Why an import ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The last line has other numbers than the lines before it.
    #[error(
        "{place}: the last line counts {} tables and {} entities, and the file has {} and {}",
        expected.tables, expected.entities, found.tables, found.entities
    )]
    Counts {
        /// The line.
        place: Place,
        /// The numbers in the line.
        expected: Totals,
        /// The numbers of tables and entities before the line.
        found: Totals,
    },
    /// The table of a record cannot be created.
    #[error("{place}: {error}")]
    CreateTable {
        /// The record.
        place: Place,
        /// The error.
        error: tablesdk::Error,
    },
    /// The line is the first line of an export, and another export is before it that did not end;
    /// or it comes after the end of one.
    #[error("{place}: an export begins with a line of its format, and has no other")]
    Order {
        /// The line.
        place: Place,
    },
    /// A record is malformed.
    #[error(transparent)]
    Record(RecordError),
    /// The file ends without its last line. All lines before are done.
    #[error("the file ends without its last line: it was truncated; all lines before are imported")]
    Truncated,
    /// A bulk run ended early. The report has its failures.
    #[error(transparent)]
    Write(BulkError),
}

/// Imports records. `skip` is the value of [`done`](ImportReport::done) of an earlier import of the
/// same records. Calls `progress` with this value, and the number of entities that failed, after
/// each request.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// use tablesdk_cli::import::{WriteOptions, import};
/// use tablesdk_cli::records::{ReadOptions, Records};
///
/// let file = r#"{"format":"tablesdk","version":1}
/// {"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Name":"Ada"}}
/// {"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"2","Name":"Grace"}}
/// {"end":{"tables":0,"entities":2}}
/// "#;
/// let records = Records::new(file.as_bytes(), &ReadOptions::default());
/// let report = import(&service, records, &WriteOptions::default(), 0, |_, _| {}).await;
/// assert!(report.error.is_none() && report.failures.is_empty());
/// assert_eq!((report.totals.entities, report.done), (2, 4));
/// # Ok(())
/// # }
/// ```
pub async fn import(
    service: &TableServiceClient,
    records: Records<impl BufRead + Send>,
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
    let mut reader = Reader::new(records);
    let result = Box::pin(import.run(&mut reader, skip)).await;
    import.report.error = result.err();
    import.report.totals = Totals {
        tables: reader.tables.len() as u64,
        entities: reader.entities,
    };
    import.report.own = reader.own;
    import.report.guessed = reader.records.guessed();
    import.report
}

struct Import<'a, P> {
    service: &'a TableServiceClient,
    options: &'a WriteOptions,
    /// Tables that exist, in lower case.
    known: HashSet<String>,
    report: ImportReport,
    /// The number of the first record whose entity was neither stored nor rejected: a resumed
    /// import begins there.
    pending: Option<u64>,
    progress: P,
}

impl<P: FnMut(u64, u64) + Send> Import<'_, P> {
    async fn run<R: BufRead + Send>(
        &mut self,
        reader: &mut Reader<R>,
        skip: u64,
    ) -> Result<(), ImportError> {
        while let Some((place, line)) = reader.next()? {
            let is_new = place.number() > skip;
            match line {
                // It has the number of the entity before it, if it is in no line.
                Line::Table(table) if place.number() >= skip => self.create(&table, place).await?,
                Line::Entity { table, entity } if is_new => {
                    self.create(&table, place).await?;
                    self.write(reader, place, &table, entity).await?;
                }
                _ => {}
            }
            self.report.done = self.pending.unwrap_or(reader.returned + 1) - 1;
        }
        if let InFile::Export(_) = reader.file {
            return Err(ImportError::Truncated);
        }
        // A table may have no entities.
        if let Some(table) = reader.records.table().map(str::to_owned) {
            self.create(&table, Place::Line(1)).await?;
            reader.see(&table);
        }
        Ok(())
    }

    async fn create(&mut self, table: &str, place: Place) -> Result<(), ImportError> {
        if self.options.create_tables && self.known.insert(table.to_ascii_lowercase()) {
            let create = self.service.table(table).create_table().if_missing().await;
            create.map_err(|error| ImportError::CreateTable { place, error })?;
        }
        Ok(())
    }

    /// Writes the entity that was just read, and the next entities of the same table.
    async fn write<R: BufRead + Send>(
        &mut self,
        reader: &mut Reader<R>,
        place: Place,
        table: &str,
        entity: DynamicEntity,
    ) -> Result<(), ImportError> {
        let places = Mutex::new(vec![place]);
        let pending = self.pending;
        let progress = &mut self.progress;
        let others = std::iter::from_fn(|| {
            if locked(&places).len() == RUN_MAX {
                return None;
            }
            let (place, entity) = reader.next_entity_of(table)?;
            locked(&places).push(place);
            Some(entity)
        });
        let entities = stream::iter(std::iter::once(entity).chain(others).map(renewed));
        let failures = self.report.failures.len();
        let bulk = self
            .options
            .bulk(&self.service.table(table), failures, entities)
            .progress(|now| {
                let next = pending.unwrap_or_else(|| next_number(&locked(&places), now.resume_at));
                progress(next - 1, failures as u64 + now.failed);
            })
            .await;
        let report = match &bulk {
            Ok(report) => report,
            Err(error) => error.report(),
        };
        let places = locked(&places);
        let failures = report.failures().iter();
        let failures =
            failures.filter_map(|failure| Some((at(&places, failure.index())?, failure.clone())));
        self.report.failures.extend(failures);
        let next = next_number(&places, report.progress().resume_at);
        if next <= reader.returned {
            self.pending.get_or_insert(next);
        }
        self.report.done = self.pending.unwrap_or(next) - 1;
        bulk.map(drop).map_err(ImportError::Write)
    }
}

/// The place of the entity with this index of a bulk run.
fn at(places: &[Place], index: u64) -> Option<Place> {
    places.get(usize::try_from(index).ok()?).copied()
}

/// The number of the entity with this index of a bulk run, or that after the last one.
fn next_number(places: &[Place], index: u64) -> u64 {
    match (at(places, index), places.last()) {
        (Some(place), _) => place.number(),
        (None, Some(last)) => last.number() + 1,
        (None, None) => 0,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The maximum number of entities of a bulk run: their places are in memory.
const RUN_MAX: usize = 100_000;

/// Reads records, and compares the numbers in the last line of each export with those before it.
struct Reader<R> {
    records: Records<R>,
    /// The number of the last record that was returned.
    returned: u64,
    /// A record that was read and not returned yet.
    peeked: Option<Result<(Place, Line), ImportError>>,
    /// The tables of all that was read, in lower case.
    tables: HashSet<String>,
    /// The last of them.
    last: String,
    /// The number of entities of all that was read.
    entities: u64,
    own: OwnEntities,
    file: InFile,
}

/// The part of the file that the last record belonged to, with the totals of what was read of it.
#[derive(Clone, Copy)]
enum InFile {
    Nothing,
    /// Records without a first line.
    NoExport(Totals),
    Export(Totals),
    /// An export that has ended.
    Ended,
}

impl<R: BufRead> Reader<R> {
    fn new(records: Records<R>) -> Self {
        Self {
            records,
            returned: 0,
            peeked: None,
            tables: HashSet::new(),
            last: String::new(),
            entities: 0,
            own: OwnEntities::default(),
            file: InFile::Nothing,
        }
    }

    fn next(&mut self) -> Result<Option<(Place, Line)>, ImportError> {
        let next = match self.peeked.take() {
            Some(record) => record.map(Some),
            None => self.read(),
        };
        if let Ok(Some((place, _))) = &next {
            self.returned = place.number();
        }
        next
    }

    /// The next record, if it is an entity of this table.
    fn next_entity_of(&mut self, table: &str) -> Option<(Place, DynamicEntity)> {
        let record = match self.peeked.take() {
            Some(record) => record,
            None => self.read().transpose()?,
        };
        match record {
            Ok((
                place,
                Line::Entity {
                    table: other,
                    entity,
                },
            )) if other == table => {
                self.returned = place.number();
                Some((place, entity))
            }
            record => {
                self.peeked = Some(record);
                None
            }
        }
    }

    fn read(&mut self) -> Result<Option<(Place, Line)>, ImportError> {
        let next = self
            .records
            .next()
            .transpose()
            .map_err(ImportError::Record)?;
        if let Some((place, line)) = &next {
            self.count(*place, line)?;
        }
        Ok(next)
    }

    fn count(&mut self, place: Place, line: &Line) -> Result<(), ImportError> {
        self.file = match (self.file, line) {
            (InFile::Nothing | InFile::NoExport(_) | InFile::Ended, Line::Start) => {
                InFile::Export(Totals::default())
            }
            (InFile::Export(found) | InFile::NoExport(found), Line::End(expected)) => {
                if *expected != found {
                    return Err(ImportError::Counts {
                        place,
                        expected: *expected,
                        found,
                    });
                }
                InFile::Ended
            }
            (InFile::Nothing, Line::Table(_) | Line::Entity { .. }) => {
                InFile::NoExport(self.counted(Totals::default(), line))
            }
            (InFile::NoExport(found), line) => InFile::NoExport(self.counted(found, line)),
            (InFile::Export(found), Line::Table(_) | Line::Entity { .. }) => {
                InFile::Export(self.counted(found, line))
            }
            (InFile::Nothing | InFile::Ended | InFile::Export(_), _) => {
                return Err(ImportError::Order { place });
            }
        };
        Ok(())
    }

    /// The numbers with one more table or entity.
    fn counted(&mut self, mut found: Totals, line: &Line) -> Totals {
        match line {
            Line::Entity { table, entity } => {
                found.entities += 1;
                self.entities += 1;
                self.own.count(entity);
                self.see(table);
            }
            Line::Table(table) => {
                found.tables += 1;
                self.see(table);
            }
            _ => {}
        }
        found
    }

    fn see(&mut self, table: &str) {
        if self.last != table {
            table.clone_into(&mut self.last);
            self.tables.insert(table.to_ascii_lowercase());
        }
    }
}
