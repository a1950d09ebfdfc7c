//! Names of tables and of properties: parsed once, valid from then on.
//!
//! See
//! <https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model#table-names>.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

use crate::types::ShortString;
use crate::types::limits::{PROPERTY_NAME_UNITS_MAX, TABLE_NAME_LENGTH_MAX, TABLE_NAME_LENGTH_MIN};

/// The name of a table: 3 to 63 ASCII letters and digits, a letter first, not `tables`; or one of
/// the names that the service gives the tables of its metrics, such as
/// `$MetricsHourPrimaryTransactionsTable`.
///
/// Keeps its case, but compares without it, as the service does.
///
/// ```
/// use tablesdk_protocol::TableName;
///
/// let name: TableName = "Employees".parse()?;
/// assert_eq!(name, "employees".parse()?);
/// assert_eq!(name.as_str(), "Employees");
/// # Ok::<(), tablesdk_protocol::TableNameError>(())
/// ```
#[derive(Clone)]
pub struct TableName(ShortString);

impl TableName {
    /// Checks the string against the service's rules for table names.
    ///
    /// # Errors
    ///
    /// When a rule is broken. The service would return `OutOfRangeInput` for the length and
    /// `InvalidResourceName` for the rest.
    pub fn new(text: impl Into<String>) -> Result<Self, TableNameError> {
        let text = text.into();
        match Self::problem_of(&text) {
            Some(problem) => Err(TableNameError { text, problem }),
            None => Ok(Self(text.into())),
        }
    }

    /// The name in the case it was given.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The name in the case that tables are compared and ordered by.
    pub fn to_lowercase(&self) -> String {
        self.as_str().to_ascii_lowercase()
    }

    /// Returns true for a table of the service's own metrics: it can be read, but neither created
    /// nor changed.
    pub fn is_system(&self) -> bool {
        is_metrics(self.as_str())
    }

    fn problem_of(text: &str) -> Option<TableNameProblem> {
        // Nearly every name.
        let bytes = text.as_bytes();
        if (TABLE_NAME_LENGTH_MIN..=TABLE_NAME_LENGTH_MAX).contains(&bytes.len())
            && bytes.first().is_some_and(u8::is_ascii_alphabetic)
            && bytes.iter().all(u8::is_ascii_alphanumeric)
            && !text.eq_ignore_ascii_case("tables")
        {
            return None;
        }
        if is_metrics(text) {
            return None;
        }
        let length = text.chars().count();
        if !(TABLE_NAME_LENGTH_MIN..=TABLE_NAME_LENGTH_MAX).contains(&length) {
            return Some(TableNameProblem::Length { length });
        }
        if let Some(character) = text.chars().find(|c| !c.is_ascii_alphanumeric()) {
            return Some(TableNameProblem::Character { character });
        }
        if let Some(digit) = text.chars().next().filter(char::is_ascii_digit) {
            return Some(TableNameProblem::LeadingDigit { digit });
        }
        text.eq_ignore_ascii_case("tables")
            .then_some(TableNameProblem::Reserved)
    }
}

/// `$MetricsCapacityBlob`, one of those for each period, location and service, or one of the
/// classic ones for each service.
fn is_metrics(text: &str) -> bool {
    let Some((start, name)) = text.split_at_checked(METRICS.len()) else {
        return false;
    };
    if !start.eq_ignore_ascii_case(METRICS) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let parts = name.split_once("transactions");
    name == "capacityblob"
        || parts.is_some_and(|(start, service)| {
            let is_start = matches!(
                start,
                "" | "hourprimary" | "hoursecondary" | "minuteprimary" | "minutesecondary"
            );
            // Those of files are younger than the classic tables.
            let is_file = service == "file" && !start.is_empty();
            is_start && (is_file || matches!(service, "blob" | "queue" | "table"))
        })
}

/// The prefix of the names of metrics tables.
const METRICS: &str = "$Metrics";

impl PartialEq for TableName {
    fn eq(&self, other: &Self) -> bool {
        let (name, other) = (self.0.as_bytes(), other.0.as_bytes());
        name.eq_ignore_ascii_case(other)
    }
}

impl Eq for TableName {}

impl Hash for TableName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Nearly every request looks up a table by its name.
        let mut bytes = [0; TABLE_NAME_LENGTH_MAX];
        let name = self.0.as_bytes();
        match bytes.get_mut(..name.len()) {
            Some(bytes) => {
                bytes.copy_from_slice(name);
                bytes.make_ascii_lowercase();
                bytes.hash(state);
            }
            None => self.to_lowercase().as_bytes().hash(state),
        }
    }
}

impl FromStr for TableName {
    type Err = TableNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A string that cannot be the name of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("table name {text:?}: {problem}")]
pub struct TableNameError {
    text: String,
    problem: TableNameProblem,
}

impl TableNameError {
    /// The refused text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The rule it breaks.
    pub const fn problem(&self) -> TableNameProblem {
        self.problem
    }
}

/// The rule that a refused table name breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableNameProblem {
    /// A character that is neither an ASCII letter nor a digit.
    #[error("the character {character:?} is neither an ASCII letter nor a digit")]
    Character {
        /// The first such character.
        character: char,
    },
    /// A digit in front.
    #[error("it starts with the digit {digit}, not with a letter")]
    LeadingDigit {
        /// The digit in front.
        digit: char,
    },
    /// Too short or too long.
    #[error(
        "its length of {length} is not from {TABLE_NAME_LENGTH_MIN} to {TABLE_NAME_LENGTH_MAX}"
    )]
    Length {
        /// The length in characters.
        length: usize,
    },
    /// The name `tables`, in any case.
    #[error("it is reserved by the service")]
    Reserved,
}

/// Checks the name of a property: an identifier of C# with at most 255 UTF-16 units. It starts with
/// a letter of any script or `_`. Combining marks, decimal digits, connectors such as `_`, and
/// invisible format characters may follow.
///
/// See
/// <https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model#property-names>.
///
/// # Errors
///
/// When a rule is broken. The service would return `PropertyNameTooLong` or `PropertyNameInvalid`.
pub fn check_property_name(name: &str) -> Result<(), PropertyNameProblem> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if let Some(first) = name.bytes().next()
        && !first.is_ascii_digit()
        && name.len() <= PROPERTY_NAME_UNITS_MAX
        && name.bytes().all(is_plain)
    {
        return Ok(());
    }
    let units = name.encode_utf16().count();
    if units > PROPERTY_NAME_UNITS_MAX {
        return Err(PropertyNameProblem::TooLong { units });
    }
    check_property_characters(name)
}

/// Checks the characters of the name of a property. Cosmos DB does not limit their number.
pub(crate) fn check_property_characters(name: &str) -> Result<(), PropertyNameProblem> {
    let mut characters = name.chars();
    let first = characters.next().ok_or(PropertyNameProblem::Empty)?;
    if !starts_property_name(first) {
        return Err(PropertyNameProblem::Character { character: first });
    }
    match characters.find(|character| !continues_property_name(*character)) {
        Some(character) => Err(PropertyNameProblem::Character { character }),
        None => Ok(()),
    }
}

/// Returns true if the name of a property may start with this character.
pub(crate) fn starts_property_name(character: char) -> bool {
    character == '_'
        || character.is_ascii_alphabetic()
        || character.general_category_group() == GeneralCategoryGroup::Letter
        || character.general_category() == GeneralCategory::LetterNumber
}

/// Returns true if the name of a property may contain this character after the first.
pub(crate) fn continues_property_name(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || starts_property_name(character)
        || matches!(
            character.general_category(),
            GeneralCategory::NonspacingMark
                | GeneralCategory::SpacingMark
                | GeneralCategory::DecimalNumber
                | GeneralCategory::ConnectorPunctuation
                | GeneralCategory::Format
        )
}

/// The rule that a refused property name breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PropertyNameProblem {
    /// A character that a property name may not have at that position.
    #[error("the character {character:?} cannot stand there")]
    Character {
        /// The first such character.
        character: char,
    },
    /// No character at all.
    #[error("it is empty")]
    Empty,
    /// More than 255 UTF-16 units.
    #[error(
        "{units} UTF-16 units are more than the {PROPERTY_NAME_UNITS_MAX} that a property name may have"
    )]
    TooLong {
        /// The length in UTF-16 units.
        units: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names_follow_the_rules_of_the_service() {
        for name in ["abc", "People2", "a23", &"x".repeat(63)] {
            assert!(TableName::new(name).is_ok(), "{name}");
        }
        for (name, problem) in [
            ("", TableNameProblem::Length { length: 0 }),
            ("ab", TableNameProblem::Length { length: 2 }),
            (&*"x".repeat(64), TableNameProblem::Length { length: 64 }),
            ("a-b-c", TableNameProblem::Character { character: '-' }),
            ("tablé", TableNameProblem::Character { character: 'é' }),
            ("1abc", TableNameProblem::LeadingDigit { digit: '1' }),
            ("Tables", TableNameProblem::Reserved),
        ] {
            assert_eq!(
                TableName::new(name).unwrap_err().problem(),
                problem,
                "{name}"
            );
        }
    }

    #[test]
    fn the_tables_of_metrics_have_names_of_their_own() {
        for name in [
            "$MetricsHourPrimaryTransactionsTable",
            "$metricsminutesecondarytransactionsblob",
            "$MetricsCapacityBlob",
            "$MetricsTransactionsBlob",
            "$metricstransactionstable",
        ] {
            let name = TableName::new(name).unwrap();
            assert!(name.is_system(), "{name}");
        }
        assert!(!TableName::new("MetricsCapacityBlob").unwrap().is_system());
        for name in [
            "$Metrics",
            "$MetricsHourPrimaryTransactions",
            "$MetricsDayPrimaryTransactionsTable",
            "$MetricsTransactionsFile",
            "$logs",
            "$Metricé",
        ] {
            assert!(TableName::new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn property_names_follow_the_rules_of_the_service() {
        for name in ["a", "_", "_1", "ETag", "啊齄丂狛狜", "naïve_2"] {
            assert_eq!(check_property_name(name), Ok(()), "{name}");
        }
        for name in ["123", "a-b", "a b", "a.b", "", "-"] {
            assert!(check_property_name(name).is_err(), "{name}");
        }
        for name in [
            "ชื่อ",
            "हिन्दी",
            "Gro\u{308}ße",
            "a‿b",
            "Ⅷ",
            "ʰ",
            "ǅ",
            "a\u{200d}b",
            "x٣",
        ] {
            assert_eq!(check_property_name(name), Ok(()), "{name}");
        }
        for (name, character) in [
            ("x²", '²'),
            ("a½", '½'),
            ("a①", '①'),
            ("aⓐ", 'ⓐ'),
            ("℮", '℮'),
            ("٣x", '٣'),
            ("\u{308}a", '\u{308}'),
            ("‿a", '‿'),
            ("a\u{a0}b", '\u{a0}'),
            ("a·b", '·'),
        ] {
            let problem = PropertyNameProblem::Character { character };
            assert_eq!(check_property_name(name), Err(problem), "{name}");
        }
        assert_eq!(check_property_name(&"é".repeat(255)), Ok(()));
        assert!(check_property_name(&"é".repeat(256)).is_err());
    }
}
