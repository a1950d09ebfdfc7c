//! `/review`: the staged changes as the requests that would be sent, and what became of those that
//! were.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use tablesdk::{Timestamp, Value};

use super::super::app::App;
use super::super::bar::{self, counts, of_plan};
use super::super::frame::{Content, Frame, Tab};
use super::super::posted::Change as Changes;
use super::super::problem;
use super::super::settings::Sent;
use super::super::staged::{
    Change, Entry, Outcome, Plan, Refused, Report, Resolution, State as Became, Transaction,
};
use super::decision::{KEY_MAX, is_taken, keys, question, short};
use crate::escape::{harmless, shortened};
use crate::output::counted;

/// `/review`
pub(crate) async fn show(State(app): State<Arc<App>>) -> Response {
    page(app, None).await
}

/// Sends the plan that was reviewed.
pub(crate) async fn send(State(app): State<Arc<App>>, Changes(posted): Changes) -> Response {
    let Ok(number) = posted.get("plan").parse() else {
        return problem::refused(&problem::Refusal::Incomplete);
    };
    let begun = app.staged().begin(number);
    let plan = match begun {
        Ok(plan) => plan,
        Err(refused) => return page(app, Some(refused)).await,
    };
    // A browser that does not wait for the answer ends nothing.
    let sending = tokio::spawn({
        let app = Arc::clone(&app);
        async move {
            let at = app.service.now();
            let report = super::super::staged::send(&app.service, plan).await;
            let record = of_history(&report, at);
            app.staged().finish(report);
            app.settings.later(move |it| it.record_sent(&record));
        }
    });
    match sending.await {
        Ok(()) => Redirect::to("/review").into_response(),
        Err(error) => {
            // All changes stay, and their conditions see to it that none is carried out twice.
            app.staged().finish(Report::default());
            problem::shown(&error).into_response()
        }
    }
}

/// Removes one change, or all that were shown.
pub(crate) async fn discard(State(app): State<Arc<App>>, Changes(posted): Changes) -> Response {
    let discarded = match (posted.get("id"), posted.get("plan").parse()) {
        ("all", Ok(number)) => app.staged().discard_all(number),
        (id, _) => match id.parse() {
            Ok(id) => app.staged().discard(id),
            Err(_) => return problem::refused(&problem::Refusal::Incomplete),
        },
    };
    done(app, discarded).await
}

/// Decides what becomes of a change whose entity has another version now.
pub(crate) async fn resolve(State(app): State<Arc<App>>, Changes(posted): Changes) -> Response {
    let Ok(id) = posted.get("id").parse() else {
        return problem::refused(&problem::Refusal::Incomplete);
    };
    let resolved = match posted.get("how") {
        "apply" => app.staged().resolve(id, Resolution::Apply),
        "keep" => app.staged().resolve(id, Resolution::Keep),
        "replace" => app.staged().resolve(id, Resolution::Replace),
        "again" => app.staged().try_again(id),
        _ => return problem::refused(&problem::Refusal::Incomplete),
    };
    done(app, resolved).await
}

/// Stages again what was discarded.
pub(crate) async fn restore(State(app): State<Arc<App>>, _: Changes) -> Response {
    let restored = app.staged().restore();
    done(app, restored).await
}

/// Forgets what became of the last plan, or what was discarded.
pub(crate) async fn dismiss(State(app): State<Arc<App>>, Changes(posted): Changes) -> Response {
    let mut staged = app.staged();
    match posted.get("what") {
        "discarded" => staged.forget_discarded(),
        _ => staged.dismiss_report(),
    }
    Redirect::to("/review").into_response()
}

async fn done(app: Arc<App>, done: Result<(), Refused>) -> Response {
    match done {
        Ok(()) => Redirect::to("/review").into_response(),
        Err(refused) => page(app, Some(refused)).await,
    }
}

/// The page, with what was refused.
async fn page(app: Arc<App>, refused: Option<Refused>) -> Response {
    let is_refused = refused.is_some();
    let shown = Shown::of(&app);
    let frame = Frame {
        title: "Review".to_owned(),
        table: None,
        tab: Tab::Review,
        tools: shown.back(&app),
        query: shown.summary(&app.gate.token_field()),
    };
    let content = Content {
        main: shown.main(&app, refused.as_ref()),
        panel: None,
        foot: shown.foot(),
    };
    let mut response = frame.respond(app, async { content }).await;
    if is_refused {
        *response.status_mut() = StatusCode::CONFLICT;
    }
    response
}

/// The state that the page shows, of one moment.
struct Shown {
    plan: Plan,
    /// The changes that need a decision.
    open: Vec<Entry>,
    report: Option<Arc<Report>>,
    /// How many changes can be restored.
    discarded: usize,
    is_sending: bool,
    /// The table of the first change, also if that was discarded or sent.
    table: Option<String>,
}

impl Shown {
    fn of(app: &App) -> Self {
        let staged = app.staged();
        let entries = staged.entries();
        let open = entries.iter().filter(|it| it.state.is_open());
        let report = staged.report().cloned();
        let sent = report.iter().flat_map(|it| &it.transactions);
        let sent = sent
            .map(|(transaction, _)| transaction.table.clone())
            .next();
        let first = entries.first().or_else(|| staged.discarded().first());
        let first = first.map(|it| it.change.target.table.clone());
        Self {
            plan: staged.plan(),
            open: open.cloned().collect(),
            discarded: staged.discarded().len(),
            is_sending: staged.is_sending(),
            table: first.or(sent),
            report,
        }
    }

    fn back(&self, app: &App) -> Markup {
        html! {
            @match &self.table {
                Some(table) => a.button.quiet href=(app.tables.last(table)) { "Back to " (harmless(table)) },
                None => a.button.quiet href="/" { "Tables" },
            }
        }
    }

    /// The outcome of the last plan, in a line.
    fn summary(&self, token: &Markup) -> Markup {
        let Some(report) = &self.report else {
            return html! {};
        };
        let (sent, all) = report.sent();
        // What is below is another plan.
        if sent == all && !self.is_done() {
            return html! {};
        }
        let tone = if sent == all {
            "pill good"
        } else {
            "pill warn"
        };
        html! {
            // After the result, the focus is on what has to be decided or sent, if there is any.
            div.access role="status" tabindex="-1" autofocus[self.is_done()] {
                span class=(tone) { (sent) " of " (all) " stored" }
                span { (told(report)) }
                form.end method="post" action="/review/dismiss" {
                    (token)
                    button.link { "Dismiss" }
                }
            }
        }
    }

    fn main(&self, app: &App, refused: Option<&Refused>) -> Markup {
        if self.is_sending {
            return html! {
                p.sending role="status" data-again="1" {
                    span.spinner {} "The changes are being sent…"
                    noscript { a.button href="/review" { "Look again" } }
                }
            };
        }
        let token = app.gate.token_field();
        let mends = self.report.iter().flat_map(|it| mends(it)).collect();
        let is_empty = self.is_done() && self.report.is_none();
        html! {
            div.review {
                @if let Some(refused) = refused { (problem::notice("not done", &sentence(&refused.to_string()), html! {})) }
                (to_mend(&mends))
                @if self.discarded > 0 { (bar::discarded(app, self.discarded)) }
                @for (index, entry) in self.open.iter().enumerate() { (question(app, entry, index == 0)) }
                @let count = self.plan.transactions.len();
                @for (index, transaction) in self.plan.transactions.iter().enumerate() {
                    (waiting(transaction, index + 1, count, &token, index == 0 && self.open.is_empty()))
                }
                @if is_empty {
                    section.card.notice {
                        p tabindex="-1" autofocus { strong { "Nothing is staged." } }
                        p.muted { "A change of an entity is collected here, and sent from here alone." }
                    }
                }
                @if app.rights.refusal().is_none() && !self.plan.transactions.is_empty() { (send_form(&self.plan, &token)) }
                @if let Some(report) = &self.report { (sent(report)) }
            }
        }
    }

    /// Returns true if nothing is left to decide or to send.
    fn is_done(&self) -> bool {
        self.plan.transactions.is_empty() && self.open.is_empty()
    }

    fn foot(&self) -> Markup {
        let Some(report) = &self.report else {
            return html! {};
        };
        let requests = report.requests as u64;
        html! {
            span { (counted(requests, "request", "requests")) " sent, " (report.elapsed.as_millis()) " ms" }
        }
    }
}

/// A report for the history.
fn of_history(report: &Report, at: Timestamp) -> Sent {
    let mut tables: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for (transaction, _) in &report.transactions {
        let entries = tables.entry(&transaction.table).or_default();
        entries.extend(&transaction.entries);
    }
    let changes = tables.iter().map(|(table, entries)| {
        let counts = counts(entries.iter().copied());
        format!("{table}: {counts}")
    });
    let (sent, all) = report.sent();
    Sent {
        changes: changes.collect::<Vec<_>>().join("; "),
        outcome: format!("{sent} of {all} stored, {}", told(report)),
        requests: report.requests as u64,
        milliseconds: u64::try_from(report.elapsed.as_millis()).unwrap_or(u64::MAX),
        at: at.to_string(),
    }
}

/// The outcome of a plan, in words.
fn told(report: &Report) -> String {
    let mut parts = Vec::new();
    let mut part = |is: &dyn Fn(&(Transaction, Outcome)) -> bool, one: &str, several: &str| {
        let count = report.transactions.iter().filter(|it| is(it)).count();
        match count {
            0 => {}
            1 => parts.push(format!("one {one}")),
            count => parts.push(format!("{count} {several}")),
        }
    };
    part(
        &|it| it.1.is_sent(),
        "request was carried out",
        "requests were carried out",
    );
    part(
        &has_met_keys,
        "met an entity with its keys",
        "met entities with their keys",
    );
    part(
        &|it| matches!(it.1, Outcome::Conflict { .. }) && !has_met_keys(it),
        "met another version",
        "met another version",
    );
    part(
        &|it| matches!(it.1, Outcome::Failed { .. }),
        "was refused",
        "were refused",
    );
    part(
        &|it| matches!(it.1, Outcome::Unknown { .. }),
        "has an unknown outcome",
        "have an unknown outcome",
    );
    part(
        &|it| matches!(it.1, Outcome::NotSent),
        "was not sent",
        "were not sent",
    );
    let (sent, all) = report.sent();
    let is_unknown = |it: &(Transaction, Outcome)| matches!(it.1, Outcome::Unknown { .. });
    match sent {
        _ if report.transactions.iter().any(is_unknown) => {
            format!("not known what is stored: {}", parts.join(", "))
        }
        0 => format!("nothing was stored: {}", parts.join(", ")),
        sent if sent == all => parts.join(", "),
        _ => format!("partly sent: {}", parts.join(", ")),
    }
}

/// Returns true if an insert of a transaction found an entity.
fn has_met_keys((transaction, outcome): &(Transaction, Outcome)) -> bool {
    let Outcome::Conflict { index, now } = outcome else {
        return false;
    };
    let met = transaction.entries.get(*index);
    met.is_some_and(|entry| is_taken(&entry.change, now))
}

/// The transactions that were carried out.
fn carried_out(report: &Report) -> impl Iterator<Item = &Transaction> {
    let transactions = report.transactions.iter();
    let sent = transactions.filter(|it| it.1.is_sent());
    sent.map(|(transaction, _)| transaction)
}

/// The repairs that are needed after the changes that were carried out.
fn mends(report: &Report) -> impl Iterator<Item = &String> {
    let entries = carried_out(report).flat_map(|it| &it.entries);
    entries.flat_map(|entry| &entry.change.mends)
}

fn to_mend(mends: &BTreeSet<&String>) -> Markup {
    html! {
        @if !mends.is_empty() {
            section.card.notice role="alert" {
                p { span.pill.warn { "to mend" } " " strong { "Entities of the library may be stale now." } }
                ul { @for mend in mends { li { "Now " (mend) "." } } }
            }
        }
    }
}

fn sent(report: &Report) -> Markup {
    html! {
        @for transaction in carried_out(report) {
            section.card {
                h2 { span.pill.good { "sent" } (title(transaction, "")) }
                (requests(transaction, None))
            }
        }
    }
}

/// A transaction that would be sent.
fn waiting(
    transaction: &Transaction,
    number: usize,
    count: usize,
    token: &Markup,
    is_first: bool,
) -> Markup {
    let failed = transaction.entries.iter().find_map(|it| match &it.state {
        Became::Failed(text) => Some((it, text)),
        _ => None,
    });
    html! {
        section.card {
            h2 tabindex="-1" autofocus[is_first] {
                @if failed.is_some() { span.pill.bad { "failed" } } @else { span.pill.staged { "to send" } }
                (title(transaction, &format!(" {number} of {count}")))
            }
            @if let Some((entry, text)) = failed {
                p.reason role="alert" {
                    @if transaction.entries.len() > 1 { strong { (keys(&entry.change)) } " " }
                    (text) ". Nothing of this transaction was stored."
                }
            }
            (requests(transaction, Some(token)))
        }
    }
}

fn title(transaction: &Transaction, number: &str) -> String {
    let partition = shortened(&harmless(&transaction.partition), KEY_MAX);
    let table = harmless(&transaction.table);
    let place = format!("{number} · {table} · partition {partition}");
    match transaction.entries.len() {
        1 => format!("Request{place} · 1 change"),
        changes => format!("Transaction{place} · {changes} changes, one request"),
    }
}

/// The requests of a transaction. With the token of a form, each can be discarded.
fn requests(transaction: &Transaction, token: Option<&Markup>) -> Markup {
    html! {
        ol.requests {
            @for entry in &transaction.entries {
                @let request = entry.change.request();
                li {
                    div.request {
                        code {
                            span { (request.line) }
                            @if let Some(etag) = &request.if_match { span.muted { "If-Match: " (etag) } }
                            @if let Some(body) = &request.body { span.body { (body) } }
                        }
                        (becomes(&entry.change))
                    }
                    @if let Some(token) = token {
                        form method="post" action="/review/discard" {
                            (token)
                            button.link name="id" value=(entry.id) aria-label={ "Discard the change of " (keys(&entry.change)) } { "Discard" }
                        }
                    }
                }
            }
        }
    }
}

/// The version that was read, and the effect of the change on it.
fn becomes(change: &Change) -> Markup {
    let (Some(base), difference) = (&change.base, change.difference()) else {
        return html! {};
    };
    let further = difference.names().count().saturating_sub(BECOMES_MAX);
    html! {
        @if !difference.is_empty() {
            div.becomes.mono {
                @for name in difference.names().take(BECOMES_MAX) {
                    span {
                        (harmless(name)) ": " del { (or_absent(base.properties().get(name))) } " → "
                        ins { (or_absent(change.sent().and_then(|it| it.properties().get(name)))) }
                    }
                }
                @if further > 0 { span.muted { (further) " more" } }
            }
        }
    }
}

fn or_absent(value: Option<&Value>) -> String {
    value.map_or_else(|| "absent".to_owned(), short)
}

fn send_form(plan: &Plan, token: &Markup) -> Markup {
    let changes = counted(plan.changes() as u64, "change", "changes");
    html! {
        form.send method="post" action="/review/send" {
            (token)
            input type="hidden" name="plan" value=(plan.number);
            span { (of_plan(plan)) }
            span.end {}
            button.button.quiet name="id" value="all" formaction="/review/discard" { "Discard" }
            button.button.staged title="Ctrl+Enter" aria-keyshortcuts="Control+Enter" { "Send " (changes) }
        }
    }
}

/// A message as a sentence.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|it| it.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), chars.as_str())
}

/// How many properties of a change are listed.
const BECOMES_MAX: usize = 40;
