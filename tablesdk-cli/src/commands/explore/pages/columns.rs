//! The columns of a grid: which are shown, in which order, and how wide.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Redirect;
use maud::{Markup, html};

use super::super::app::App;
use super::super::posted::Posted;
use super::super::question::Question;
use super::super::settings::Settings;
use super::super::url;
use crate::escape::harmless;
use crate::output::counted;

/// The menu of the columns: the shown ones in their order, and the others.
pub(crate) fn menu(
    app: &App,
    table: &str,
    question: &Question,
    shown: &[String],
    hidden: &[String],
) -> Markup {
    let all = shown.len() + hidden.len();
    let label = match hidden {
        [] => counted(all as u64, "column", "columns"),
        _ => format!("{} of {all} columns", shown.len()),
    };
    let listed = shown.iter().map(|name| (name, true));
    let listed = listed.chain(hidden.iter().map(|name| (name, false)));
    html! {
        details.menu.up #columns {
            summary.button.quiet { (label) }
            form #list method="post" action={ (url::table(table)) "/columns" } {
                (app.gate.token_field())
                (question.hidden_fields())
                ol {
                    @for (name, is_shown) in listed.take(LISTED_MAX) {
                        li id={ (ITEM) (name) } {
                            input type="hidden" name="order" value=(name);
                            label { input type="checkbox" name="show" value=(name) checked[is_shown]; " " span { (harmless(name)) } }
                            span.end {}
                            button.link name="first" value=(name) aria-label={ "Move " (harmless(name)) " first" } { "first" }
                            button.link name="up" value=(name) aria-label={ "Move " (harmless(name)) " to the left" } { "↑" }
                        }
                    }
                }
                @if all > LISTED_MAX {
                    label.field { span { "Others, with commas between them" } input name="more" autocomplete="off"; }
                    p.muted { (LISTED_MAX) " of " (all) " are listed" }
                }
                p.actions {
                    button.button.primary { "Show these" }
                    button.button.quiet name="all" value="yes" { "Show all" }
                }
            }
        }
    }
}

/// `/t/NAME/columns`: remembers which columns are shown, and shows them.
pub(crate) async fn choose(
    State(app): State<Arc<App>>,
    Path(table): Path<String>,
    posted: Posted,
) -> Redirect {
    let columns = match posted.get("all") {
        "" => Some(chosen(&posted)),
        _ => None,
    };
    let question = Question {
        columns: columns
            .as_ref()
            .map(|names| names.join(","))
            .unwrap_or_default(),
        ..Question::of_form(&posted)
    };
    let moved = [posted.get("first"), posted.get("up")].concat();
    let target = format!("{}#{}", question.url(&table), place(&moved));
    let set = move |it: &Settings| it.set_columns(&table, columns);
    app.settings.run(set).await;
    Redirect::to(&target)
}

/// The part of the menu that a fragment leads to. The browser opens the menu for it.
fn place(moved: &str) -> String {
    match moved {
        "" => "list".to_owned(),
        name => url::encoded(&format!("{ITEM}{name}")),
    }
}

/// The columns that the form shows. One of them may move up, or to the front, which also shows it.
fn chosen(posted: &Posted) -> Vec<String> {
    let moved = [posted.get("up"), posted.get("first")];
    let shown: Vec<_> = posted.all("show").chain(moved).collect();
    let mut names: Vec<_> = posted
        .all("order")
        .filter(|name| shown.contains(name))
        .collect();
    let up = names.iter().position(|name| *name == posted.get("up"));
    if let Some(before) = up.and_then(|at| at.checked_sub(1)) {
        names.swap(before, before + 1);
    }
    let first = names.iter().position(|name| *name == posted.get("first"));
    if let Some(moved) = first.and_then(|at| names.get_mut(..=at)) {
        moved.rotate_right(1);
    }
    let more = posted.get("more").split(',').map(str::trim);
    let more = more.filter(|name| !name.is_empty() && !names.contains(name));
    let more: Vec<_> = more.collect();
    names.into_iter().chain(more).map(str::to_owned).collect()
}

/// `/t/NAME/width`: remembers how wide a column is.
pub(crate) async fn resize(
    State(app): State<Arc<App>>,
    Path(table): Path<String>,
    posted: Posted,
) -> StatusCode {
    let width = posted.get("width").parse().ok();
    let set = move |it: &Settings| it.set_width(&table, posted.get("column"), width);
    app.settings.run(set).await;
    StatusCode::NO_CONTENT
}

/// The beginning of the ID of an item, before the name of its column.
const ITEM: &str = "column-";
/// How many columns the menu lists.
const LISTED_MAX: usize = 300;
