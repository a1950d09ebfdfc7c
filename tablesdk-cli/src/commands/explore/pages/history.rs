//! `/history`: the queries that were run, to find one again, and the changes that were sent.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::Uri;
use axum::response::{Redirect, Response};
use maud::{Markup, html};
use percent_encoding::percent_decode_str;

use super::super::app::App;
use super::super::frame::{Content, Frame, Tab};
use super::super::posted::Posted;
use super::super::question::Question;
use super::super::settings::{Entry, Sent, Settings};
use super::Search;
use crate::escape::{harmless, shortened};
use crate::output::counted;

/// `/history?find=TEXT`
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Query(Search { find }): Query<Search>,
) -> Response {
    let frame = Frame {
        title: "History".to_owned(),
        table: None,
        tab: Tab::None,
        tools: tools(&find),
        query: html! {},
    };
    let all = app.settings.run(Settings::history).await;
    let content = content(&app, all, &find);
    frame.respond(app, async move { content }).await
}

fn tools(find: &str) -> Markup {
    html! {
        form.sample action="/history" method="get" role="search" aria-label="History" {
            input type="search" name="find" value=(find) placeholder="Query or change" aria-label="Find a query or a change" autocomplete="off" spellcheck="false";
            button.button { "Find" }
        }
    }
}

fn content(app: &App, all: Vec<Entry>, find: &str) -> Content {
    let count = all.len();
    let rows = all.into_iter().filter_map(Row::of);
    let found: Vec<_> = rows.filter(|row| row.has(find)).collect();
    let sent = app.settings.sent();
    let is_empty = count == 0 && sent.is_empty();
    let sent: Vec<_> = sent.into_iter().filter(|it| has(it, find)).collect();
    let token = app.gate.token_field();
    Content {
        main: html! {
            @if let Some(problem) = app.settings.problem() {
                section.card.notice { p { span.pill.warn { "not kept" } " " (harmless(&problem)) } }
            }
            @if found.is_empty() {
                section.card.notice {
                    @if count == 0 {
                        p { strong { "No query was run yet." } }
                        p.muted { "A query with a condition is kept here, and on this machine alone." }
                    } @else {
                        p { strong { "No query has " span.mono { (shortened(&harmless(find), TEXT_CHARS_MAX)) } " in it." } }
                    }
                }
            } @else {
                (table(&found, &token))
            }
            @if !sent.is_empty() { (of_sent(&sent)) }
        },
        panel: None,
        foot: html! {
            span { (found.len()) " of " (counted(count as u64, "query", "queries")) }
            @if !is_empty {
                form.end method="post" action="/history/clear" {
                    (token)
                    button.button.danger { "Clear the history" }
                }
            }
        },
    }
}

fn table(rows: &[Row], token: &Markup) -> Markup {
    html! {
        table.grid {
            caption.hidden { "Queries, the newest first" }
            colgroup {
                @for width in WIDTHS { col width=(width); }
                col;
            }
            thead { tr { @for name in HEADER { th scope="col" { (name) } } th scope="col" { span.hidden { "Remove" } } } }
            tbody { @for row in rows { (row.show(token)) } }
        }
    }
}

/// Returns true if a text contains the searched one, in any case of its letters.
fn contains(text: &str, find: &str) -> bool {
    text.to_lowercase().contains(&find.trim().to_lowercase())
}

fn has(sent: &Sent, find: &str) -> bool {
    let text = format!("{} {}", sent.changes, sent.outcome);
    contains(&text, find)
}

fn of_sent(sent: &[Sent]) -> Markup {
    html! {
        table.grid {
            caption.hidden { "Changes that were sent, the newest first" }
            colgroup {
                @for width in SENT_WIDTHS { col width=(width); }
                col;
            }
            thead { tr { @for name in SENT_HEADER { th scope="col" { (name) } } th aria-hidden="true" {} } }
            tbody {
                @for Sent { changes, outcome, requests, milliseconds, at } in sent {
                    tr {
                        td title=(shortened(&harmless(changes), TITLE_CHARS_MAX)) { (shortened(&harmless(changes), TEXT_CHARS_MAX)) }
                        td { (shortened(&harmless(outcome), TEXT_CHARS_MAX)) }
                        td.number { (requests) }
                        td.number { (milliseconds) }
                        td.mono { (time(at)) }
                        td {}
                    }
                }
            }
        }
    }
}

/// A query that was run, as its URL says it.
struct Row {
    entry: Entry,
    table: String,
    question: Question,
}

impl Row {
    /// `None` if the URL is not one of a page of entities: the file may have any text.
    fn of(entry: Entry) -> Option<Self> {
        let uri = entry.url.parse::<Uri>().ok()?;
        let table = uri.path().strip_prefix("/t/")?;
        let table = percent_decode_str(table).decode_utf8().ok()?;
        let Query(question) = Query::try_from_uri(&uri).ok()?;
        Some(Self {
            table: table.into_owned(),
            entry,
            question,
        })
    }

    /// The conditions, as they were typed.
    fn conditions(&self) -> String {
        let Question { pk, rk, filter, .. } = &self.question;
        let texts = [("PartitionKey", pk), ("RowKey", rk), ("", filter)];
        let texts = texts.iter().filter(|(_, text)| !text.is_empty());
        let texts = texts.map(|(name, text)| format!("{name} {text}").trim_start().to_owned());
        texts.collect::<Vec<_>>().join(" · ")
    }

    fn has(&self, find: &str) -> bool {
        let text = format!("{} {} {}", self.table, self.conditions(), self.entry.access);
        contains(&text, find)
    }

    fn show(&self, token: &Markup) -> Markup {
        let (entry, conditions) = (&self.entry, harmless(&self.conditions()));
        html! {
            tr {
                td { (shortened(&harmless(&self.table), TEXT_CHARS_MAX)) }
                td.mono title=(shortened(&conditions, TITLE_CHARS_MAX)) {
                    a href=(self.question.url(&self.table)) { (shortened(&conditions, TEXT_CHARS_MAX)) }
                }
                td { (harmless(&entry.access)) }
                td.number { (entry.count) }
                td.number { (entry.requests) }
                td.number { (entry.milliseconds) }
                td.mono { (time(&entry.at)) }
                td {
                    form.inline method="post" action="/history/forget" {
                        (token)
                        input type="hidden" name="url" value=(entry.url);
                        button.link aria-label={ "Remove the query " (shortened(&conditions, TEXT_CHARS_MAX)) } { "Remove" }
                    }
                }
            }
        }
    }
}

/// A time to the second, in UTC.
fn time(at: &str) -> String {
    let seconds = at.split('.').next().unwrap_or_default();
    harmless(&seconds.replace('T', " "))
}

/// `/history/forget`: removes a query.
pub(crate) async fn forget(State(app): State<Arc<App>>, posted: Posted) -> Redirect {
    let forget = move |it: &Settings| it.forget(posted.get("url"));
    app.settings.run(forget).await;
    Redirect::to(HISTORY)
}

/// `/history/clear`: removes all queries.
pub(crate) async fn clear(State(app): State<Arc<App>>, _: Posted) -> Redirect {
    app.settings.run(Settings::clear_history).await;
    Redirect::to(HISTORY)
}

const HISTORY: &str = "/history";
const TEXT_CHARS_MAX: usize = 120;
const TITLE_CHARS_MAX: usize = 1000;
const HEADER: [&str; 7] = [
    "Table",
    "Query",
    "Access",
    "Entities",
    "Requests",
    "ms",
    "Run at (UTC)",
];
const SENT_HEADER: [&str; 5] = ["Changes", "Outcome", "Requests", "ms", "Sent at (UTC)"];
const SENT_WIDTHS: [usize; 5] = [390, 370, 100, 70, 170];
const WIDTHS: [usize; 7] = [150, 420, 100, 90, 100, 70, 170];
