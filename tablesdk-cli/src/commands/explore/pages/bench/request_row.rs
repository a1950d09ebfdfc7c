//! A recorded request as a row of the grid.

use maud::{Markup, html};

use super::super::super::kit::Request;
use super::super::super::url;
use super::of_day;
use crate::escape::{harmless, shortened};

/// The columns, with their widths.
pub(super) const COLUMNS: [(&str, u16); 9] = [
    ("No.", 54),
    ("Time", 114),
    ("Operation", 158),
    ("Table", 104),
    ("Keys", 184),
    ("Access", 104),
    ("Status", 160),
    ("Fault", 180),
    ("Entities examined", 136),
];

/// A row, whose link opens the panel of the request.
pub(super) fn row(request: &Request, find: &str, selected: Option<u64>) -> Markup {
    let is_open = selected == Some(request.number);
    let number = request.number.to_string();
    html! {
        tr.open[is_open] data-number=(number) aria-current=[is_open.then_some("true")] {
            td.number { a href=(href(request.number, find)) { (number) } }
            td.mono { (of_day(&request.time)) }
            td { (operation(request)) }
            td { (cell(request.table.as_deref().unwrap_or("–"))) }
            td.key { (cell(&keys(request))) }
            td { (access(request)) }
            td { (status(request)) }
            td { (fault(request)) }
            td.number { (entities(request)) }
            td {}
        }
    }
}

/// The row of requests that are missing between two others.
pub(super) fn gap(missing: u64) -> Markup {
    let text = match missing {
        1 => "1 request is not shown: it was forgotten, or more came at once than the page keeps"
            .to_owned(),
        _ => format!(
            "{missing} requests are not shown: they were forgotten, or more came at once than the page keeps"
        ),
    };
    html! { tr.gap { td.muted colspan=(COLUMNS.len() + 1) { (text) } } }
}

/// The page with the panel of a request.
pub(super) fn href(number: u64, find: &str) -> String {
    let number = number.to_string();
    let query = url::query([("find", find), ("selected", &number)]);
    format!("/bench/requests{query}")
}

/// Returns true if the row or the filter contains the string.
pub(super) fn contains(request: &Request, find: &str) -> bool {
    let find = find.trim().to_lowercase();
    let status = request.status.map(|status| status.to_string());
    let number = request.number.to_string();
    let texts = [
        Some(number.as_str()),
        Some(operation(request)),
        request.table.as_deref(),
        request.access.as_deref(),
        status.as_deref(),
        request.error_code.as_deref(),
        request.filter.as_deref(),
        request.fault.as_ref().map(|fault| fault.text.as_str()),
        Some(attempt(request)),
    ];
    let is_in = |text: &str| text.to_lowercase().contains(&find);
    find.is_empty()
        || texts.into_iter().flatten().any(is_in)
        || is_in(&keys(request))
        || request.entities.iter().any(|it| is_in(&it.row_key))
}

pub(super) fn operation(request: &Request) -> &str {
    request.operation.as_deref().unwrap_or("not recognized")
}

const fn attempt(request: &Request) -> &'static str {
    if request.attempt > 1 { "retry" } else { "" }
}

/// The keys of what was asked for.
pub(super) fn keys(request: &Request) -> String {
    let partition = request.partition_key.as_deref();
    match (partition, &*request.entities) {
        (Some(partition), [entity]) => format!("{partition} / {}", entity.row_key),
        (Some(partition), []) => format!("{partition} / *"),
        (Some(partition), changes) => format!("{partition} · {} changes", changes.len()),
        (None, _) => "–".to_owned(),
    }
}

/// How the server found the entities of a read.
pub(super) fn access(request: &Request) -> Markup {
    let (tone, name) = match request.access.as_deref() {
        Some("scan") => ("bad", "table scan"),
        Some("partition") => ("warn", "partition"),
        Some(name) => ("good", name),
        None => return html! { span.muted { "–" } },
    };
    html! { span class={ "pill " (tone) } { (name) } }
}

pub(super) fn status(request: &Request) -> Markup {
    let code = request.error_code.as_deref().map(harmless);
    html! {
        @match request.status {
            Some(status) => { span.mono { (status) } },
            None => { span.muted { "no response" } },
        }
        @if let Some(code) = code { " " span.muted title=(code) { (code) } }
        @if request.attempt > 1 { " " span.pill { "attempt " (request.attempt) } }
    }
}

fn entities(request: &Request) -> Markup {
    match request.access {
        Some(_) => {
            html! { (request.entities_returned) " " small.muted { (request.entities_examined) } }
        }
        None => html! { span.muted { "–" } },
    }
}

fn fault(request: &Request) -> Markup {
    html! {
        @if let Some(fault) = &request.fault {
            @let text = harmless(&fault.text);
            span.failed title=(text) { (text) }
        }
    }
}

/// A text of the client's, which a cell shows in part.
fn cell(text: &str) -> Markup {
    let shown = shortened(&harmless(text), CELL_CHARS_MAX);
    html! { span title=(shown) { (shown) } }
}

const CELL_CHARS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::super::super::super::kit::NamedEntity;
    use super::*;

    fn request() -> Request {
        Request {
            number: 7,
            operation: Some("InsertEntity".to_owned()),
            table: Some("People".to_owned()),
            partition_key: Some("<b>Sales".to_owned()),
            entities: vec![NamedEntity {
                operation: "InsertEntity".to_owned(),
                partition_key: "<b>Sales".to_owned(),
                row_key: "\u{202e}1".to_owned(),
            }],
            attempt: 2,
            status: Some(409),
            time: "2024-03-15T10:20:30.5Z".to_owned(),
            error_code: Some("EntityAlreadyExists".to_owned()),
            ..Request::default()
        }
    }

    #[test]
    fn a_row_shows_the_texts_of_a_client_as_text() {
        let row = row(&request(), "\"><script>", None).into_string();
        assert!(row.contains("10:20:30.500"), "{row}");
        assert!(row.contains("&lt;b&gt;Sales / \\u{202e}1"), "{row}");
        assert!(!row.contains("<b>") && !row.contains("<script"), "{row}");
        assert!(row.contains("/bench/requests?find=%22%3E%3Cscript%3E&amp;selected=7"));
    }

    #[test]
    fn a_request_is_found_by_what_its_row_shows() {
        let request = request();
        for find in [
            "",
            "insert",
            "people",
            "sales",
            "409",
            "alreadyexists",
            " 7 ",
            "retry",
        ] {
            assert!(contains(&request, find), "{find}");
        }
        for find in ["delete", "204", "scan"] {
            assert!(!contains(&request, find), "{find}");
        }
    }

    #[test]
    fn a_long_key_is_shown_in_part() {
        let mut request = request();
        request.partition_key = Some("k".repeat(1024));
        let row = row(&request, "", None).into_string();
        assert!(row.len() < 2500, "{}", row.len());
    }
}
