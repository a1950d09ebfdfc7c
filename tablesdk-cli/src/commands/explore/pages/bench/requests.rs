//! `/bench/requests`: the requests as they come, the details of one, and faults for the next one.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use futures::{join, try_join};
use maud::{Markup, html};
use serde::Deserialize;

use super::super::super::app::App;
use super::super::super::frame::Content;
use super::super::super::kit::{Kit, KitError, Request, Rule, Snapshot};
use super::super::super::posted::Posted;
use super::super::super::url;
use super::request_row::{COLUMNS, access, contains, gap, href, keys, operation, row, status};
use super::{Around, View, ended, failure, hidden, kit_of, page, rule, seconds};
use crate::escape::harmless;
use crate::output::counted;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Watched {
    find: String,
    selected: String,
}

impl Watched {
    fn selected(&self) -> Option<u64> {
        self.selected.parse().ok()
    }
}

/// `/bench/requests?find=TEXT&selected=NUMBER`
pub(crate) async fn show(State(app): State<Arc<App>>, Query(watched): Query<Watched>) -> Response {
    let kit = kit_of!(app, View::Requests);
    let (around, seen) = join!(Around::read(&kit), Seen::read(&kit));
    let (query, content) = match (&seen, &around.rules) {
        (Ok(seen), Ok(rules)) => (
            bar(&app, &watched, seen),
            content(&app, &kit, &watched, seen, rules),
        ),
        (Err(error), _) | (_, Err(error)) => (html! {}, failure(error)),
    };
    page(app, View::Requests, &around, query, content).await
}

/// `/bench/requests/after/NUMBER?find=TEXT`: the rows of the requests that came since, for the
/// script.
pub(crate) async fn newer(
    State(app): State<Arc<App>>,
    Path(number): Path<u64>,
    Query(Watched { find, .. }): Query<Watched>,
) -> Response {
    let Some(kit) = &app.kit else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match kit.requests_after(number).await {
        Ok(requests) => rows(&requests, number, &find, None).into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

/// Forgets all requests so far.
pub(crate) async fn forget(State(app): State<Arc<App>>, _: Posted) -> Response {
    let kit = kit_of!(app, View::Requests);
    let forgotten = kit.forget_requests().await;
    ended(app, View::Requests, forgotten, View::Requests.path()).await
}

/// The requests that the kit has recorded.
struct Seen {
    requests: Vec<Request>,
    /// The last snapshot.
    snapshot: Option<Snapshot>,
}

impl Seen {
    async fn read(kit: &Kit) -> Result<Self, KitError> {
        let (requests, mut snapshots) = try_join!(kit.requests_after(0), kit.snapshots())?;
        Ok(Self {
            requests,
            snapshot: snapshots.pop(),
        })
    }

    fn last(&self) -> u64 {
        self.requests.last().map_or(0, |request| request.number)
    }

    fn request(&self, number: u64) -> Option<&Request> {
        self.requests.iter().find(|it| it.number == number)
    }
}

/// The state of the view, and the search.
fn bar(app: &App, watched: &Watched, seen: &Seen) -> Markup {
    let (since, count) = match &seen.snapshot {
        Some(it) => (format!("since snapshot {}", it.id), it.requests_since),
        None => ("since the start".to_owned(), seen.last()),
    };
    let counts = Counts::of(&seen.requests);
    html! {
        div.watch #watch {
            span.muted {
                b data-count="requests" { (count) } " requests " (since)
                " · table scans: " b data-count="scans" { (counts.scans) }
                " · with a fault: " b data-count="faults" { (counts.faults) }
            }
            span.end {}
            form action="/bench/requests" method="get" role="search" {
                input type="search" name="find" value=(watched.find) placeholder="operation, table, key, status" aria-label="Find requests" autocomplete="off" spellcheck="false";
            }
            a.button #refresh href={ "/bench/requests" (url::query([("find", &*watched.find)])) } { "Refresh" }
            form method="post" action="/bench/requests/forget" {
                (hidden(app, View::Requests))
                button.button { "Clear" }
            }
        }
    }
}

/// How many requests are remarkable.
struct Counts {
    scans: usize,
    faults: usize,
}

impl Counts {
    fn of(requests: &[Request]) -> Self {
        let is_scan = |request: &&Request| request.access.as_deref() == Some("scan");
        Self {
            scans: requests.iter().filter(is_scan).count(),
            faults: requests.iter().filter(|it| it.fault.is_some()).count(),
        }
    }
}

fn content(app: &App, kit: &Kit, watched: &Watched, seen: &Seen, rules: &[Rule]) -> Content {
    let selected = watched.selected();
    let panel = selected.map(|number| match seen.request(number) {
        Some(request) => details(app, watched, seen, rules, request),
        None => html! {
            h2 { "Request " (number) }
            p.muted { "It is not among the last 1,000 requests that the server keeps." }
        },
    });
    Content {
        main: html! {
            @if seen.requests.is_empty() { (nothing(app, kit)) }
            (grid(watched, seen))
        },
        panel: panel.map(|panel| html! { div.details { (panel) } }),
        foot: inject(app, watched, seen),
    }
}

fn nothing(app: &App, kit: &Kit) -> Markup {
    html! {
        section.card.notice #nothing {
            p { strong { "The server has recorded no request, or has forgotten them." } }
            p.muted {
                "Run a program or a test against the server, at " code { (app.service.endpoint()) } " for example. "
                "Its requests appear here. The kit is at " code { (kit.url()) } "."
            }
        }
    }
}

fn grid(watched: &Watched, seen: &Seen) -> Markup {
    html! {
        table.grid #grid data-live data-paused[watched.selected().is_some()] {
            caption.hidden { "Requests, the last one at the end" }
            colgroup {
                @for (_, width) in COLUMNS { col width=(width); }
                col;
            }
            thead {
                tr {
                    @for (name, _) in COLUMNS { (heading(name)) }
                    th aria-hidden="true" {}
                }
            }
            (body(&seen.requests, 0, &watched.find, watched.selected()))
        }
        @if !seen.requests.is_empty() && !seen.requests.iter().any(|it| contains(it, &watched.find)) {
            section.card.notice #nothing {
                p { strong { "No request has " span.mono { (harmless(&watched.find)) } " in it." } }
                p.muted { "The search looks at the last 1,000 requests, in what a row shows and in filters." }
            }
        }
    }
}

fn heading(name: &str) -> Markup {
    match name {
        "Keys" => html! { th.key scope="col" { (name) } },
        "No." => html! { th.number scope="col" { (name) } },
        "Entities examined" => html! { th.number scope="col" { "Entities " small { "examined" } } },
        _ => html! { th scope="col" { (name) } },
    }
}

fn rows(requests: &[Request], after: u64, find: &str, selected: Option<u64>) -> Markup {
    html! { table { (body(requests, after, find, selected)) } }
}

/// The rows of those requests that have a text in them, and what the script adds to the counts.
fn body(requests: &[Request], after: u64, find: &str, selected: Option<u64>) -> Markup {
    let counts = Counts::of(requests);
    let last = requests.last().map_or(after, |request| request.number);
    let mut before = after;
    html! {
        tbody data-last=(last) data-requests=(last.saturating_sub(after)) data-scans=(counts.scans) data-faults=(counts.faults) {
            @for request in requests {
                @let missing = request.number.saturating_sub(before.saturating_add(1));
                @if missing > 0 && find.is_empty() { (gap(missing)) }
                @if contains(request, find) { (row(request, find, selected)) }
                @let () = before = request.number;
            }
        }
    }
}

/// The panel of one request.
fn details(app: &App, watched: &Watched, seen: &Seen, rules: &[Rule], request: &Request) -> Markup {
    html! {
        header {
            h2 { (operation(request)) @if request.fault.is_some() { " — with a fault" } }
            a.button.quiet href={ "/bench/requests" (url::query([("find", &*watched.find)])) } aria-label="Close the details" { "✕" }
        }
        p.muted { (harmless(request.table.as_deref().unwrap_or("no table"))) " · " (seconds(&request.time)) }
        @if let Some(fault) = &request.fault {
            section.card.bad {
                p { strong { (harmless(&fault.text)) } }
                @match fault.rule {
                    Some(id) => { (of_rule(app, rules, id)) }
                    None => { p.muted { "It was the throttle, or a range of partitions that moves. " a href="/bench/faults" { "Its rates" } } }
                }
            }
        }
        dl {
            (asked(request))
            (answered(request))
            (attempts(watched, seen, request))
        }
    }
}

/// Which rule a fault came from.
fn of_rule(app: &App, rules: &[Rule], id: u64) -> Markup {
    let rule = rules.iter().find(|rule| rule.id == id);
    html! {
        @match rule {
            Some(found) => {
                p.muted { "By rule " (id) ": " (rule::conditions(found)) }
                form method="post" action="/bench/faults/remove" {
                    (hidden(app, View::Requests))
                    input type="hidden" name="id" value=(id);
                    button.button { "Remove rule " (id) }
                }
            }
            None => { p.muted { "By rule " (id) ", which is not in force any more." } }
        }
    }
}

/// The facts of a request.
fn asked(request: &Request) -> Markup {
    let size = counted(request.bytes_in, "byte", "bytes");
    html! {
        @if let [entity] = &*request.entities {
            (fact("PartitionKey", &html! { span.mono.key { (harmless(&entity.partition_key)) } }))
            (fact("RowKey", &html! { span.mono.key { (harmless(&entity.row_key)) } }))
        } @else if request.partition_key.is_some() {
            (fact("Keys", &html! { span.mono.key { (harmless(&keys(request))) } }))
        }
        @if request.entities.len() > 1 {
            (fact("Changes", &html! {
                ol { @for entity in &request.entities { li { (entity.operation) " " span.mono.key { (harmless(&entity.row_key)) } } } }
            }))
        }
        @if request.access.is_some() { (fact("Access", &access(request))) }
        @if let Some(filter) = &request.filter { (fact("Filter", &html! { span.mono { (harmless(filter)) } })) }
        @if let Some(refusal) = &request.filter_refusal {
            (fact("Azure", &html! { span.failed { "refuses the filter: " (harmless(refusal)) } }))
        }
        @if let Some(select) = &request.select { (fact("Select", &html! { span.mono { (harmless(&select.join(", "))) } })) }
        @if let Some(top) = request.top { (fact("Top", &html! { (top) })) }
        @if request.is_continuation { (fact("Page", &html! { "a page after the first" })) }
        (fact("Body", &html! { (size) }))
    }
}

/// The facts of a response.
fn answered(request: &Request) -> Markup {
    let size = counted(request.bytes_out, "byte", "bytes");
    html! {
        (fact("Response", &html! { (status(request)) ", " (size) }))
        @if request.access.is_some() {
            (fact("Entities", &html! { (request.entities_returned) " returned, " (request.entities_examined) " examined" }))
        }
    }
}

/// All attempts of a request: they have the same id of the client.
fn attempts(watched: &Watched, seen: &Seen, request: &Request) -> Markup {
    let Some(id) = &request.client_request_id else {
        return html! {};
    };
    let same = |other: &&Request| other.client_request_id.as_ref() == Some(id);
    let attempts: Vec<_> = seen.requests.iter().filter(same).collect();
    html! {
        (fact("Client id", &html! { span.mono { (harmless(id)) } }))
        @if attempts.len() > 1 {
            (fact("Attempts", &html! {
                ol {
                    @for other in attempts {
                        li { a href=(href(other.number, &watched.find)) { "No. " (other.number) } " " (status(other)) }
                    }
                }
            }))
        }
    }
}

fn fact(name: &str, value: &Markup) -> Markup {
    html! { dt { (name) } dd { (value) } }
}

/// The faults of one click, for the next request that matches. The fields are those of the selected
/// request.
fn inject(app: &App, watched: &Watched, seen: &Seen) -> Markup {
    let selected = watched.selected().and_then(|number| seen.request(number));
    let [mut name, mut table, mut partition, mut row] = [""; 4];
    if let Some(request) = selected {
        name = request.operation.as_deref().unwrap_or_default();
        table = request.table.as_deref().unwrap_or_default();
        partition = request.partition_key.as_deref().unwrap_or_default();
        if let [entity] = &*request.entities {
            row = &entity.row_key;
        }
    }
    html! {
        form.inject method="post" action="/bench/faults" {
            (hidden(app, View::Requests))
            input type="hidden" name="find" value=(watched.find);
            input type="hidden" name="selected" value=(watched.selected);
            input type="hidden" name="times" value="1";
            strong { "Inject" }
            button.button name="preset" value="lost" title="Carry out the request, and reset the connection" { "Lost response" }
            button.button name="preset" value="busy" title="Refuse the request with 503 ServerBusy" { "Throttle 503" }
            button.button name="preset" value="delay" title="Carry out the request 2 seconds later" { "Delay 2 s" }
            button.button name="preset" value="reset" title="Reset the connection before the request is carried out" { "Reset" }
            a.button href="/bench/faults#add" { "Chaos…" }
            span.muted { "into the next" }
            select name="operation" aria-label="Operation" { (rule::operations(name)) }
            input name="table" value=(table) placeholder="any table" aria-label="Table" autocomplete="off" spellcheck="false";
            input.key name="pk" value=(partition) placeholder="any partition" aria-label="PartitionKey" autocomplete="off" spellcheck="false";
            input.key name="rk" value=(row) placeholder="any row" aria-label="RowKey" autocomplete="off" spellcheck="false";
        }
    }
}
