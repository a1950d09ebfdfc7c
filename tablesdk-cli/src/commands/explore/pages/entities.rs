//! `/t/NAME`: entities of a table, page by page.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use tablesdk::query::{AccessClass, Explanation};
use tablesdk_cli::own::Kept;
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;

use super::super::app::App;
use super::super::bar;
use super::super::found::Found;
use super::super::frame::{Content, Frame, Tab};
use super::super::grid::Grid;
use super::super::problem;
use super::super::question::{Invalid, Question, REQUESTS, Scan, request_line};
use super::super::recipe;
use super::super::settings::Entry;
use super::super::staged::Marks;
use super::super::url;
use super::columns;
use super::copy::recipes;
use crate::commands::query::Asked;
use crate::error::AnyError;
use crate::escape::{harmless, shortened};
use crate::output::counted;
use crate::selection::cost;

/// `/t/NAME`
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Path(table): Path<String>,
    Query(question): Query<Question>,
) -> Response {
    let explained = explained(&app, &table, &question);
    let frame = Frame {
        title: table.clone(),
        table: Some(table.clone()),
        tab: Tab::Entities,
        tools: bar::tools(&app, &table),
        query: bar(&table, &question, explained.as_ref()),
    };
    let content = content(Arc::clone(&app), table, question, explained);
    frame.respond(app, content).await
}

/// `/t/NAME/access`: what a query would cost, as a part of the page. Nothing is sent to the
/// service.
pub(crate) async fn access(
    State(app): State<Arc<App>>,
    Path(table): Path<String>,
    Query(question): Query<Question>,
) -> Response {
    let explained = explained(&app, &table, &question);
    access_line(&table, &question, explained.as_ref()).into_response()
}

/// The fields of the query, and what it costs.
fn bar(table: &str, question: &Question, explained: Result<&Explained, &Invalid>) -> Markup {
    let wrong = explained.err().and_then(|it| it.field);
    let is_wrong = |name| (wrong == Some(name)).then_some("true");
    let problem = |name| (wrong == Some(name)).then_some("problem");
    html! {
        form.fields #query action=(url::table(table)) method="get" role="search" aria-label="Entities" {
            label.field.pk { span { "PartitionKey" } input.key name="pk" value=(question.pk) autocomplete="off" spellcheck="false" aria-invalid=[is_wrong("pk")] aria-describedby=[problem("pk")]; }
            label.field.rk title=(ROWS) { span { "RowKey — key, prefix*, or from..before" } input.key name="rk" value=(question.rk) autocomplete="off" spellcheck="false" aria-invalid=[is_wrong("rk")] aria-describedby=[problem("rk")]; }
            label.field.filter { span { "Filter" } input.mono #filter name="filter" value=(question.filter) placeholder="Age ge 36 and Name ne ''" autocomplete="off" spellcheck="false" aria-invalid=[is_wrong("filter")] aria-describedby=[problem("filter")]; }
            @if !question.columns.is_empty() { input type="hidden" name="columns" value=(question.columns); }
            button.button.primary { "Run ⏎" }
        }
        div.access #access { (access_line(table, question, explained)) }
    }
}

fn access_line(
    table: &str,
    question: &Question,
    explained: Result<&Explained, &Invalid>,
) -> Markup {
    match explained {
        Ok(explained) => {
            let Explained { asked, link, .. } = explained;
            let select = &asked.select;
            let rust = recipe::rust_query(table, &asked.selection, select, PAGE_ITEMS_MAX);
            let curl = recipe::curl_query(asked, PAGE_ITEMS_MAX).unwrap_or_default();
            let request = request_line(asked, &explained.explanation, table);
            html! {
                span class=(tone(explained, question)) { (name(explained, question)) }
                span { (price(explained, question)) }
                code.request { (shortened(&harmless(&request), REQUEST_CHARS_MAX)) }
                span.end { (recipes(&[("Rust", &rust), ("curl", &curl), ("link for this browser", link)])) }
            }
        }
        Err(invalid) => html! {
            span.pill.bad { "not valid" }
            @if let Some(field) = invalid.field {
                span.long #problem data-field=(field) {
                    (problem::text(&*invalid.error)) ". "
                    @if let Some(advice) = &invalid.advice { strong { (shortened(&harmless(advice), REQUEST_CHARS_MAX)) } }
                }
            }
        },
    }
}

/// A query, and how the service would find the entities.
struct Explained {
    asked: Asked,
    explanation: Explanation,
    /// One response had the whole table, when it was read last. Then to look at all of it is no
    /// question.
    is_small: bool,
    /// The URL of its first page.
    link: String,
}

fn explained(app: &App, table: &str, question: &Question) -> Result<Explained, Invalid> {
    let asked = question.asked(app.service.table(table), question.columns())?;
    let explanation = asked.explain().map_err(|error| question.invalid(error))?;
    Ok(Explained {
        asked,
        explanation,
        is_small: app.tables.is_small(table),
        link: app.gate.url(&question.first_page().url(table)),
    })
}

async fn content(
    app: Arc<App>,
    table: String,
    question: Question,
    explained: Result<Explained, Invalid>,
) -> Content {
    let explained = match explained {
        Ok(explained) => explained,
        Err(invalid) => return not_sent(&invalid),
    };
    match found(&question, explained).await {
        Ok(Answer::Found(found, access)) => {
            if question.from.is_empty() && !question.is_all() {
                let now = app.service.table(&table).now();
                let entry = Entry::new(&question.url(&table), access, now);
                let entry =
                    entry.answered(found.entities.len(), found.requests.into(), found.elapsed);
                app.settings.later(move |it| it.record(&entry));
            }
            if question.is_all() {
                let mut entities = found.entities.iter();
                let is_kept =
                    !found.entities.is_empty() && entities.all(|it| Kept::of(it).is_some());
                let is_whole = question.from.is_empty() && found.next.is_none();
                let is_small = is_whole && found.requests == 1;
                app.tables.note(&table, is_kept, is_small);
            }
            app.tables.remember(&table, question.url(&table));
            let marks = app.staged().marks(&table);
            shown(&app, &table, &question, &found, marks)
        }
        Ok(Answer::Scan) => Content::of(scan_asked(&table, &question)),
        Err(error) => Content::of(problem::shown(&*error)),
    }
}

enum Answer {
    Found(Found, AccessClass),
    /// The query looks at the whole table, which must be asked for.
    Scan,
}

async fn found(question: &Question, explained: Explained) -> Result<Answer, AnyError> {
    let token = question.token()?;
    let access = explained.explanation.access();
    let is_free = explained.is_small || question.is_all();
    let mut asked = explained.asked;
    // The hidden columns are in the menu, too.
    asked.select.clear();
    if access == AccessClass::Scan && question.scan == Scan::Ask && !is_free {
        return Ok(Answer::Scan);
    }
    // The table may have grown meanwhile: a scan that was not asked for is one with a few requests.
    let found = Found::read(&asked, token, question.requests_max()).await?;
    Ok(Answer::Found(found, access))
}

/// The content below a query that is not valid. What is wrong stands at its field, if there is one.
fn not_sent(invalid: &Invalid) -> Content {
    Content::of(match invalid.field {
        Some(_) => html! {
            section.card.notice { p.muted { "Nothing was sent: the query is not valid." } }
        },
        None => problem::shown(&*invalid.error),
    })
}

fn shown(app: &App, table: &str, question: &Question, found: &Found, marks: Marks) -> Content {
    let columns = match &*question.columns() {
        [] => app.settings.columns(table).unwrap_or_default(),
        named => named.to_vec(),
    };
    let width = |name: &str| app.settings.width(table, name);
    let grid = Grid::new(table, &found.entities, &columns, width, marks);
    let next = found.next.as_ref().map(|token| {
        let next = Question {
            from: token.to_string(),
            ..question.clone()
        };
        next.url(table)
    });
    let count = counted(found.entities.len() as u64, "entity", "entities");
    let requests = counted(found.requests.into(), "request", "requests");
    let millis = found.elapsed.as_millis();
    Content {
        main: match &*found.entities {
            [] => nothing(question, next.as_deref()),
            _ => grid.show(),
        },
        panel: None,
        foot: html! {
            span { (count) " in " (requests) ", " (millis) " ms" }
            @if !found.entities.is_empty() { (columns::menu(app, table, question, &grid.shown(), grid.hidden())) }
            span.end.muted { "Timestamp hidden · times in UTC" }
            @if let Some(next) = next { a.button #next href=(next) { "Next page" } }
        },
    }
}

fn nothing(question: &Question, next: Option<&str>) -> Markup {
    html! {
        section.card.notice {
            @match next {
                Some(next) => {
                    p { strong { "No entity among those that were looked at so far." } }
                    p { a.button.primary href=(next) { "Look further" } }
                }
                None if question.is_all() => {
                    p { strong { "The table has no entities." } }
                }
                None => {
                    p { strong { "No entity is found." } }
                    p.muted { "Keys and texts are compared with regard to case. A filter on a property skips entities in which it has another type." }
                }
            }
        }
    }
}

fn scan_asked(table: &str, question: &Question) -> Markup {
    let further = |scan| {
        let further = Question {
            scan,
            ..question.clone()
        };
        further.url(table)
    };
    problem::notice(
        "table scan",
        "The query names no partition.",
        html! {
            p {
                "It looks at the whole table: one request for each 1,000 entities, whether they match or not. Name a partition, or look at a part of it."
            }
            p.actions {
                a.button href=(further(Scan::Some)) { "Scan with up to " (REQUESTS) " requests" }
                a.button.quiet href=(further(Scan::All)) { "Scan until 1,000 are found" }
            }
        },
    )
}

/// Without any condition, a scan finds what it looks at.
fn name(explained: &Explained, question: &Question) -> &'static str {
    match explained.explanation.access() {
        AccessClass::Point => "Point read",
        AccessClass::RowRange => "Row range",
        AccessClass::Partition => "Partition",
        AccessClass::Scan if question.is_all() => "First entities",
        AccessClass::Scan => "Table scan",
    }
}

fn tone(explained: &Explained, question: &Question) -> &'static str {
    match explained.explanation.access() {
        AccessClass::Point | AccessClass::RowRange => "pill good",
        AccessClass::Partition => "pill warn",
        AccessClass::Scan if question.is_all() => "pill",
        AccessClass::Scan if explained.is_small => "pill warn",
        AccessClass::Scan => "pill bad",
    }
}

fn price(explained: &Explained, question: &Question) -> &'static str {
    match explained.explanation.access() {
        AccessClass::Scan if question.is_all() => "no condition · 1 request for a page of 1,000",
        AccessClass::Scan if explained.is_small => "the whole table is looked at · it was one page",
        AccessClass::Point => "one entity by its keys · 1 request",
        access => cost(access),
    }
}

const ROWS: &str = "000145 is one key, 0001* those that begin with it, 000100..000200 those from 000100 on and before 000200";
const REQUEST_CHARS_MAX: usize = 200;
