//! `/review`: the staged changes as the requests that would be sent, and what became of those that were.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use tablesdk::{DynamicEntity, Timestamp, Value};

use super::super::app::App;
use super::super::bar::{self, counts, of_plan};
use super::super::frame::{Content, Frame, Tab};
use super::super::posted::Change as Changes;
use super::super::problem;
use super::super::settings::Sent;
use super::super::staged::{
    Cell, Change, Entry, Now, Outcome, Plan, Refused, Report, Resolution, State as Became,
    Transaction, rows,
};
use super::super::url;
use crate::escape::{harmless, key, shortened};
use crate::output::counted;
use crate::show::cell;

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

/// What the page shows, of one moment.
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

    /// What became of the last plan, in a line.
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

    /// Whether nothing is left to be decided or sent.
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

/// What became of a plan, in words.
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
        &|it| matches!(it.1, Outcome::Sent),
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

/// Whether an insert of a transaction has met an entity.
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
    let sent = transactions.filter(|it| matches!(it.1, Outcome::Sent));
    sent.map(|(transaction, _)| transaction)
}

/// What has to be done after what was carried out.
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

/// What was read, and what becomes of it.
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

/// A change that needs a decision: the versions side by side, and what can become of it.
fn question(app: &App, entry: &Entry, is_first: bool) -> Markup {
    let (now, unknown) = match &entry.state {
        Became::Conflict(now) => (now, None),
        Became::Unknown(now, text) => (now, Some(text)),
        Became::Waiting | Became::Failed(_) => return html! {},
    };
    let (change, is_unknown) = (&entry.change, unknown.is_some());
    let wanted = change.wanted();
    let rows = rows(change.base.as_ref(), now.entity(), wanted.as_ref());
    let has_base = change.base.is_some();
    html! {
        section.card {
            h2 tabindex="-1" autofocus[is_first] {
                @match (is_unknown, is_taken(change, now)) {
                    (true, _) => span.pill.warn { "outcome unknown" },
                    (false, true) => span.pill.bad { "already exists" },
                    (false, false) => span.pill.bad { "changed since" },
                }
                (harmless(&change.target.table)) " · " (keys(change)) " · " (what_is_stored(change, now, is_unknown))
            }
            @if let Some(text) = unknown { p.reason { (text) } }
            @if !rows.is_empty() && now.entity().is_some() {
                table.versions {
                    thead { tr {
                        th scope="col" { "Property" }
                        @if has_base { th scope="col" { "As you read it" } }
                        th scope="col" { "Stored now" }
                        th scope="col" { "Yours" }
                    } }
                    tbody {
                        @for row in &rows {
                            tr {
                                th scope="row" { (harmless(row.name)) }
                                @if has_base { td.mono { (value(change.base.as_ref(), row.name)) } }
                                (version(row.now, "now"))
                                @if wanted.is_some() { (version(row.yours, "yours")) } @else { td.muted { "deleted" } }
                            }
                        }
                    }
                }
            }
            @if app.rights.refusal().is_none() { (decisions(app, entry, now, is_unknown)) }
        }
    }
}

fn what_is_stored(change: &Change, now: &Now, is_unknown: bool) -> String {
    if is_unknown {
        return match now {
            Now::Unread(reason) => format!("it may or may not be stored: {reason}"),
            now if change.is_stored_in(now) => "what is stored now is what you sent".to_owned(),
            Now::Missing => "the entity does not exist now".to_owned(),
            Now::Present(_) => "what is stored now is not what you sent".to_owned(),
        };
    }
    match (now, change.etag()) {
        (Now::Missing, _) => "another client deleted it · nothing of yours was stored".to_owned(),
        (Now::Unread(reason), _) => {
            format!("nothing of yours was stored · what is there cannot be read: {reason}")
        }
        (Now::Present(_), None) => {
            "an entity with these keys exists · nothing of yours was stored".to_owned()
        }
        (Now::Present(version), Some(_)) => {
            let time = version.etag.timestamp();
            let time = time.map(|time| format!(" at {time}")).unwrap_or_default();
            format!("another client wrote it{time} · nothing of yours was stored")
        }
    }
}

/// Whether an insert has met an entity with its keys.
const fn is_taken(change: &Change, now: &Now) -> bool {
    change.etag().is_none() && matches!(now, Now::Present(_))
}

fn decisions(app: &App, entry: &Entry, now: &Now, is_unknown: bool) -> Markup {
    let change = &entry.change;
    let (is_delete, is_stored) = (change.sent().is_none(), change.is_stored_in(now));
    let difference = change.difference();
    let names: Vec<_> = difference.names().map(harmless).collect();
    let names = match &*names {
        [] => "your change".to_owned(),
        names if names.len() > NAMES_MAX => format!("{} properties", names.len()),
        names => names.join(", "),
    };
    let can = |how| change.resolved(now, how).is_some();
    let (is_taken, is_gone) = (is_taken(change, now), matches!(now, Now::Missing));
    let target = &change.target;
    html! {
        form.actions method="post" action="/review/resolve" {
            (app.gate.token_field())
            input type="hidden" name="id" value=(entry.id);
            @if is_unknown && !is_stored {
                button.button.primary name="how" value="again" { "Stage it again" }
            }
            @if is_taken && !is_stored {
                a.button.primary[!is_unknown] href=(url::entity(&target.table, &target.partition, &target.row)) { "Change the keys" }
            }
            @if can(Resolution::Apply) {
                @if is_delete {
                    button.button.danger name="how" value="apply" { "Stage delete of the stored version" }
                } @else {
                    button.button.primary[!is_unknown && !is_taken] name="how" value="apply" { "Stage " (names) " on the stored version" }
                }
            }
            button.button name="how" value="keep" {
                @if is_stored { "It is done" } @else if is_gone { "Leave it deleted" } @else { "Keep the stored version" }
            }
            @if !is_delete && !is_stored && can(Resolution::Replace) {
                button.button.quiet name="how" value="replace" {
                    @if is_gone { "Stage insert of mine" } @else { "Stage replace with mine" }
                }
            }
            @if is_unknown && !is_stored { span.muted { "Sent again, it is carried out only if it was not: its condition names the version that you read." } }
        }
    }
}

fn version(shown: Cell<'_>, class: &str) -> Markup {
    let class = if shown.is_changed { class } else { "same" };
    html! { td class={ "mono " (class) } { (shown.value.map(short).unwrap_or_default()) } }
}

fn value(entity: Option<&DynamicEntity>, name: &str) -> String {
    let value = entity.and_then(|it| it.properties().get(name));
    value.map(short).unwrap_or_default()
}

fn short(value: &Value) -> String {
    shortened(&cell(value), VALUE_MAX)
}

fn keys(change: &Change) -> String {
    let target = &change.target;
    shortened(&key(&target.partition, &target.row), KEY_MAX)
}

/// A message as a sentence.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|it| it.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), chars.as_str())
}

const KEY_MAX: usize = 80;
const VALUE_MAX: usize = 200;
const NAMES_MAX: usize = 4;
/// How many properties of a change are listed.
const BECOMES_MAX: usize = 40;
