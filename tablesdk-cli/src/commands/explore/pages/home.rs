//! `/`: the tables of the account.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::html;

use super::super::app::{App, Names};
use super::super::frame::{Content, Frame, Tab};
use super::super::posted::Posted;
use super::super::{problem, url};
use super::Search;
use crate::escape::{harmless, shortened};
use crate::output::counted;

/// `/`: all tables, or those that contain a text.
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Query(Search { find }): Query<Search>,
) -> Response {
    let token = app.gate.token_field();
    let frame = Frame {
        title: "Tables".to_owned(),
        table: None,
        tab: Tab::None,
        tools: html! {
            form method="post" action="/tables/refresh" {
                (token)
                button.button { "Read the names again" }
            }
        },
        query: html! {},
    };
    let names = app.names();
    let content = listed(names.clone(), find);
    frame.respond_with(names, app, content).await
}

async fn listed(names: Names, find: String) -> Content {
    let names = match names.await {
        Ok(names) => names,
        Err(error) => return Content::of(problem::shown(&*error)),
    };
    let wanted = find.to_ascii_lowercase();
    let found: Vec<_> = names
        .iter()
        .filter(|name| name.to_ascii_lowercase().contains(&wanted))
        .collect();
    Content {
        main: html! {
            @if names.is_empty() {
                section.card.notice {
                    p { strong { "The account has no tables yet." } }
                    p.muted { "A table is created by the first import: " code { "tables put NAME --insert --create" } }
                }
            } @else if found.is_empty() {
                section.card.notice { p { strong { "No table has " span.mono { (shortened(&harmless(&find), 200)) } " in its name." } } }
            } @else {
                ul.tiles { @for name in &found { li { a href=(url::table(name)) { (name) } } } }
            }
        },
        panel: None,
        foot: html! { (counted(found.len() as u64, "table", "tables")) },
    }
}

/// `/tables?find=NAME`: goes to the table of that name, to the only one that begins with the text
/// or has it, or to all that have it.
pub(crate) async fn open(
    State(app): State<Arc<App>>,
    Query(Search { find }): Query<Search>,
) -> Redirect {
    let find = find.trim();
    let names = app.tables.names().await;
    let found = match &names {
        Ok(names) => meant(names, find),
        // Without the names, the text is one.
        Err(_) => (!find.is_empty()).then_some(find),
    };
    match found {
        Some(name) => Redirect::to(&url::table(name)),
        None => Redirect::to(&format!("/{}", url::query([("find", find)]))),
    }
}

/// The one table that a text stands for.
fn meant<'n>(names: &'n [String], find: &str) -> Option<&'n str> {
    let find = find.to_ascii_lowercase();
    let only = |is_meant: fn(&str, &str) -> bool| {
        let mut found = names
            .iter()
            .filter(|name| is_meant(&name.to_ascii_lowercase(), &find));
        let first = found.next()?;
        found.next().is_none().then_some(first.as_str())
    };
    if find.is_empty() {
        return None;
    }
    only(|name, find| name == find)
        .or_else(|| only(|name, find| name.starts_with(find)))
        .or_else(|| only(|name, find| name.contains(find)))
}

/// Reads the names of the tables again.
pub(crate) async fn refresh(State(app): State<Arc<App>>, _: Posted) -> Response {
    app.tables.forget();
    Redirect::to("/").into_response()
}
