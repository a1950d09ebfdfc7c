//! `/bench/faults`: the rules in force with their hits, the throttle, and new rules.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use futures::join;
use maud::{Markup, html};
use serde_json::{Value as Json, json};

use super::super::super::app::App;
use super::super::super::frame::Content;
use super::super::super::kit::{Rule, Throttle, number, object};
use super::super::super::posted::Posted;
use super::super::super::url;
use super::{Around, View, ended, failure, hidden, kit_of, page, rule};
use crate::escape::harmless;

/// `/bench/faults`
pub(crate) async fn show(State(app): State<Arc<App>>) -> Response {
    let kit = kit_of!(app, View::Faults);
    let (around, throttle) = join!(Around::read(&kit), kit.throttle());
    let content = match (&around.rules, &throttle) {
        (Ok(rules), Ok(throttle)) => content(&app, rules, throttle),
        (Err(error), _) | (_, Err(error)) => failure(error),
    };
    page(app, View::Faults, &around, html! {}, content).await
}

/// Adds a rule.
pub(crate) async fn add(State(app): State<Arc<App>>, posted: Posted) -> Response {
    let kit = kit_of!(app, View::Faults);
    let view = View::back(posted.get("view"));
    let query = url::query(["find", "selected"].map(|name| (name, posted.get(name))));
    let added = kit.add_rule(&rule_of(&posted)).await;
    ended(app, view, added, format!("{}{query}", view.path())).await
}

/// Removes a rule.
pub(crate) async fn remove(State(app): State<Arc<App>>, posted: Posted) -> Response {
    let kit = kit_of!(app, View::Faults);
    let view = View::back(posted.get("view"));
    let removed = kit.remove_rule(posted.get("id")).await;
    ended(app, view, removed, view.path()).await
}

/// Removes all rules and the throttle.
pub(crate) async fn clear(State(app): State<Arc<App>>, _: Posted) -> Response {
    let kit = kit_of!(app, View::Faults);
    let cleared = kit.remove_rules().await;
    ended(app, View::Faults, cleared, View::Faults.path()).await
}

/// Sets the rates of the throttle. Without any, there is none.
pub(crate) async fn throttle(State(app): State<Arc<App>>, posted: Posted) -> Response {
    let kit = kit_of!(app, View::Faults);
    let rates = numbers(&posted, ["perPartition", "perRange", "perAccount"]);
    let set = kit.set_throttle(&rates).await;
    ended(app, View::Faults, set, View::Faults.path()).await
}

/// The rule of a form. The kit names what is not valid in it.
fn rule_of(posted: &Posted) -> Json {
    let mut rule = merged(
        object([
            ("account", posted.get("account")),
            ("table", posted.get("table")),
            ("partitionKey", posted.get("pk")),
            ("rowKey", posted.get("rk")),
        ]),
        numbers(posted, ["skip", "times", "probability", "seed"]),
    );
    let operations: Vec<_> = posted
        .all("operation")
        .filter(|name| !name.is_empty())
        .collect();
    if !operations.is_empty() {
        rule = merged(rule, json!({ "operations": operations }));
    }
    merged(rule, json!({ "fault": fault_of(posted) }))
}

fn fault_of(posted: &Posted) -> Json {
    match posted.get("preset") {
        "lost" => json!({ "kind": "loseResponse" }),
        "busy" => json!({ "kind": "error", "code": "ServerBusy" }),
        "delay" => json!({ "kind": "delay", "seconds": 2 }),
        "reset" => json!({ "kind": "reset" }),
        _ => {
            let texts = [("kind", posted.get("kind")), ("code", posted.get("code"))];
            let numeric = ["seconds", "afterSeconds", "appliedAfterSeconds", "bytes"];
            let fault = merged(object(texts), numbers(posted, numeric));
            match posted.get("applied") {
                "" => fault,
                _ => merged(fault, json!({ "applied": true })),
            }
        }
    }
}

/// An object of those fields that are filled in.
fn numbers<const N: usize>(posted: &Posted, names: [&'static str; N]) -> Json {
    let fields = names.map(|name| (name, posted.get(name)));
    let filled = fields.into_iter().filter(|(_, text)| !text.is_empty());
    filled
        .map(|(name, text)| (name.to_owned(), number(text)))
        .collect()
}

fn merged(mut one: Json, other: Json) -> Json {
    if let (Json::Object(one), Json::Object(other)) = (&mut one, other) {
        one.extend(other);
    }
    one
}

fn content(app: &App, rules: &[Rule], throttle: &Throttle) -> Content {
    Content::of(html! {
        div.sheet {
            (rules_shown(app, rules))
            (throttle_shown(app, throttle))
            (form(app))
        }
    })
}

fn rules_shown(app: &App, rules: &[Rule]) -> Markup {
    html! {
        section {
            h2 { "Rules in force" }
            @if rules.is_empty() {
                p.muted { "None: each request is answered as usual. A rule that has hit all its requests is not in force any more." }
            } @else {
                table.list {
                    thead { tr { th.number { "Rule" } th { "What happens" } th { "To which requests" } th.number { "Hits" } th { span.hidden { "Remove" } } } }
                    tbody {
                        @for rule in rules {
                            tr {
                                td.number { (rule.id) }
                                td { (harmless(&rule.fault)) }
                                td { (rule::conditions(rule)) }
                                td.number { (rule::hits(rule)) }
                                td {
                                    form method="post" action="/bench/faults/remove" {
                                        (hidden(app, View::Faults))
                                        input type="hidden" name="id" value=(rule.id);
                                        button.button aria-label={ "Remove rule " (rule.id) } { "Remove" }
                                    }
                                }
                            }
                        }
                    }
                }
                p.muted { "Of several rules that select a request, the first counts." }
                form method="post" action="/bench/faults/clear" {
                    (hidden(app, View::Faults))
                    button.button.danger { "Remove all rules and the throttle" }
                }
            }
        }
    }
}

fn throttle_shown(app: &App, throttle: &Throttle) -> Markup {
    let rate = |rate: Option<u32>| rate.map(|rate| rate.to_string()).unwrap_or_default();
    html! {
        section {
            h2 { "Throttle" }
            form.row method="post" action="/bench/throttle" {
                (hidden(app, View::Faults))
                label.field { span { "Entities per second and partition" } input inputmode="numeric" name="perPartition" value=(rate(throttle.per_partition)) placeholder="no limit"; }
                label.field { span { "Entities per second and range" } input inputmode="numeric" name="perRange" value=(rate(throttle.per_range)) placeholder="no limit"; }
                label.field { span { "Entities per second and account" } input inputmode="numeric" name="perAccount" value=(rate(throttle.per_account)) placeholder="no limit"; }
                button.button { "Set" }
            }
            p.muted { "Requests beyond a rate are refused with 503 ServerBusy. The documented targets of the service are 2000 for a partition and 20000 for an account. A load that exceeds the rate of a range of partitions for a minute splits it." }
        }
    }
}

/// A new rule, with all that a rule can have.
fn form(app: &App) -> Markup {
    html! {
        section #add {
            h2 { "New rule" }
            form method="post" action="/bench/faults" {
                (hidden(app, View::Faults))
                div.row {
                    label.field { span { "What happens" } select name="kind" {
                        @for (kind, label) in KINDS { option value=(kind) { (label) } }
                    } }
                    (field("code", "Error code, of an error", "ServerBusy"))
                    (field("seconds", "Seconds, of a delay", ""))
                    (field("afterSeconds", "Seconds until the duplicate", "at once"))
                    (field("bytes", "Bytes, of a truncated response", ""))
                    (field("appliedAfterSeconds", "Carried out after seconds", "not"))
                    label.check { input type="checkbox" name="applied" value="true"; " carried out all the same" }
                }
                div.row {
                    label.field { span { "Operation" } select name="operation" { (rule::operations("")) } }
                    (field("table", "Table", "any"))
                    (field("pk", "PartitionKey", "any"))
                    (field("rk", "RowKey", "any"))
                    (field("account", "Account", "any"))
                }
                div.row {
                    (field("skip", "Not the first", "0"))
                    (field("times", "Only so many", "no limit"))
                    (field("probability", "Probability, from 0 to 1", "1"))
                    (field("seed", "Seed of the probability", "0"))
                    button.button.primary { "Add rule" }
                }
                p.muted { "A random fault needs a probability such as 0.1: without one, each request has a fault. The same seed and the same requests have the same faults." }
            }
        }
    }
}

fn field(name: &str, label: &str, placeholder: &str) -> Markup {
    html! {
        label.field { span { (label) } input name=(name) placeholder=(placeholder) autocomplete="off" spellcheck="false"; }
    }
}

/// The kinds of faults, as the kit calls them.
const KINDS: [(&str, &str); 10] = [
    ("chaos", "a random fault"),
    ("loseResponse", "lost response"),
    ("error", "error"),
    ("reset", "connection reset"),
    ("noResponse", "no response"),
    ("delay", "delay before it"),
    ("delayResponse", "delay after it"),
    ("duplicate", "carried out twice"),
    ("truncate", "truncated response"),
    ("corrupt", "corrupted response"),
];
