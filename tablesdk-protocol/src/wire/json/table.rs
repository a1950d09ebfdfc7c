//! Tables as JSON: an object of one name, or a list of them.

use super::value::write_string;
use super::writer::ObjectWriter;
use super::{JsonError, MetadataLevel, PropertyError, read_entity, read_page};
use crate::path::Endpoint;

/// The body of a request to create a table.
pub fn write_table_name(name: &str) -> Vec<u8> {
    let mut object = ObjectWriter::start(Vec::new());
    object.text("TableName", name);
    object.end()
}

/// Reads the body of a request to create a table; `None` when it holds no name, or a null.
///
/// # Errors
///
/// When the body is not a JSON object, has a member twice, or its `TableName` is not a string.
pub fn read_table_name(body: &[u8]) -> Result<Option<String>, TableJsonError> {
    let table = read_entity(body)?;
    if table.has_duplicates() {
        return Err(TableJsonError::Duplicate);
    }
    Ok(table.text("TableName")?.map(str::to_owned))
}

/// A response with one table.
pub fn write_table(
    level: MetadataLevel,
    endpoint: &Endpoint,
    account: &str,
    name: &str,
) -> Vec<u8> {
    let mut object = ObjectWriter::start(Vec::new());
    if level != MetadataLevel::None {
        object.text(
            "odata.metadata",
            &format!("{endpoint}/$metadata#Tables/@Element"),
        );
    }
    table_members(&mut object, level, endpoint, account, name);
    object.end()
}

/// A response with many tables.
pub fn write_tables<'n>(
    level: MetadataLevel,
    endpoint: &Endpoint,
    account: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Vec<u8> {
    let mut out = b"{".to_vec();
    if level != MetadataLevel::None {
        write_string(&mut out, "odata.metadata");
        out.push(b':');
        write_string(&mut out, &format!("{endpoint}/$metadata#Tables"));
        out.push(b',');
    }
    out.extend_from_slice(b"\"value\":[");
    for name in names {
        if out.last() != Some(&b'[') {
            out.push(b',');
        }
        let mut object = ObjectWriter::start(out);
        table_members(&mut object, level, endpoint, account, name);
        out = object.end();
    }
    out.extend_from_slice(b"]}");
    out
}

/// The names in a response with many tables.
///
/// # Errors
///
/// When the body is not of that form.
pub fn read_tables(body: &[u8]) -> Result<Vec<String>, TableJsonError> {
    let mut names = Vec::new();
    read_page::<TableJsonError>(body, |table| {
        names.extend(table.text("TableName")?.map(str::to_owned));
        Ok(())
    })?;
    Ok(names)
}

/// The reason why a body is not a table, or not a list of tables.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableJsonError {
    /// Two members of the same name.
    #[error("two members have the same name")]
    Duplicate,
    /// Not JSON of that form.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A name that is not a string.
    #[error(transparent)]
    Property(#[from] PropertyError),
}

fn table_members(
    object: &mut ObjectWriter,
    level: MetadataLevel,
    endpoint: &Endpoint,
    account: &str,
    name: &str,
) {
    if level == MetadataLevel::Full {
        object.text("odata.type", &format!("{account}.Tables"));
        object.text("odata.id", &format!("{endpoint}/Tables('{name}')"));
        object.text("odata.editLink", &format!("Tables('{name}')"));
    }
    object.text("TableName", name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_shape_of_the_service() {
        let endpoint = "https://acct.table.core.windows.net".parse().unwrap();
        let one =
            |level| String::from_utf8(write_table(level, &endpoint, "acct", "people")).unwrap();
        assert_eq!(one(MetadataLevel::None), r#"{"TableName":"people"}"#);
        assert_eq!(
            one(MetadataLevel::Minimal),
            r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#Tables/@Element","TableName":"people"}"#
        );
        assert_eq!(
            one(MetadataLevel::Full),
            r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#Tables/@Element","odata.type":"acct.Tables","odata.id":"https://acct.table.core.windows.net/Tables('people')","odata.editLink":"Tables('people')","TableName":"people"}"#
        );
        let many = write_tables(
            MetadataLevel::Minimal,
            &endpoint,
            "acct",
            ["mytable0", "mytable1"],
        );
        assert_eq!(
            String::from_utf8(many.clone()).unwrap(),
            r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#Tables","value":[{"TableName":"mytable0"},{"TableName":"mytable1"}]}"#
        );
        assert_eq!(read_tables(&many).unwrap(), ["mytable0", "mytable1"]);
    }

    #[test]
    fn a_missing_name_is_not_a_malformed_body() {
        assert_eq!(read_table_name(b"{}").unwrap(), None);
        assert_eq!(read_table_name(br#"{"TableName":null}"#).unwrap(), None);
        assert_eq!(
            read_table_name(&write_table_name("people"))
                .unwrap()
                .as_deref(),
            Some("people")
        );
        for body in [
            "",
            "[]",
            "{\"TableName\":1}",
            "{\"TableName\":\"a\",\"TableName\":\"b\"}",
            "{",
            "{\"TableName\":\"a\"} x",
        ] {
            assert!(read_table_name(body.as_bytes()).is_err(), "{body}");
        }
    }
}
