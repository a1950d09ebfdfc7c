//! The records of a file, in the forms in which people have entities. This module knows neither
//! accounts nor the names of files.
//!
//! The form is recognized by the content: lines of [`lines`](crate::lines), lines that are
//! entities, JSON arrays, the responses of the service, `{"value": […]}`, the file of Azurite, and
//! CSV. A byte order mark, CRLF and blank lines are no errors. A reader holds one record at a time,
//! which is at most [`MAX_LINE_BYTES`] long.

mod csv_rows;
mod csv_text;
mod document;
mod entity;
mod error;
mod recognize;
mod scanner;
mod text_lines;
mod typed;

use std::io::{BufRead, Chain, Cursor};

use tablesdk::{DynamicEntity, ETag};
use tablesdk_protocol::{TableName, TableNameError};

pub(crate) use self::entity::{Rules, entity_of, etag_of};
pub use self::error::{Place, RecordError, RecordProblem};
pub use self::typed::typed_value;

use self::csv_rows::CsvRows;
use self::document::Document;
use self::recognize::{Form, recognize};
use self::text_lines::TextLines;
use crate::lines::{Line, MAX_LINE_BYTES};

/// How files are read that are not those of an export
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Import all entities into this table, whatever table the file names
    ///
    /// Entities without a table need it. A file with several tables is refused.
    #[arg(long, help_heading = "File", value_name = "NAME", value_parser = table_name)]
    pub table: Option<String>,
    /// The types of values of CSV without types
    #[arg(long, help_heading = "File", value_enum, default_value_t)]
    pub types: Types,
    /// The meaning of an empty cell of CSV. Default: an empty string if its type says so, else
    /// absent
    #[arg(long, help_heading = "File", value_enum)]
    pub empty: Option<Empty>,
    /// Keep a value as a string if its type does not allow it
    #[arg(long, help_heading = "File")]
    pub as_string: bool,
}

/// The types of values of CSV without types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum Types {
    /// Numbers, true and false, dates with a time, and GUIDs have the type of their text
    #[default]
    Guess,
    /// All values are strings
    Strings,
}

/// The meaning of an empty cell of CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum Empty {
    /// The entity does not have the property
    Absent,
    /// The value is an empty string, unless its column has another type
    Strings,
}

fn table_name(text: &str) -> Result<String, TableNameError> {
    TableName::new(text).map(|_| text.to_owned())
}

/// Reads the records of one file.
///
/// ```
/// use tablesdk_cli::lines::Line;
/// use tablesdk_cli::records::{ReadOptions, Records};
///
/// let file = r#"[{"PartitionKey":"Sales","RowKey":"1","Age":36},
///                {"PartitionKey":"Sales","RowKey":"2","Age":45}]"#;
/// let mut options = ReadOptions::default();
/// options.table = Some("Employees".to_owned());
/// for record in Records::new(file.as_bytes(), &options) {
///     let (place, record) = record?;
///     let Line::Entity { table, entity } = record else {
///         panic!("an array has entities alone");
///     };
///     println!("{place}: {} goes into {table}", entity.row_key());
/// }
/// # Ok::<(), tablesdk_cli::records::RecordError>(())
/// ```
#[derive(Debug)]
pub struct Records<R> {
    reader: Reader<R>,
    names: Names,
    options: ReadOptions,
    /// How many values had no type, and got one by their text.
    guessed: u64,
    /// The version of the last entity.
    etag: Option<ETag>,
}

/// A file after its first line was read.
type Rest<R> = Chain<Cursor<Vec<u8>>, R>;

#[derive(Debug)]
enum Reader<R> {
    Unread(R),
    Lines(TextLines<Rest<R>>),
    Document(Document<Rest<R>>),
    Csv(Box<CsvRows<Rest<R>>>),
    /// At its end, or after an error.
    Ended,
}

/// A record of any form, before its table is known.
#[derive(Debug)]
enum Record {
    /// A line of an export, with the version of its entity.
    Line(Line, Option<ETag>),
    /// An entity, and the table that its form names.
    Entity {
        table: Option<String>,
        entity: DynamicEntity,
        etag: Option<ETag>,
    },
}

impl<R: BufRead> Records<R> {
    /// Reads from the start of a file.
    pub fn new(from: R, options: &ReadOptions) -> Self {
        Self {
            reader: Reader::Unread(from),
            names: Names {
                given: options.table.clone(),
                in_file: None,
            },
            options: options.clone(),
            guessed: 0,
            etag: None,
        }
    }

    /// The version of the last entity that was returned, if the file has it: its member
    /// `odata.etag`.
    pub const fn etag(&self) -> Option<&ETag> {
        self.etag.as_ref()
    }

    /// The table that the options name for all entities.
    pub fn table(&self) -> Option<&str> {
        self.names.given.as_deref()
    }

    /// How many values of what was read had no type, and got one by their text.
    pub const fn guessed(&self) -> u64 {
        self.guessed
    }

    fn read(&mut self) -> Result<Option<(Place, Line)>, RecordError> {
        let found = match &mut self.reader {
            Reader::Unread(_) => {
                self.open()?;
                return self.read();
            }
            Reader::Lines(lines) => lines.next()?,
            Reader::Document(document) => document.next()?,
            Reader::Csv(rows) => {
                let next = rows.next();
                self.guessed = rows.guessed();
                next?
            }
            Reader::Ended => return Ok(None),
        };
        let Some((place, mut record)) = found else {
            return Ok(None);
        };
        self.etag = match &mut record {
            Record::Entity { etag, .. } | Record::Line(_, etag) => etag.take(),
        };
        let line = self.names.name(record);
        match line {
            Ok(line) => Ok(Some((place, line))),
            Err(problem) => Err(RecordError::new(place, problem)),
        }
    }

    fn open(&mut self) -> Result<(), RecordError> {
        let Reader::Unread(from) = std::mem::replace(&mut self.reader, Reader::Ended) else {
            return Ok(());
        };
        let opened = recognize(from)?;
        let as_string = self.options.as_string;
        self.reader = match opened.form {
            Form::Lines => Reader::Lines(TextLines::new(opened.rest, opened.lines, as_string)),
            Form::Document => Reader::Document(Document::new(opened.rest, as_string)),
            Form::Csv { delimiter } => {
                let options = self.options.clone();
                Reader::Csv(Box::new(CsvRows::new(
                    opened.rest,
                    opened.lines,
                    delimiter,
                    options,
                )))
            }
        };
        Ok(())
    }
}

/// The next record, and where it is. An entity has a table, and its timestamp is not part of it.
///
/// An error says that the file cannot be read or is malformed, that an entity has no table, or that
/// all entities are to go into one table and the file has several. Nothing is read after an error.
impl<R: BufRead> Iterator for Records<R> {
    type Item = Result<(Place, Line), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.read();
        if !matches!(next, Ok(Some(_))) {
            self.reader = Reader::Ended;
        }
        next.transpose()
    }
}

/// The tables into which records go.
#[derive(Debug)]
struct Names {
    /// The one for all.
    given: Option<String>,
    /// The first name in the file.
    in_file: Option<String>,
}

impl Names {
    fn name(&mut self, record: Record) -> Result<Line, RecordProblem> {
        Ok(match record {
            Record::Line(Line::Table(table), _) => Line::Table(self.of(Some(table))?),
            Record::Line(Line::Entity { table, entity }, _) => Line::Entity {
                table: self.of(Some(table))?,
                entity,
            },
            Record::Line(line, _) => line,
            Record::Entity { table, entity, .. } => Line::Entity {
                table: self.of(table)?,
                entity,
            },
        })
    }

    /// The table for a record for which the file has this name.
    fn of(&mut self, in_file: Option<String>) -> Result<String, RecordProblem> {
        let Some(given) = &self.given else {
            let name = in_file.ok_or(RecordProblem::NoTable)?;
            return match TableName::new(&name) {
                Ok(_) if name.starts_with('$') => Err(RecordProblem::TableOfService(name)),
                Ok(_) => Ok(name),
                Err(error) => Err(RecordProblem::Table(error)),
            };
        };
        if let Some(name) = in_file {
            match &self.in_file {
                Some(first) if !first.eq_ignore_ascii_case(&name) => {
                    return Err(RecordProblem::SeveralTables {
                        first: first.clone(),
                        second: name,
                    });
                }
                Some(_) => {}
                None => self.in_file = Some(name),
            }
        }
        Ok(given.clone())
    }
}
