//! `/bench/snapshots`: all tables of the server as they were, kept and restored.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Response;
use futures::join;
use maud::{Markup, html};
use serde::Deserialize;

use super::super::super::app::App;
use super::super::super::frame::Content;
use super::super::super::kit::{Kit, KitError, Snapshot};
use super::super::super::posted::{Change, Posted};
use super::super::super::problem;
use super::{Around, View, ended, failure, hidden, kit_of, page, seconds};
use crate::output::counted;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Chosen {
    /// The snapshot whose restore is to be confirmed.
    restore: String,
}

/// `/bench/snapshots?restore=ID`
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Query(Chosen { restore }): Query<Chosen>,
) -> Response {
    let kit = kit_of!(app, View::Snapshots);
    let (around, content) = join!(Around::read(&kit), content(&app, &kit, &restore));
    let content = content.unwrap_or_else(|error| failure(&error));
    page(app, View::Snapshots, &around, html! {}, content).await
}

/// Takes a snapshot.
pub(crate) async fn take(State(app): State<Arc<App>>, posted: Posted) -> Response {
    let kit = kit_of!(app, View::Snapshots);
    let view = View::back(posted.get("view"));
    let taken = kit.take_snapshot().await;
    ended(app, view, taken, view.path()).await
}

/// Replaces all tables by those of a snapshot.
pub(crate) async fn restore(State(app): State<Arc<App>>, Change(posted): Change) -> Response {
    let kit = kit_of!(app, View::Snapshots);
    let restored = kit.restore(posted.get("id")).await;
    app.tables.forget();
    ended(app, View::Snapshots, restored, View::Snapshots.path()).await
}

/// Forgets a snapshot.
pub(crate) async fn forget(State(app): State<Arc<App>>, posted: Posted) -> Response {
    let kit = kit_of!(app, View::Snapshots);
    let forgotten = kit.forget_snapshot(posted.get("id")).await;
    ended(app, View::Snapshots, forgotten, View::Snapshots.path()).await
}

async fn content(app: &App, kit: &Kit, restore: &str) -> Result<Content, KitError> {
    let snapshots = kit.snapshots().await?;
    let chosen = snapshots.iter().find(|it| it.id.to_string() == restore);
    Ok(Content::of(html! {
            @if let Some(snapshot) = chosen { (confirm(app, snapshot)) }
            div.sheet {
                section {
                    h2 { "Snapshots" }
                    @if snapshots.is_empty() {
                        p.muted { "None. A snapshot keeps all tables of the server as they are, in no time and without a copy, until the server ends." }
                    } @else { (list(app, &snapshots)) }
                    form method="post" action="/bench/snapshots" {
                        (hidden(app, View::Snapshots))
                        button.button.primary { "Take a snapshot" }
                    }
                }
            }
    }))
}

fn list(app: &App, snapshots: &[Snapshot]) -> Markup {
    html! {
        table.list {
            thead { tr { th.number { "Snapshot" } th { "Time" } th { "Since then" } th { span.hidden { "Actions" } } } }
            tbody {
                @for snapshot in snapshots {
                    tr {
                        td.number { (snapshot.id) }
                        td.mono { (seconds(&snapshot.time)) }
                        td { (since(snapshot)) }
                        td {
                            div.actions {
                                @if app.rights.refusal().is_none() {
                                    a.button href={ "/bench/snapshots?restore=" (snapshot.id) } aria-label={ "Restore snapshot " (snapshot.id) } { "Restore…" }
                                }
                                form method="post" action="/bench/snapshots/forget" {
                                    (hidden(app, View::Snapshots))
                                    input type="hidden" name="id" value=(snapshot.id);
                                    button.button aria-label={ "Forget snapshot " (snapshot.id) } { "Forget" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The confirmation of a restore, with the state that it replaces.
fn confirm(app: &App, snapshot: &Snapshot) -> Markup {
    if let Some(reason) = app.rights.refusal() {
        return problem::notice(
            "read only",
            "A restore changes tables.",
            html! { p.muted { (reason) "." } },
        );
    }
    let title = format!("Restore snapshot {}?", snapshot.id);
    let question = html! {
        p {
            "All tables of the server become those of " (seconds(&snapshot.time)) ". What has changed since is lost: "
            (since(snapshot)) ". Rules, the clock and the recorded requests stay as they are."
        }
        div.actions {
            form method="post" action="/bench/snapshots/restore" {
                (hidden(app, View::Snapshots))
                input type="hidden" name="id" value=(snapshot.id);
                button.button.danger { "Restore snapshot " (snapshot.id) }
            }
            a.button.quiet href="/bench/snapshots" { "Keep the tables" }
        }
    };
    problem::notice("restore", &title, question)
}

/// How many requests came after a snapshot.
fn since(snapshot: &Snapshot) -> String {
    counted(snapshot.requests_since, "request", "requests")
}
