//! The texts that a page offers for copying: recipes of a query or an entity, a row as JSON, and
//! the whole text of a cell.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use serde::Deserialize;
use tablesdk::DynamicEntity;

use super::super::app::{App, read_retries};
use super::super::recipe;
use crate::commands::get::missing;
use crate::error::AnyError;

/// Texts to copy of a query: with the script by a click, and out of the menu.
pub(crate) fn recipes(texts: &[(&str, &str)]) -> Markup {
    let summary = html! { summary.link { "show" } };
    html! {
        span.recipes {
            @for (at, (name, _)) in texts.iter().enumerate() {
                button.link type="button" data-copy={ "query-" (at) } hidden { @if at == 0 { "copy as " } (name) }
            }
            (menu("wide", &summary, "query", texts))
        }
    }
}

/// A menu of texts, each with its name. Without the script, they are marked and copied by hand.
pub(crate) fn menu(class: &str, summary: &Markup, of: &str, texts: &[(&str, &str)]) -> Markup {
    html! {
        details class={ "menu copies " (class) } {
            (summary)
            div {
                @for (at, (name, text)) in texts.iter().enumerate() {
                    p.name { strong { (name) } " " button.link type="button" data-copy={ (of) "-" (at) } hidden { "copy" } }
                    pre tabindex="0" id={ (of) "-" (at) } { (text) }
                }
            }
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Asked {
    pk: String,
    rk: String,
    /// A property; the whole entity if there is none.
    name: Option<String>,
}

/// `/t/NAME/text?pk=…&rk=…&name=…`: a value, or an entity as JSON, as plain text. A grid has only
/// the beginning of a long value.
pub(crate) async fn text(
    State(app): State<Arc<App>>,
    Path(table): Path<String>,
    Query(asked): Query<Asked>,
) -> Response {
    let plain = (CONTENT_TYPE, "text/plain; charset=utf-8");
    match read(&app, &table, &asked).await {
        Ok(text) => ([plain], text).into_response(),
        Err(error) => {
            let text = super::super::problem::text(&*error);
            (StatusCode::BAD_GATEWAY, [plain], text).into_response()
        }
    }
}

async fn read(app: &App, table: &str, asked: &Asked) -> Result<String, AnyError> {
    let table = app.service.table(table);
    let key = (asked.pk.as_str(), asked.rk.as_str());
    let found = table
        .get::<DynamicEntity>(key)
        .retry(read_retries())
        .await?;
    let found = found.ok_or_else(|| missing(&table, key))?;
    Ok(match asked.name.as_deref() {
        None => recipe::row(&found),
        Some("PartitionKey") => asked.pk.clone(),
        Some("RowKey") => asked.rk.clone(),
        Some(name) => {
            let value = found.properties().get(name);
            recipe::cell(value.ok_or_else(|| format!("the entity has no property {name:?}"))?)
        }
    })
}
