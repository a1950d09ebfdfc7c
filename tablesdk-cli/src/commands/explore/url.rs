//! The URLs of the pages.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// `/t/NAME`
pub(super) fn table(name: &str) -> String {
    format!("/t/{}", encoded(name))
}

/// `/t/NAME/schema`
pub(super) fn schema(name: &str) -> String {
    format!("/t/{}/schema", encoded(name))
}

/// `/t/NAME/e?pk=…&rk=…`
pub(super) fn entity(table: &str, partition: &str, row: &str) -> String {
    let (table, partition, row) = (encoded(table), encoded(partition), encoded(row));
    format!("/t/{table}/e?pk={partition}&rk={row}")
}

/// `/t/NAME/new`
pub(super) fn new_entity(table: &str) -> String {
    format!("/t/{}/new", encoded(table))
}

/// `/t/NAME/new?pk=…&rk=…`: a new entity like that one.
pub(super) fn clone_of(table: &str, partition: &str, row: &str) -> String {
    let (partition, row) = (encoded(partition), encoded(row));
    format!("{}?pk={partition}&rk={row}", new_entity(table))
}

/// `/t/NAME/delete`
pub(super) fn deletes(table: &str) -> String {
    format!("/t/{}/delete", encoded(table))
}

/// `/bench/requests?find=NAME`
pub(super) fn requests(table: &str) -> String {
    format!("/bench/requests{}", query([("find", table)]))
}

/// The parameters of a URL. Empty ones are left out.
pub(super) fn query<'q>(fields: impl IntoIterator<Item = (&'q str, &'q str)>) -> String {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let fields: Vec<_> = fields
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    match &*fields {
        [] => String::new(),
        fields => format!("?{}", fields.join("&")),
    }
}

pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// All but what a URL has as it is everywhere.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
