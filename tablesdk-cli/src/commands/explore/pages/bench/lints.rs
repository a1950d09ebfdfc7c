//! `/bench/lints`: what the recorded requests say about the design of tables, and what to do.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::super::super::app::App;
use super::super::super::frame::Content;
use super::super::super::kit::Lint;
use super::super::super::url;
use super::request_row::href;
use super::{Around, View, failure, kit_of, page};
use crate::escape::harmless;
use crate::output::counted;

/// `/bench/lints`
pub(crate) async fn show(State(app): State<Arc<App>>) -> Response {
    let kit = kit_of!(app, View::Lints);
    let around = Around::read(&kit).await;
    let content = match &around.lints {
        Ok(lints) => Content::of(sheet(lints)),
        Err(error) => failure(error),
    };
    page(app, View::Lints, &around, html! {}, content).await
}

fn sheet(lints: &[Lint]) -> Markup {
    html! {
        div.sheet {
            @if lints.is_empty() {
                section {
                    p { strong { "The recorded requests say nothing against the design of the tables." } }
                    p.muted { "Table scans are named at once, hot partitions and keys in one order from 100 entities on. A request that failed counts for contention only." }
                }
            }
            @for lint in lints { (shown(lint)) }
        }
    }
}

fn shown(lint: &Lint) -> Markup {
    html! {
        section {
            h2 { span.pill.warn { (harmless(&lint.kind)) } " " a href=(url::table(&lint.table)) { (harmless(&lint.table)) } }
            p {
                (harmless(&sentence(&lint.observation))) ": " (counted(lint.requests, "request", "requests")) ", such as "
                a href=(href(lint.example, "")) { "No. " (lint.example) } "."
            }
            p.muted { (harmless(&lint.advice)) }
        }
    }
}

/// A text with a capital letter.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}
