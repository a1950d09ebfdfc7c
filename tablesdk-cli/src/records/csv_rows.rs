//! Rows of CSV, with types as [`sheet`](crate::sheet) and Storage Explorer write them, or without.
//!
//! A row becomes the JSON of the service, so that its values are read and refused as all others
//! are.

use std::collections::HashMap;
use std::io::{self, BufRead, Cursor};

use csv::{ReaderBuilder, StringRecord};
use tablesdk::{DynamicEntity, EdmType, Guid, Timestamp};
use tablesdk_protocol::wire::json::read_entity;

use super::csv_text::CsvText;
use super::entity::{Rules, entity_of};
use super::error::{Place, RecordError, RecordProblem};
use super::typed::{Object, annotation};
use super::{Empty, ReadOptions, Record, Types};
use crate::sheet::{KEYS, TYPE_SUFFIX};

/// Reads one row after the other.
#[derive(Debug)]
pub(super) struct CsvRows<R> {
    text: CsvText<R>,
    /// Parses one row at a time.
    cells: csv::Reader<Cursor<Vec<u8>>>,
    /// Known after the first row.
    columns: Option<Columns>,
    row: StringRecord,
    options: ReadOptions,
    guessed: u64,
}

/// The columns that matter.
#[derive(Debug)]
struct Columns {
    count: usize,
    partition_key: usize,
    row_key: usize,
    properties: Vec<Column>,
}

/// The column of a property.
#[derive(Debug)]
struct Column {
    name: String,
    values: usize,
    /// The column with the types.
    types: Option<usize>,
    /// The last type in it: some files have types in their first row alone.
    last_type: Option<String>,
}

impl<R: BufRead> CsvRows<R> {
    /// Reads rows after this number of blank ones.
    pub(super) fn new(from: R, blank: u64, delimiter: u8, options: ReadOptions) -> Self {
        let cells = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(Cursor::default());
        Self {
            text: CsvText::new(from, blank, delimiter),
            cells,
            columns: None,
            row: StringRecord::new(),
            options,
            guessed: 0,
        }
    }

    /// How many values had no type, and got one by their text.
    pub(super) const fn guessed(&self) -> u64 {
        self.guessed
    }

    pub(super) fn next(&mut self) -> Result<Option<(Place, Record)>, RecordError> {
        while let Some(number) = self.next_text()? {
            let place = Place::Row(number);
            let problem = |problem| RecordError::new(place, problem);
            self.read().map_err(problem)?;
            let Some(columns) = &mut self.columns else {
                self.columns = Some(Columns::of(&self.row).map_err(problem)?);
                continue;
            };
            // Spreadsheets write empty rows at the end.
            if self.row.iter().all(str::is_empty) {
                continue;
            }
            let entity = columns.entity(&self.row, &self.options, &mut self.guessed);
            let entity = entity.map_err(problem)?;
            return Ok(Some((
                place,
                Record::Entity {
                    table: None,
                    entity,
                    etag: None,
                },
            )));
        }
        Ok(None)
    }

    /// Gives the next row to the parser. Returns its number.
    fn next_text(&mut self) -> Result<Option<u64>, RecordError> {
        let mut row = std::mem::take(self.cells.get_mut()).into_inner();
        let number = self.text.next(&mut row)?;
        *self.cells.get_mut() = Cursor::new(row);
        Ok(number)
    }

    /// Parses the row.
    fn read(&mut self) -> Result<(), RecordProblem> {
        let read = self.cells.read_record(&mut self.row);
        read.map(drop).map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => RecordProblem::Read(error),
            csv::ErrorKind::Utf8 { .. } => RecordProblem::NoUtf8,
            other => RecordProblem::Read(io::Error::other(format!("{other:?}"))),
        })
    }
}

impl Columns {
    fn of(header: &StringRecord) -> Result<Self, RecordProblem> {
        let mut places = HashMap::new();
        for (index, name) in header.iter().enumerate() {
            // A spreadsheet may add columns without a name.
            if !name.is_empty() && places.insert(name, index).is_some() {
                return Err(RecordProblem::ColumnTwice(name.to_owned()));
            }
        }
        let key = |name| places.get(name).copied();
        let key = |name| key(name).ok_or(RecordProblem::NoColumn(name));
        let types = |name: &str| places.get(&*format!("{name}{TYPE_SUFFIX}")).copied();
        let is_of_missing = |name: &&str| {
            let values = name.strip_suffix(TYPE_SUFFIX);
            values.is_some_and(|values| !places.contains_key(values))
        };
        if let Some(name) = header.iter().find(is_of_missing) {
            return Err(RecordProblem::NoColumnOfTypes(name.to_owned()));
        }
        let is_property = |name: &str| !KEYS.contains(&name) && !name.ends_with(TYPE_SUFFIX);
        let mut properties: Vec<_> = places
            .iter()
            .filter(|(name, _)| is_property(name))
            .map(|(name, values)| Column {
                name: (*name).to_owned(),
                values: *values,
                types: types(name),
                last_type: None,
            })
            .collect();
        properties.sort_by_key(|column| column.values);
        Ok(Self {
            count: header.len(),
            partition_key: key("PartitionKey")?,
            row_key: key("RowKey")?,
            properties,
        })
    }

    fn entity(
        &mut self,
        row: &StringRecord,
        options: &ReadOptions,
        guessed: &mut u64,
    ) -> Result<DynamicEntity, RecordProblem> {
        if row.len() != self.count {
            return Err(RecordProblem::RowLength {
                cells: row.len(),
                columns: self.count,
            });
        }
        let cell = |index| row.get(index).unwrap_or_default();
        let (partition, row_key) = (cell(self.partition_key), cell(self.row_key));
        let mut json = Object::default();
        json.member("PartitionKey", partition);
        json.member("RowKey", row_key);
        for column in &mut self.properties {
            let text = cell(column.values);
            if let Some(edm_type) = column.edm_type(text, row, options, guessed) {
                json.member(&annotation(&column.name), &edm_type);
                json.member(&column.name, text);
            }
        }
        let json = json.finish();
        let json = read_entity(&json).map_err(RecordProblem::Json)?;
        let entity = entity_of(&json, Rules::of_service(options.as_string));
        entity.map_err(|error| RecordProblem::Entity {
            key: Some((partition.to_owned(), row_key.to_owned())),
            error,
        })
    }
}

impl Column {
    /// The type of a value in a row. Without one, the property is absent.
    fn edm_type(
        &mut self,
        text: &str,
        row: &StringRecord,
        options: &ReadOptions,
        guessed: &mut u64,
    ) -> Option<String> {
        let own = self.types.and_then(|index| row.get(index));
        let own = own.filter(|own| !own.is_empty()).map(full_name);
        if own.is_some() {
            self.last_type.clone_from(&own);
        }
        if text.is_empty() {
            return self.type_of_empty(own, options.empty);
        }
        let known = own.or_else(|| self.last_type.clone());
        known.or_else(|| {
            let found = match options.types {
                Types::Guess => {
                    *guessed += 1;
                    guess(text)
                }
                Types::Strings => EdmType::String,
            };
            Some(found.as_str().to_owned())
        })
    }

    fn type_of_empty(&self, own: Option<String>, empty: Option<Empty>) -> Option<String> {
        let string = EdmType::String.as_str();
        // No bytes have no text, either.
        let may_be_empty = |own: &String| own == string || own == EdmType::Binary.as_str();
        match (empty, own) {
            (Some(Empty::Absent), _) => None,
            (Some(Empty::Strings), None) => {
                let known = self.last_type.as_deref().unwrap_or(string);
                (known == string).then(|| string.to_owned())
            }
            (_, own) => own.filter(may_be_empty),
        }
    }
}

/// The name of a type, which may stand without its namespace.
fn full_name(name: &str) -> String {
    match name.strip_prefix("Edm.") {
        Some(_) => name.to_owned(),
        None => format!("Edm.{name}"),
    }
}

/// The type that a text without a type seems to have. Texts whose digits another type would change
/// are strings.
fn guess(text: &str) -> EdmType {
    let is_number = |byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return EdmType::Boolean;
    }
    if text.bytes().all(is_number) {
        return number(text).unwrap_or(EdmType::String);
    }
    if text.len() == GUID_LENGTH && text.parse::<Guid>().is_ok() {
        return EdmType::Guid;
    }
    if text.contains('T') && text.ends_with('Z') && text.parse::<Timestamp>().is_ok() {
        return EdmType::DateTime;
    }
    EdmType::String
}

/// The type of a number in the grammar of JSON, if its value gives the text back: no digit, zero or
/// exponent is lost.
fn number(text: &str) -> Option<EdmType> {
    let number: f64 = serde_json::from_str(text).ok()?;
    if text.contains(['.', 'e', 'E']) {
        let is_kept = text == number.to_string() || text == format!("{number:?}");
        return is_kept.then_some(EdmType::Double);
    }
    let integer: i64 = text.parse().ok()?;
    let is_narrow = i32::try_from(integer).is_ok();
    let edm_type = if is_narrow {
        EdmType::Int32
    } else {
        EdmType::Int64
    };
    (text != "-0").then_some(edm_type)
}

const GUID_LENGTH: usize = 36;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_guessed_only_where_no_digit_is_lost() {
        for (texts, edm_type) in [
            (&["true", "FALSE"][..], EdmType::Boolean),
            (&["0", "-1", "2147483647", "-2147483648"], EdmType::Int32),
            (
                &["2147483648", "-2147483649", "9223372036854775807"],
                EdmType::Int64,
            ),
            (
                &[
                    "0.5",
                    "-1.0",
                    "3.141592653589793",
                    "0.00001",
                    "1e-7",
                    "1e16",
                ],
                EdmType::Double,
            ),
            (&["c9da6455-213d-42c9-9a79-3e9149a57833"], EdmType::Guid),
            (
                &["2024-02-29T12:34:56Z", "2024-02-29T12:34:56.1234567Z"],
                EdmType::DateTime,
            ),
            (
                &[
                    "007",
                    "+5",
                    "-0",
                    "5.",
                    ".5",
                    "1e999",
                    "1.10",
                    "-1e3",
                    "1E7",
                    "1E-7",
                    "3.14159265358979323846",
                    "12345678901234567890.5",
                    "0.1e-400",
                    "9223372036854775808",
                    " 5",
                    "NaN",
                    "-",
                    "e",
                    "2024-02-29",
                    "2024-02-30T12:34:56Z",
                    "yes",
                    "c9da6455213d42c99a793e9149a57833",
                ],
                EdmType::String,
            ),
        ] {
            for text in texts {
                assert_eq!(guess(text), edm_type, "{text}");
            }
        }
    }
}
