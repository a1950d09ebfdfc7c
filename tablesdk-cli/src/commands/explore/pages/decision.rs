//! A change that needs a decision, as a part of the review: the versions side by side, and what can
//! become of it.

use maud::{Markup, html};
use tablesdk::{DynamicEntity, Value};

use super::super::app::App;
use super::super::staged::{Cell, Change, Entry, Now, Resolution, State, rows};
use super::super::url;
use crate::escape::{harmless, key, shortened};
use crate::show::cell;

/// A change that needs a decision: the versions side by side, and what can become of it.
pub(super) fn question(app: &App, entry: &Entry, is_first: bool) -> Markup {
    let (now, unknown) = match &entry.state {
        State::Conflict(now) => (now, None),
        State::Unknown(now, text) => (now, Some(text)),
        State::Waiting | State::Failed(_) => return html! {},
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

/// Returns true if an insert found an entity with its keys.
pub(super) const fn is_taken(change: &Change, now: &Now) -> bool {
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

pub(super) fn short(value: &Value) -> String {
    shortened(&cell(value), VALUE_MAX)
}

pub(super) fn keys(change: &Change) -> String {
    let target = &change.target;
    shortened(&key(&target.partition, &target.row), KEY_MAX)
}

/// How many characters of the keys of an entity are shown.
pub(super) const KEY_MAX: usize = 80;
const VALUE_MAX: usize = 200;
const NAMES_MAX: usize = 4;
