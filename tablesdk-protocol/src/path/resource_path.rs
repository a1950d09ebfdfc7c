//! The path of a resource below an account: printed by the client, read by the server.
//!
//! Quotes in keys are doubled first and percent-encoded after; reading goes the other way round,
//! and reads every spelling that clients use. See
//! <https://learn.microsoft.com/rest/api/storageservices/addressing-table-service-resources>.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::types::limits::KEY_UNITS_MAX;
use crate::types::text::{Cursor, split_at_byte};
use crate::types::{EntityKey, ErrorCode, KeyError, KeyProblem, ServiceError, TableName};
use crate::types::{TableNameError, TableNameProblem};

/// The resource that a URL addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourcePath {
    /// `/`: the service itself.
    Service,
    /// `/Tables`: the set of tables.
    Tables,
    /// `/Tables('people')`: one table, to be deleted.
    Table(TableName),
    /// `/people()`: the entities of a table.
    EntitySet(TableName),
    /// `/people(PartitionKey='p',RowKey='r')`: one entity.
    Entity(TableName, EntityKey),
    /// `/$batch`: an entity group transaction.
    Batch,
    /// `/$metadata`: the model of the service.
    Metadata,
    /// `/people/Tables`: a resource of the account behind the name of a table, as a client asks for
    /// it whose endpoint ends with that name. Nothing is there, but the service has responses of
    /// its own for it. Keeps what follows the table's name, decoded.
    Misplaced(TableName, String),
}

impl ResourcePath {
    /// Reads a path as it is on the wire, without the account's segment. Empty segments count as
    /// absent.
    ///
    /// # Errors
    ///
    /// When the path names no resource of the service (`InvalidUri`, `InvalidInput`), or when a
    /// name or key in it breaks its rules.
    pub fn parse(path: &str) -> Result<Self, ServiceError> {
        if path.len() > PATH_BYTES_MAX {
            return Err(ErrorCode::InvalidUri.into());
        }
        if !path.is_empty() && memchr(b'/', path.as_bytes()).is_none() {
            return parse_segment(path);
        }
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        let Some(segment) = segments.next() else {
            return Ok(Self::Service);
        };
        let resource = parse_segment(segment)?;
        match (segments.next(), segments.next()) {
            (None, _) => Ok(resource),
            (Some(segment), None) => match resource {
                Self::EntitySet(table) => match decode(segment)? {
                    rest if is_root(&rest) => Ok(Self::Misplaced(table, rest.into_owned())),
                    _ => Err(ErrorCode::InvalidUri.into()),
                },
                _ => Err(ErrorCode::InvalidUri.into()),
            },
            _ => Err(ErrorCode::InvalidUri.into()),
        }
    }
}

/// Returns true if a segment names a resource directly below an account, with any keys.
fn is_root(text: &str) -> bool {
    let name = text.split_once('(').map_or(text, |(name, _)| name);
    matches!(name, "$batch" | "Tables")
}

fn decode(segment: &str) -> Result<Cow<'_, str>, ServiceError> {
    if memchr(b'%', segment.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(segment));
    }
    let text = percent_decode_str(segment).decode_utf8();
    text.map_err(|_| ErrorCode::InvalidUri.into())
}

fn parse_segment(segment: &str) -> Result<ResourcePath, ServiceError> {
    match decode(segment)?.as_ref() {
        "$batch" => Ok(ResourcePath::Batch),
        "$metadata" => Ok(ResourcePath::Metadata),
        text => parse_set(text),
    }
}

/// `name`, `name()`, `name('key')` or `name(PartitionKey='…',RowKey='…')`.
fn parse_set(text: &str) -> Result<ResourcePath, ServiceError> {
    let malformed = || ServiceError::from(ErrorCode::InvalidUri);
    let (name, arguments) = match split_at_byte(text, b'(') {
        Some((name, rest)) => (name, Some(rest)),
        None => (text, None),
    };
    let is_tables = name == "Tables";
    let arguments = match arguments.map(str::trim) {
        None | Some(")") => {
            return if is_tables {
                Ok(ResourcePath::Tables)
            } else {
                Ok(ResourcePath::EntitySet(TableName::new(name)?))
            };
        }
        Some(arguments) => arguments,
    };
    let mut cursor = Cursor::new(arguments);
    if is_tables {
        let name = cursor.quoted().ok_or_else(malformed)?;
        return if cursor.literal(")") && cursor.is_at_end() {
            Ok(ResourcePath::Table(TableName::new(name)?))
        } else {
            Err(malformed())
        };
    }
    let table = TableName::new(name)?;
    let (mut partition_key, mut row_key) = (None, None);
    loop {
        cursor.take_while(|byte| byte == b' ');
        let name = cursor.take_while(|byte| byte.is_ascii_alphabetic());
        let slot = match name {
            "PartitionKey" => &mut partition_key,
            "RowKey" => &mut row_key,
            _ => return Err(wrong_number_of_keys(table.as_str())),
        };
        let value = cursor
            .literal("=")
            .then(|| cursor.quoted())
            .flatten()
            .ok_or_else(malformed)?;
        if slot.replace(value).is_some() {
            return Err(wrong_number_of_keys(table.as_str()));
        }
        cursor.take_while(|byte| byte == b' ');
        if cursor.literal(")") {
            break;
        }
        if !cursor.literal(",") {
            return Err(malformed());
        }
    }
    match (partition_key, row_key) {
        _ if !cursor.is_at_end() => Err(malformed()),
        (Some(partition_key), Some(row_key)) => Ok(ResourcePath::Entity(
            table,
            EntityKey::new(partition_key, row_key)?,
        )),
        _ => Err(wrong_number_of_keys(table.as_str())),
    }
}

/// The error for a URL whose number of keys does not match that of the resource.
pub(crate) fn wrong_number_of_keys(resource: &str) -> ServiceError {
    ServiceError::new(
        ErrorCode::InvalidInput,
        format!(
            "The number of keys specified in the URI does not match number of key properties for the resource '{resource}'."
        ),
    )
}

/// Prints the path without a leading slash, ready for a URL.
impl fmt::Display for ResourcePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service => Ok(()),
            Self::Tables => f.write_str("Tables"),
            Self::Table(name) => write!(f, "Tables('{name}')"),
            Self::EntitySet(table) => write_entity_path(f, table, None),
            Self::Entity(table, key) => write_entity_path(f, table, Some(key)),
            Self::Batch => f.write_str("$batch"),
            Self::Metadata => f.write_str("$metadata"),
            Self::Misplaced(table, rest) => {
                write!(f, "{table}/{}", utf8_percent_encode(rest, RESERVED))
            }
        }
    }
}

/// Prints the path of an entity, or that of the set of all entities of a table.
pub(crate) fn write_entity_path(
    out: &mut impl fmt::Write,
    table: &TableName,
    key: Option<&EntityKey>,
) -> fmt::Result {
    out.write_str(table.as_str())?;
    let Some(key) = key else {
        return out.write_str("()");
    };
    out.write_str("(PartitionKey=")?;
    KeyLiteral(key.partition_key().as_str()).write(out)?;
    out.write_str(",RowKey=")?;
    KeyLiteral(key.row_key().as_str()).write(out)?;
    out.write_str(")")
}

/// Prints a key as it stands in a URL: in quotes, its own quotes doubled and left as they are, the
/// rest percent-encoded.
pub(crate) struct KeyLiteral<'a>(pub(crate) &'a str);

impl KeyLiteral<'_> {
    /// Writes it.
    pub(crate) fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        out.write_str("'")?;
        // Most keys have nothing to encode.
        if self.0.bytes().all(is_unreserved) {
            out.write_str(self.0)?;
            return out.write_str("'");
        }
        for (index, part) in self.0.split('\'').enumerate() {
            if index > 0 {
                out.write_str("''")?;
            }
            for text in utf8_percent_encode(part, RESERVED) {
                out.write_str(text)?;
            }
        }
        out.write_str("'")
    }
}

impl fmt::Display for KeyLiteral<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

impl From<KeyError> for ServiceError {
    fn from(error: KeyError) -> Self {
        match error.problem() {
            KeyProblem::TooLong { .. } => ErrorCode::PropertyValueTooLarge.into(),
            KeyProblem::ForbiddenCharacter { .. } => Self::new(
                ErrorCode::OutOfRangeInput,
                format!(
                    "The '{}' parameter of value '{}' is out of range.",
                    error.part().property(),
                    error.text().chars().take(KEY_UNITS_MAX).collect::<String>()
                ),
            ),
        }
    }
}

impl From<TableNameError> for ServiceError {
    fn from(error: TableNameError) -> Self {
        match error.problem() {
            TableNameProblem::Length { .. } => Self::new(
                ErrorCode::OutOfRangeInput,
                "The specified resource name length is not within the permissible limits.",
            ),
            _ => ErrorCode::InvalidResourceName.into(),
        }
    }
}

/// The longest path that is read, in bytes. The longest that names something has about a tenth of
/// it, all of it escaped.
const PATH_BYTES_MAX: usize = 64 * 1024;

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// All but the unreserved characters of RFC 3986.
pub(crate) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entity(partition_key: &str, row_key: &str) -> ResourcePath {
        let key = EntityKey::new(partition_key, row_key).unwrap();
        ResourcePath::Entity(TableName::new("people").unwrap(), key)
    }

    #[test]
    fn reads_every_spelling_that_clients_use() {
        let people = TableName::new("people").unwrap();
        for (path, resource) in [
            ("", ResourcePath::Service),
            ("/", ResourcePath::Service),
            ("//Tables", ResourcePath::Tables),
            ("/Tables()", ResourcePath::Tables),
            ("/Tables('people')", ResourcePath::Table(people.clone())),
            (
                "/Tables%28%27people%27%29",
                ResourcePath::Table(people.clone()),
            ),
            ("/people", ResourcePath::EntitySet(people.clone())),
            ("/people()", ResourcePath::EntitySet(people.clone())),
            ("/%24batch", ResourcePath::Batch),
            (
                "/people/Tables",
                ResourcePath::Misplaced(people.clone(), "Tables".to_owned()),
            ),
            (
                "/people/%24batch",
                ResourcePath::Misplaced(people.clone(), "$batch".to_owned()),
            ),
            (
                "/people/Tables('x')",
                ResourcePath::Misplaced(people.clone(), "Tables('x')".to_owned()),
            ),
            ("/people(PartitionKey='p',RowKey='r')", entity("p", "r")),
            ("/people(PartitionKey='p', RowKey='r')", entity("p", "r")),
            ("/people(RowKey='r',PartitionKey='p')", entity("p", "r")),
            ("/people(PartitionKey='',RowKey='')", entity("", "")),
            (
                "/people%28PartitionKey=%27pk%27%2CRowKey=%27rk%27%29",
                entity("pk", "rk"),
            ),
            ("/people(PartitionKey%3D'a',RowKey%3D'b')", entity("a", "b")),
            (
                "/people(PartitionKey='O''Brien%20%26%20co',RowKey='r%2B1')",
                entity("O'Brien & co", "r+1"),
            ),
            (
                "/people(PartitionKey='a,b)(',RowKey='=''%25''+')",
                entity("a,b)(", "='%'+"),
            ),
            (
                "/people(PartitionKey='%27%27',RowKey='caf%C3%A9')",
                entity("'", "café"),
            ),
        ] {
            assert_eq!(ResourcePath::parse(path), Ok(resource), "{path}");
        }
    }

    #[test]
    fn paths_without_a_resource_are_refused() {
        for (path, code) in [
            ("/people/more", ErrorCode::InvalidUri),
            ("/people/$metadata", ErrorCode::InvalidUri),
            ("/Tables/Tables", ErrorCode::InvalidUri),
            ("/people/Tables/more", ErrorCode::InvalidUri),
            ("/people/cities", ErrorCode::InvalidUri),
            (
                "/people(PartitionKey='p',RowKey='r')/Tables",
                ErrorCode::InvalidUri,
            ),
            ("/people(PartitionKey='p',RowKey='r'", ErrorCode::InvalidUri),
            (
                "/people(PartitionKey='p',RowKey='r')x",
                ErrorCode::InvalidUri,
            ),
            ("/people(PartitionKey='p',RowKey=r)", ErrorCode::InvalidUri),
            ("/people(PartitionKey='p'RowKey='r')", ErrorCode::InvalidUri),
            ("/people(PartitionKey='p')", ErrorCode::InvalidInput),
            ("/people('p')", ErrorCode::InvalidInput),
            (
                "/people(PartitionKey='p',PartitionKey='p')",
                ErrorCode::InvalidInput,
            ),
            (
                "/people(PartitionKey='p',RowKey='a%2Fb')",
                ErrorCode::OutOfRangeInput,
            ),
            ("/p-q", ErrorCode::InvalidResourceName),
            ("/pq", ErrorCode::OutOfRangeInput),
            ("/people-2", ErrorCode::InvalidResourceName),
            ("/Tables('x')", ErrorCode::OutOfRangeInput),
            ("/Tables('people", ErrorCode::InvalidUri),
            ("/%FF%FE", ErrorCode::InvalidUri),
        ] {
            let error = ResourcePath::parse(path).unwrap_err();
            let code = if path == "/p-q" {
                ErrorCode::InvalidResourceName
            } else {
                code
            };
            assert_eq!(error.code(), &code, "{path}");
        }
    }

    #[test]
    fn long_keys_are_refused_with_short_words() {
        let longest = "é".repeat(512);
        let path = entity(&longest, &longest);
        assert_eq!(ResourcePath::parse(&path.to_string()), Ok(path));
        for (key, code) in [
            ("x".repeat(513), ErrorCode::PropertyValueTooLarge),
            ("%2F".repeat(10_000), ErrorCode::OutOfRangeInput),
            ("x".repeat(100_000), ErrorCode::InvalidUri),
            ("''".repeat(100_000), ErrorCode::InvalidUri),
        ] {
            let path = format!("/people(PartitionKey='{key}',RowKey='')");
            let error = ResourcePath::parse(&path).unwrap_err();
            assert_eq!(error.code(), &code, "{path:.50}");
            assert!(error.to_string().len() < 2_000, "{path:.50}");
        }
    }

    #[test]
    fn an_apostrophe_cannot_end_a_key() {
        assert_eq!(
            entity("O'Brien", "',RowKey='x").to_string(),
            "people(PartitionKey='O''Brien',RowKey='''%2CRowKey%3D''x')"
        );
    }

    proptest! {
        #[test]
        fn reads_back_what_it_prints(partition_key in "[^/\\\\#?\\p{Cc}]{0,40}", row_key in "[^/\\\\#?\\p{Cc}]{0,40}") {
            let path = entity(&partition_key, &row_key);
            prop_assert_eq!(ResourcePath::parse(&path.to_string()), Ok(path));
        }

        #[test]
        fn never_panics_on_any_text(path in "[/a-z()'=,%0-9A-F]{0,60}") {
            let _ = ResourcePath::parse(&path);
        }
    }
}
