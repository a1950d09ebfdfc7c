//! How entities are printed: as a table that fits the terminal, as lines of JSON, or as CSV.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, presets};
use console::Term;
use tablesdk::{DynamicEntity, Stored, Value};
use tablesdk_cli::lines::stored_json;
use tablesdk_cli::sheet::{SheetError, Spool, Style, write_objects};

use crate::error::AnyError;
use crate::escape::{harmless, harmless_json, shortened};

/// The form of what a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Columns, which a terminal cuts to its width
    Table,
    /// A line of JSON for each entity, with the types of its properties
    Json,
    /// CSV with the columns of Storage Explorer, of each property its value and its type
    Csv,
}

impl Format {
    /// The form for standard output if the arguments name none: people read columns, and programs
    /// read lines.
    pub(crate) fn of_standard_output() -> Self {
        if io::stdout().is_terminal() {
            Self::Table
        } else {
            Self::Json
        }
    }
}

/// The treatment of values that do not fit into a line of a terminal.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    /// They end with an ellipsis.
    Long,
    /// They take several lines.
    Nothing,
}

/// Prints on standard output, page by page.
pub(crate) struct Printer {
    format: Format,
    /// True if a terminal shows the output, which must not act on it.
    is_terminal: bool,
    /// The cells of CSV are safe for a spreadsheet.
    is_guarded: bool,
}

impl Printer {
    pub(crate) fn new(format: Format, is_guarded: bool) -> Self {
        Self {
            format,
            is_terminal: io::stdout().is_terminal(),
            is_guarded,
        }
    }

    /// Begins to print entities: their columns are these properties, or all that they have.
    pub(crate) fn entities<'s>(&self, selected: &'s [String]) -> io::Result<Entities<'_, 's>> {
        let spool = (self.format == Format::Csv).then(Spool::new);
        Ok(Entities {
            printer: self,
            selected,
            names: Names::default(),
            spool: spool.transpose()?,
        })
    }

    /// Prints one entity: a line of a table for each of its properties.
    pub(crate) fn entity(&self, entity: &Stored<DynamicEntity>) -> Result<(), AnyError> {
        if self.format != Format::Table {
            let mut entities = self.entities(&[])?;
            entities.page(std::slice::from_ref(entity))?;
            return entities.finish();
        }
        let text = |name: &str, text: String| vec![name.to_owned(), "Edm.String".to_owned(), text];
        let mut rows = vec![
            text("PartitionKey", harmless(entity.partition_key())),
            text("RowKey", harmless(entity.row_key())),
        ];
        let properties = entity.properties().iter();
        rows.extend(properties.map(|(name, value)| {
            let edm_type = value.edm_type().as_str().to_owned();
            vec![harmless(name), edm_type, self.beginning(cell(value))]
        }));
        let timestamp = timestamp(entity);
        let edm_type = "Edm.DateTime".to_owned();
        rows.push(vec!["Timestamp".to_owned(), edm_type, timestamp]);
        let etag = harmless(entity.etag().as_str());
        rows.push(vec!["ETag".to_owned(), String::new(), etag]);
        Ok(self.table(["Property", "Type", "Value"], rows, &[], Cut::Nothing)?)
    }

    /// The beginning of a value that would fill a terminal.
    fn beginning(&self, value: String) -> String {
        let count = value.chars().count();
        if !self.is_terminal || count <= VALUE_MAX {
            return value;
        }
        let shown = shortened(&value, VALUE_MAX);
        format!("{shown} ({count} characters; --output json prints all)")
    }

    /// Prints what is no entity: lines of JSON, or the rows of a table, with numbers in these
    /// columns.
    pub(crate) fn rows(
        &self,
        lines: impl IntoIterator<Item = Vec<u8>>,
        header: impl IntoIterator<Item = &'static str>,
        rows: impl IntoIterator<Item = Vec<String>>,
        numbers: &[usize],
    ) -> io::Result<()> {
        match self.format {
            Format::Json => self.lines(lines),
            Format::Csv => write_objects(lines, io::stdout().lock(), self.style()),
            Format::Table => self.table(header, rows, numbers, Cut::Long),
        }
    }

    /// Prints the names of tables; `lines` in JSON, and `folded` to people.
    pub(crate) fn names<'n>(
        &self,
        lines: impl IntoIterator<Item = Vec<u8>>,
        folded: impl IntoIterator<Item = (&'n str, String)>,
    ) -> io::Result<()> {
        if self.format != Format::Table {
            return self.rows(lines, [], [], &[]);
        }
        let mut out = io::stdout().lock();
        for (name, note) in folded {
            if self.is_terminal {
                writeln!(out, "{}{}", harmless(name), harmless(&note))?;
            } else {
                writeln!(out, "{name}{note}")?;
            }
        }
        out.flush()
    }

    fn style(&self) -> Style {
        let mut style = Style::default();
        style.guarded = self.is_guarded;
        style.for_windows = self.is_guarded;
        style.escape = self.is_terminal.then_some(harmless);
        style
    }

    fn lines(&self, lines: impl IntoIterator<Item = Vec<u8>>) -> io::Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        for line in lines {
            if self.is_terminal {
                // JSON is UTF-8, and what is escaped stands in its strings.
                let text = String::from_utf8_lossy(&line);
                out.write_all(harmless_json(&text).as_bytes())?;
            } else {
                out.write_all(&line)?;
            }
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    fn table<'h>(
        &self,
        header: impl IntoIterator<Item = &'h str>,
        rows: impl IntoIterator<Item = Vec<String>>,
        numbers: &[usize],
        cut: Cut,
    ) -> io::Result<()> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        if self.is_terminal {
            let size = Term::stdout().size_checked();
            table.set_width(size.map_or(COLUMNS, |(_, columns)| columns));
            table.set_content_arrangement(ContentArrangement::Dynamic);
        }
        let mut names = Row::from(header.into_iter().map(harmless).collect::<Vec<_>>());
        names.max_height(1);
        table.set_header(names);
        for cells in rows {
            let mut row = Row::from(cells);
            if cut == Cut::Long {
                row.max_height(1);
            }
            table.add_row(row);
        }
        let widths = table.column_max_content_widths();
        let columns = table.column_iter_mut().zip(widths).enumerate();
        for (index, (column, width)) in columns {
            column.set_padding((0, 2));
            // A part of a number would be another number.
            let is_number = numbers.contains(&index);
            if is_number {
                column.set_cell_alignment(CellAlignment::Right);
            }
            // The first two columns say what a row is: keys are copied from here.
            if is_number || index < 2 && width <= NAME_WIDTH {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let mut out = io::BufWriter::new(io::stdout().lock());
        for line in table.lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        out.flush()
    }
}

/// Prints the entities of a query.
pub(crate) struct Entities<'p, 's> {
    printer: &'p Printer,
    selected: &'s [String],
    names: Names,
    /// The entities that wait until all columns are known.
    spool: Option<Spool>,
}

impl Entities<'_, '_> {
    /// Prints the entities of a page, which are one table.
    pub(crate) fn page(&mut self, entities: &[Stored<DynamicEntity>]) -> io::Result<()> {
        if let Some(spool) = &mut self.spool {
            return entities.iter().try_for_each(|entity| spool.add(entity));
        }
        match self.printer.format {
            Format::Table if entities.is_empty() => Ok(()),
            Format::Table => {
                let names = match self.selected {
                    [] => self.names.of(entities),
                    names => names,
                };
                let rows = entities.iter().map(|entity| row(entity, names));
                let header = ["PartitionKey", "RowKey"].into_iter();
                let header = header.chain(names.iter().map(String::as_str));
                let header = header.chain(["Timestamp"]);
                let numbers = numbers(entities, names);
                self.printer.table(header, rows, &numbers, Cut::Long)
            }
            _ => self.printer.lines(entities.iter().map(stored_json)),
        }
    }

    /// Prints what could not be printed before.
    pub(crate) fn finish(self) -> Result<(), AnyError> {
        let Some(spool) = self.spool else {
            return Ok(());
        };
        let out = io::stdout().lock();
        match spool.write_sheet(self.selected, out, self.printer.style()) {
            // A reader that has ended is recognized by it.
            Err(SheetError::Io(error)) => Err(error.into()),
            written => Ok(written?),
        }
    }
}

/// The properties that entities have, in the order in which they are seen first. Those of an
/// earlier page stay in their columns.
#[derive(Default)]
pub(crate) struct Names {
    names: Vec<String>,
    seen: HashSet<String>,
}

impl Names {
    pub(crate) fn of(&mut self, entities: &[Stored<DynamicEntity>]) -> &[String] {
        for entity in entities {
            for (name, _) in entity.properties().iter() {
                if !self.seen.contains(name) {
                    self.seen.insert(name.to_owned());
                    self.names.push(name.to_owned());
                }
            }
        }
        &self.names
    }
}

/// The columns with numbers alone.
fn numbers(entities: &[Stored<DynamicEntity>], names: &[String]) -> Vec<usize> {
    let is_number =
        |value: &Value| matches!(value, Value::Double(_) | Value::Int32(_) | Value::Int64(_));
    let columns = names.iter().enumerate().filter(|(_, name)| {
        let mut values = entities.iter().filter_map(|it| it.properties().get(name));
        values.all(is_number)
    });
    // The keys are before them.
    columns.map(|(index, _)| index + 2).collect()
}

fn row(entity: &Stored<DynamicEntity>, names: &[String]) -> Vec<String> {
    let mut cells = vec![harmless(entity.partition_key()), harmless(entity.row_key())];
    cells.extend(names.iter().map(|name| {
        let value = entity.properties().get(name);
        value.map(cell).unwrap_or_default()
    }));
    cells.push(timestamp(entity));
    cells
}

/// The time of the last write, which each entity of the service has.
fn timestamp(entity: &Stored<DynamicEntity>) -> String {
    let timestamp = entity.timestamp();
    timestamp.map(|it| it.to_string()).unwrap_or_default()
}

/// A value for people. The empty string differs from a property that is absent.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Binary(bytes) => {
            let mut text = format!("{} bytes:", bytes.len());
            let shown = bytes.iter().take(HEX_MAX);
            text.push(' ');
            for byte in shown {
                // Writing to a string does not fail.
                let _ = write!(text, "{byte:02x}");
            }
            if bytes.len() > HEX_MAX {
                text.push('…');
            }
            text
        }
        Value::Boolean(value) => value.to_string(),
        Value::DateTime(value) => value.to_string(),
        Value::Double(value) => format!("{value:?}"),
        Value::Guid(value) => value.to_string(),
        Value::Int32(value) => value.to_string(),
        Value::Int64(value) => value.to_string(),
        Value::String(value) if value.is_empty() => "\"\"".to_owned(),
        Value::String(value) => harmless(value),
    }
}

/// How many bytes of a value are shown.
const HEX_MAX: usize = 16;
/// How many characters of a value `get` shows on a terminal.
const VALUE_MAX: usize = 2000;
/// Keys up to this width are shown whole.
const NAME_WIDTH: u16 = 32;
/// The width of a terminal that does not say it.
const COLUMNS: u16 = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_shows_the_value_exactly() {
        for (value, expected) in [
            (Value::Binary(vec![0, 255]), "2 bytes: 00ff"),
            (
                Value::Binary(vec![7; 17]),
                "17 bytes: 07070707070707070707070707070707…",
            ),
            (Value::Boolean(true), "true"),
            (Value::Double(1.0), "1.0"),
            (Value::Int64(i64::MIN), "-9223372036854775808"),
            (Value::String(String::new()), "\"\""),
        ] {
            assert_eq!(cell(&value), expected);
        }
    }
}
