//! Entities as CSV, with the columns of Storage Explorer: the keys and the timestamp, and of each
//! property its value and its type. This module knows neither accounts nor terminals.
//!
//! ```text
//! PartitionKey,RowKey,Timestamp,Name,Name@type,Age,Age@type
//! Sales,1,2024-03-15T10:20:30.0000000Z,Ada,Edm.String,36,Edm.Int32
//! Sales,2,2024-03-15T10:20:31.0000000Z,,Edm.String,,
//! ```
//!
//! A cell is empty if the entity has no such property, or an empty string: then the type says so.
//! All columns must be known before the first row, so the entities wait in a file, as lines of
//! [`lines`](crate::lines), and are read twice.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Seek, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use csv::{Terminator, WriterBuilder};
use serde_json::{Map, Value as Json};
use tablesdk::DynamicEntity;
use tablesdk_protocol::ValueRef;
use tablesdk_protocol::wire::json::{JsonEntity, PropertyError, RawProperty, read_entity};
use tablesdk_protocol::wire::lines;

use crate::lines::entity_json;

/// The columns that each entity has, in their order.
pub(crate) const KEYS: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];
/// The end of the name of a column with types.
pub(crate) const TYPE_SUFFIX: &str = "@type";

/// How the rows are written.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Style {
    /// Rows end with CRLF, and the file begins with a byte order mark, as Storage Explorer writes
    /// it.
    pub for_windows: bool,
    /// Texts that a spreadsheet takes for formulas begin with an apostrophe. The file is for
    /// people: an import would keep the apostrophes.
    pub guarded: bool,
    /// The function that is applied to each text, such as an escape of characters that act on a
    /// terminal.
    pub escape: Option<fn(&str) -> String>,
}

impl Style {
    fn rows<W: Write>(self, mut to: W) -> io::Result<csv::Writer<W>> {
        if self.for_windows {
            to.write_all("\u{FEFF}".as_bytes())?;
        }
        let end = if self.for_windows {
            Terminator::CRLF
        } else {
            Terminator::Any(b'\n')
        };
        Ok(WriterBuilder::new().terminator(end).from_writer(to))
    }

    /// A text as a cell.
    fn text(self, text: Cow<'_, str>) -> Cow<'_, str> {
        let text = match self.escape {
            Some(escape) => escape(&text).into(),
            None => text,
        };
        if self.guarded && text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
            return format!("'{text}").into();
        }
        text
    }
}

/// Why CSV cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SheetError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line of the entities is malformed.
    #[error("the entities cannot be read again: {0}")]
    Line(String),
    /// A property has the name of a column with types.
    #[error("the property {0:?} has the name of a column with types: use another form than CSV")]
    Name(String),
    /// The entities have too many properties.
    #[error(
        "the entities have more than {COLUMNS_MAX} properties, each of which would be a column: use another form than CSV"
    )]
    TooManyColumns,
}

/// Writes the entities of lines as CSV. The lines are read twice, from their start. The properties
/// in `first` are the first columns, even if no entity has them.
///
/// ```
/// use tablesdk_cli::sheet::{Style, write_sheet};
///
/// let lines = r#"{"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Age":36}}"#;
/// let mut csv = Vec::new();
/// write_sheet(&mut std::io::Cursor::new(lines), &[], &mut csv, Style::default())?;
/// let expected = "PartitionKey,RowKey,Timestamp,Age,Age@type\nSales,1,,36,Edm.Int32\n";
/// assert_eq!(str::from_utf8(&csv)?, expected);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When a file cannot be read or written, or the properties cannot be columns.
pub fn write_sheet(
    lines: &mut (impl Read + Seek),
    first: &[String],
    to: impl Write,
    style: Style,
) -> Result<(), SheetError> {
    let mut columns = Columns::default();
    for name in first {
        columns.add(name)?;
    }
    each(lines, |entity| {
        let mut names = entity.properties().map(RawProperty::name);
        names.try_for_each(|name| columns.add(name))
    })?;
    let mut rows = style.rows(to)?;
    rows.write_record(columns.header(style)).map_err(io_error)?;
    each(lines, |entity| {
        let row = columns.row(entity, style)?;
        let cells = row.iter().map(|cell| cell.as_bytes());
        Ok(rows.write_record(cells).map_err(io_error)?)
    })?;
    Ok(rows.flush()?)
}

/// Writes JSON objects that are no entities as CSV, with a column for each name of a member.
/// Without objects, there are no columns.
///
/// # Errors
///
/// When they cannot be written, or are no objects.
pub fn write_objects(
    objects: impl IntoIterator<Item = Vec<u8>>,
    to: impl Write,
    style: Style,
) -> io::Result<()> {
    let objects = objects.into_iter();
    let objects = objects.map(|object| serde_json::from_slice::<Map<String, Json>>(&object));
    let objects: Vec<_> = objects.collect::<Result<_, _>>()?;
    let mut names: Vec<&str> = Vec::new();
    let mut known = HashSet::new();
    for object in &objects {
        let of_object = object.keys().map(String::as_str);
        names.extend(of_object.filter(|name| known.insert(*name)));
    }
    if names.is_empty() {
        return Ok(());
    }
    let mut rows = style.rows(to)?;
    rows.write_record(&names).map_err(io_error)?;
    for object in &objects {
        let cells = names.iter().map(|name| match object.get(*name) {
            None | Some(Json::Null) => Cow::default(),
            Some(Json::String(value)) => style.text(value.into()),
            Some(value @ (Json::Array(_) | Json::Object(_))) => {
                style.text(value.to_string().into())
            }
            Some(value) => value.to_string().into(),
        });
        let cells: Vec<Cow<'_, str>> = cells.collect();
        let cells = cells.iter().map(|cell| cell.as_bytes());
        rows.write_record(cells).map_err(io_error)?;
    }
    rows.flush()
}

/// Calls a function with each entity of the lines.
fn each(
    lines: &mut (impl Read + Seek),
    mut take: impl FnMut(&JsonEntity<'_>) -> Result<(), SheetError>,
) -> Result<(), SheetError> {
    lines.rewind()?;
    let mut lines = BufReader::with_capacity(BUFFER_BYTES, lines);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        let malformed = |error: &dyn ToString| SheetError::Line(error.to_string());
        let read = lines::Line::read(line.trim_ascii_end()).map_err(|error| malformed(&error))?;
        if let lines::Line::Entity { entity, .. } = read {
            take(&read_entity(&entity).map_err(|error| malformed(&error))?)?;
        }
        line.clear();
    }
    Ok(())
}

/// The properties of all entities, in the order in which they are seen first.
#[derive(Debug, Default)]
struct Columns {
    names: Vec<String>,
    known: HashSet<String>,
}

impl Columns {
    fn add(&mut self, name: &str) -> Result<(), SheetError> {
        if self.known.contains(name) || KEYS.contains(&name) {
            return Ok(());
        }
        if name.ends_with(TYPE_SUFFIX) {
            return Err(SheetError::Name(name.to_owned()));
        }
        if self.names.len() == COLUMNS_MAX {
            return Err(SheetError::TooManyColumns);
        }
        self.names.push(name.to_owned());
        self.known.insert(name.to_owned());
        Ok(())
    }

    fn header(&self, style: Style) -> Vec<String> {
        let keys = KEYS.map(str::to_owned);
        let names = self.names.iter();
        let pairs = names.flat_map(|name| [name.clone(), format!("{name}{TYPE_SUFFIX}")]);
        let cells = keys.into_iter().chain(pairs);
        cells
            .map(|cell| style.text(cell.into()).into_owned())
            .collect()
    }

    fn row<'e>(
        &self,
        entity: &'e JsonEntity<'_>,
        style: Style,
    ) -> Result<Vec<Cow<'e, str>>, SheetError> {
        let malformed = |error: PropertyError| SheetError::Line(error.to_string());
        let mut cells = Vec::with_capacity(KEYS.len() + 2 * self.names.len());
        for key in KEYS {
            let key = entity.text(key).map_err(malformed)?.unwrap_or_default();
            cells.push(style.text(key.into()));
        }
        for name in &self.names {
            let value = entity.property(name);
            let value = value.map(|it| it.to_value_ref().map_err(malformed));
            let [value, edm_type] = match value.transpose()?.flatten() {
                None => [Cow::default(), Cow::default()],
                Some(value) => {
                    let edm_type = value.edm_type().as_str();
                    [cell(value, style), edm_type.into()]
                }
            };
            cells.extend([value, edm_type]);
        }
        Ok(cells)
    }
}

fn cell(value: ValueRef<'_>, style: Style) -> Cow<'_, str> {
    match value {
        ValueRef::Boolean(value) => value.to_string().into(),
        ValueRef::Double(value) if value.is_finite() => format!("{value:?}").into(),
        ValueRef::Int32(value) => value.to_string().into(),
        ValueRef::Int64(value) => value.to_string().into(),
        ValueRef::DateTime(value) => value.to_string().into(),
        ValueRef::Guid(value) => value.to_string().into(),
        ValueRef::Double(value) if value.is_nan() => "NaN".into(),
        ValueRef::Double(value) if value > 0.0 => "Infinity".into(),
        ValueRef::Double(_) => style.text("-Infinity".into()),
        ValueRef::Binary(bytes) => style.text(STANDARD.encode(bytes).into()),
        ValueRef::String(value) => style.text(value),
    }
}

/// Entities that wait in a temporary file until all of their properties are known.
#[derive(Debug)]
pub struct Spool(BufWriter<File>);

impl Spool {
    /// An empty one.
    ///
    /// # Errors
    ///
    /// When no temporary file can be created.
    pub fn new() -> io::Result<Self> {
        let file = tempfile::tempfile()?;
        Ok(Self(BufWriter::with_capacity(BUFFER_BYTES, file)))
    }

    /// Adds an entity.
    ///
    /// # Errors
    ///
    /// When the temporary file cannot be written.
    pub fn add(&mut self, entity: &DynamicEntity) -> io::Result<()> {
        let mut line = Vec::new();
        let entity = lines::Line::Entity {
            table: "Spooled".into(),
            entity: entity_json(entity).into(),
        };
        entity.write(&mut line);
        self.write_all(&line)
    }

    /// Writes all entities as CSV.
    ///
    /// # Errors
    ///
    /// The errors of [`write_sheet`].
    pub fn write_sheet(
        self,
        first: &[String],
        to: impl Write,
        style: Style,
    ) -> Result<(), SheetError> {
        let file = self.0.into_inner();
        let mut file = file.map_err(io::IntoInnerError::into_error)?;
        write_sheet(&mut file, first, to, style)
    }
}

/// Adds lines of [`lines`](crate::lines).
impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        // The rows are as long as the header, so there is no other.
        other => io::Error::other(format!("{other:?}")),
    }
}

const COLUMNS_MAX: usize = 10_000;
const BUFFER_BYTES: usize = 1 << 16;
