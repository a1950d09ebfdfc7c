//! `/bench/clock`: the clock of the server, frozen, moved and resumed.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value as Json, json};

use super::super::super::app::App;
use super::super::super::frame::Content;
use super::super::super::kit::{Clock, number};
use super::super::super::posted::Posted;
use super::{Around, View, ended, failure, hidden, kit_of, opposite, page, state};
use crate::escape::harmless;

/// `/bench/clock`
pub(crate) async fn show(State(app): State<Arc<App>>) -> Response {
    let kit = kit_of!(app, View::Clock);
    let around = Around::read(&kit).await;
    let content = match &around.clock {
        Ok(clock) => Content::of(sheet(&app, clock)),
        Err(error) => failure(error),
    };
    page(app, View::Clock, &around, html! {}, content).await
}

/// Freezes, resumes or moves the clock.
pub(crate) async fn change(State(app): State<Arc<App>>, posted: Posted) -> Response {
    let kit = kit_of!(app, View::Clock);
    let view = View::back(posted.get("view"));
    let changed = kit.change_clock(&change_of(&posted)).await;
    ended(app, view, changed, view.path()).await
}

/// The kit names what is not valid in it.
fn change_of(posted: &Posted) -> Json {
    let kind = posted.get("kind");
    match kind {
        "advance" => json!({ "kind": kind, "seconds": number(posted.get("seconds")) }),
        "set" => json!({ "kind": kind, "time": posted.get("time").trim() }),
        kind => json!({ "kind": kind }),
    }
}

fn sheet(app: &App, clock: &Clock) -> Markup {
    let (kind, label) = opposite(clock);
    html! {
        div.sheet {
            section {
                h2 { "Time of the server" }
                p.now { time.mono { (harmless(&clock.now)) } " " span.pill { (state(clock)) } }
                form method="post" action="/bench/clock" {
                    (hidden(app, View::Clock))
                    button.button.primary name="kind" value=(kind) { (label) }
                }
                p.muted { "It is the clock of timestamps, of entities that expire, of signatures and of the header Date." }
            }
            section {
                h2 { "Move it forward" }
                form.row method="post" action="/bench/clock" {
                    (hidden(app, View::Clock))
                    input type="hidden" name="kind" value="advance";
                    @for (seconds, label) in STEPS { button.button name="seconds" value=(seconds) { (label) } }
                }
                form.row method="post" action="/bench/clock" {
                    (hidden(app, View::Clock))
                    input type="hidden" name="kind" value="advance";
                    label.field { span { "Seconds" } input name="seconds" inputmode="decimal" placeholder="90" autocomplete="off" required; }
                    button.button { "Move" }
                }
            }
            section {
                h2 { "Set and freeze it" }
                form.row method="post" action="/bench/clock" {
                    (hidden(app, View::Clock))
                    input type="hidden" name="kind" value="set";
                    label.field { span { "Time in UTC" } input.mono name="time" value=(clock.now) autocomplete="off" spellcheck="false" required; }
                    button.button { "Set" }
                }
                p.muted { "Timestamps of writes do not decrease until the server is reset: set an earlier time before the first write." }
            }
        }
    }
}

const STEPS: [(u32, &str); 4] = [
    (60, "1 minute"),
    (3_600, "1 hour"),
    (86_400, "1 day"),
    (2_592_000, "30 days"),
];
