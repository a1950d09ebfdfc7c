//! The query in the URL of a page of entities.

use maud::{Markup, html};
use serde::Deserialize;
use tablesdk::TableClient;
use tablesdk::query::{Explanation, PageToken};
use tablesdk_protocol::filter::Filter;

use super::app::read_retries;
use super::posted::Posted;
use super::url;
use crate::commands::query::Asked;
use crate::error::AnyError;
use crate::selection::{RowKeys, Selection};

/// The fields of a URL, as they were typed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(super) struct Question {
    pub(super) pk: String,
    pub(super) rk: String,
    pub(super) filter: String,
    /// The names of the columns with commas between them. Empty: those that were chosen last.
    pub(super) columns: String,
    /// Where an earlier page has ended.
    pub(super) from: String,
    /// How far a scan may go.
    pub(super) scan: Scan,
}

/// How far a query may look at a whole table.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Scan {
    /// It asks first.
    #[default]
    Ask,
    /// At most [`REQUESTS`] requests for a page.
    Some,
    /// Until the page is full, or the table ends.
    All,
}

impl Question {
    /// The query, which selects the columns if any are named.
    pub(super) fn asked(&self, table: TableClient, select: Vec<String>) -> Result<Asked, Invalid> {
        let partition = (!self.pk.is_empty()).then(|| exact(&self.pk)).transpose();
        let partition = partition.map_err(|error| Invalid::of("pk", error))?;
        let rows = rows(&self.rk).map_err(|error| Invalid::of("rk", error))?;
        let filter = self.filter.trim();
        let filter = (!filter.is_empty()).then(|| filter.to_owned());
        Ok(Asked {
            table,
            selection: Selection::of(partition, rows, filter),
            select,
            retry: read_retries(),
        })
    }

    /// The client's error about the query, at the field that it concerns.
    pub(super) fn invalid(&self, error: tablesdk::Error) -> Invalid {
        let filter = self.filter.trim();
        match filter.parse::<Filter>() {
            Err(problem) if !filter.is_empty() => Invalid {
                advice: comparison_of_text(filter.get(problem.offset()..).unwrap_or_default()),
                ..Invalid::of("filter", error.into())
            },
            _ => Invalid {
                field: None,
                error: error.into(),
                advice: None,
            },
        }
    }

    /// The fields of a form of the page, which returns to it.
    pub(super) fn of_form(posted: &Posted) -> Self {
        let field = |name| posted.get(name).to_owned();
        Self {
            pk: field("pk"),
            rk: field("rk"),
            filter: field("filter"),
            columns: field("columns"),
            from: field("from"),
            scan: match posted.get("scan") {
                "some" => Scan::Some,
                "all" => Scan::All,
                _ => Scan::Ask,
            },
        }
    }

    fn fields(&self) -> [(&'static str, &str); 6] {
        [
            ("pk", &self.pk),
            ("rk", &self.rk),
            ("filter", &self.filter),
            ("columns", &self.columns),
            ("scan", self.scan.as_str()),
            ("from", &self.from),
        ]
    }

    /// The fields for a form that returns to the page.
    pub(super) fn hidden_fields(&self) -> Markup {
        let fields = self
            .fields()
            .into_iter()
            .filter(|(_, value)| !value.is_empty());
        html! {
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
        }
    }

    /// Returns true if the query has no conditions: each request then finds as many entities as it
    /// looks at.
    pub(super) fn is_all(&self) -> bool {
        self.pk.is_empty() && self.rk.is_empty() && self.filter.trim().is_empty()
    }

    pub(super) fn token(&self) -> Result<Option<PageToken>, AnyError> {
        if self.from.is_empty() {
            return Ok(None);
        }
        let token = self.from.parse::<PageToken>();
        Ok(Some(token.map_err(|error| format!("from: {error}"))?))
    }

    /// The columns that the URL names. None: those that were chosen last.
    pub(super) fn columns(&self) -> Vec<String> {
        let names = self.columns.split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    }

    /// How many requests a page may need.
    pub(super) const fn requests_max(&self) -> usize {
        match self.scan {
            Scan::Ask | Scan::Some => REQUESTS,
            Scan::All => usize::MAX,
        }
    }

    /// The same query from its beginning. A scan asks first.
    pub(super) fn first_page(&self) -> Self {
        Self {
            from: String::new(),
            scan: Scan::Ask,
            ..self.clone()
        }
    }

    /// The URL of the page.
    pub(super) fn url(&self, table: &str) -> String {
        format!("{}{}", url::table(table), url::query(self.fields()))
    }
}

impl Scan {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "",
            Self::Some => "some",
            Self::All => "all",
        }
    }
}

/// An error in a query, found before anything is sent.
pub(super) struct Invalid {
    /// The name of the field, if it is one that people fill in.
    pub(super) field: Option<&'static str>,
    pub(super) error: AnyError,
    /// The probable intention.
    pub(super) advice: Option<String>,
}

impl Invalid {
    fn of(field: &'static str, error: AnyError) -> Self {
        Self {
            field: Some(field),
            error,
            advice: None,
        }
    }
}

/// The advice for a filter that begins with the comparison of two names, of which the second may be
/// a text.
fn comparison_of_text(filter: &str) -> Option<String> {
    let words = filter.split(|c: char| c.is_whitespace() || "()".contains(c));
    let mut words = words.filter(|word| !word.is_empty());
    let (name, operator, text) = (words.next()?, words.next()?, words.next()?);
    let is_name = |word: &str| word.starts_with(char::is_alphabetic) && !word.contains('\'');
    let is_comparison = OPERATORS.contains(&operator) && is_name(name) && is_name(text);
    is_comparison.then(|| format!("A text needs quotes: {name} {operator} '{text}'"))
}

/// The request of a query, for people: without the host.
pub(super) fn request_line(asked: &Asked, explanation: &Explanation, table: &str) -> String {
    if let Some(key) = asked.selection.point() {
        let [partition, row] = [key.0, key.1].map(|key| key.replace('\'', "''"));
        return format!("GET {table}(PartitionKey='{partition}',RowKey='{row}')");
    }
    match explanation.filter() {
        Some(filter) => format!("GET {table}()?$filter={filter}"),
        None => format!("GET {table}()"),
    }
}

/// The row keys that a text stands for: `KEY`, `FROM..TO`, also with three dots, `PREFIX*`, or a
/// JSON string, which is one exact key.
fn rows(text: &str) -> Result<RowKeys, AnyError> {
    if text.is_empty() {
        return Ok(RowKeys::All);
    }
    if is_quoted(text) {
        return Ok(RowKeys::One(exact(text)?));
    }
    let range = text.split_once('…').or_else(|| text.split_once(".."));
    if let Some((from, to)) = range {
        let to = to.strip_prefix('.').unwrap_or(to);
        let (from, to) = (bound(from)?, bound(to)?);
        if from.is_empty() && to.is_empty() {
            return Err(
                "RowKey: a range has a beginning, an end or both, such as 000100..000200".into(),
            );
        }
        return Ok(RowKeys::Range(from, to));
    }
    match text.strip_suffix('*') {
        Some("") => Ok(RowKeys::All),
        Some(prefix) => Ok(RowKeys::Prefix(exact(prefix)?)),
        None => Ok(RowKeys::One(text.to_owned())),
    }
}

fn bound(text: &str) -> Result<String, AnyError> {
    match text.trim() {
        "" => Ok(String::new()),
        text => exact(text),
    }
}

/// A key, as it stands or as a JSON string.
fn exact(text: &str) -> Result<String, AnyError> {
    if !is_quoted(text) {
        return Ok(text.to_owned());
    }
    let key = serde_json::from_str::<String>(text);
    Ok(key.map_err(|error| {
        format!("{text} begins and ends as a JSON string, and is none: {error}")
    })?)
}

fn is_quoted(text: &str) -> bool {
    text.len() >= 2 && text.starts_with('"') && text.ends_with('"')
}

/// A text of [`Question`] that stands for exactly this key.
pub(super) fn quoted(key: &str) -> String {
    let is_plain = !key.is_empty()
        && !is_quoted(key)
        && rows(key).is_ok_and(|it| it == RowKeys::One(key.to_owned()));
    if is_plain {
        return key.to_owned();
    }
    serde_json::Value::from(key).to_string()
}

const OPERATORS: [&str; 6] = ["eq", "ne", "gt", "ge", "lt", "le"];
/// The requests for a page that finds little.
pub(super) const REQUESTS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_field_has_four_forms() {
        let range = |from: &str, to: &str| RowKeys::Range(from.into(), to.into());
        for (text, expected) in [
            ("", RowKeys::All),
            ("*", RowKeys::All),
            ("000145", RowKeys::One("000145".into())),
            ("000100 … 000250", range("000100", "000250")),
            ("000100 ... 000250", range("000100", "000250")),
            ("000100...000250", range("000100", "000250")),
            ("000100..000250", range("000100", "000250")),
            ("...000250", range("", "000250")),
            ("a..\".b\"", range("a", ".b")),
            ("000100..", range("000100", "")),
            ("..\"a..b\"", range("", "a..b")),
            ("email_*", RowKeys::Prefix("email_".into())),
            ("\"a*\"", RowKeys::One("a*".into())),
            ("\"\"", RowKeys::One(String::new())),
        ] {
            let found = rows(text).map_err(|error| error.to_string());
            assert_eq!(found, Ok(expected), "{text}");
        }
        for text in ["..", "...", "…", "\"\\x\""] {
            assert!(rows(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_text_without_quotes_gets_them_as_advice() {
        let advice = |filter: &str| {
            let problem = filter.parse::<Filter>().expect_err(filter);
            comparison_of_text(filter.get(problem.offset()..).unwrap_or_default())
        };
        for (filter, expected) in [
            ("Name eq Smith", Some("Name eq 'Smith'")),
            (
                "Age ge 3 and not (Name  ne Smith) or b",
                Some("Name ne 'Smith'"),
            ),
            ("Name eq 'Smith", None),
            ("Name eq O'Hara", None),
            ("1 eq 2", None),
            ("Name eq", None),
        ] {
            let expected = expected.map(|it| format!("A text needs quotes: {it}"));
            assert_eq!(advice(filter), expected, "{filter}");
        }
    }

    #[test]
    fn a_quoted_key_is_that_key() {
        for key in [
            "",
            "a",
            "a*",
            "a..b",
            "…",
            "\"a\"",
            "\\",
            "a\nb",
            "漢\u{202e}",
        ] {
            let found = rows(&quoted(key)).map_err(|error| error.to_string());
            assert_eq!(found, Ok(RowKeys::One(key.into())), "{key:?}");
        }
    }
}
