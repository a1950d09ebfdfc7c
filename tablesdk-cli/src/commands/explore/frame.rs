//! [`Frame`]: what each page has around its content.
//!
//! A page begins with what is known before the service answers, and its content follows:
//! [`respond`](Frame::respond) sends both as they come, so that the browser shows the page while
//! the service is asked.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use futures::{StreamExt as _, stream};
use maud::{Markup, PreEscaped, html};
use tokio::time::timeout;

use super::app::{App, Names};
use super::bar;
use super::keys;
use super::pages::bench;
use super::url;
use super::{assets, problem};
use crate::commands::ls::{Series, folded};
use crate::escape::harmless;

/// The part of a page that does not depend on an answer of the service.
pub(super) struct Frame {
    /// The heading, which also names the page in the browser.
    pub(super) title: String,
    /// The table that the page is about.
    pub(super) table: Option<String>,
    pub(super) tab: Tab,
    /// The actions, right of the tabs.
    pub(super) tools: Markup,
    /// The form of the query, below the heading.
    pub(super) query: Markup,
}

/// The content of a page, once the service has responded.
#[derive(Default)]
pub(super) struct Content {
    pub(super) main: Markup,
    /// Right of the content.
    pub(super) panel: Option<Markup>,
    pub(super) foot: Markup,
}

impl Content {
    /// Content alone, without a panel and a foot.
    pub(super) fn of(main: Markup) -> Self {
        Self {
            main,
            ..Self::default()
        }
    }
}

/// A page of a table.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Tab {
    Entities,
    Schema,
    /// The staged changes.
    Review,
    /// The test bench, with its own tabs.
    Bench(bench::Tabs),
    /// No table, or none of its tabs.
    None,
}

impl Frame {
    /// The page whose content comes with the answer of the service.
    pub(super) fn respond(
        self,
        app: Arc<App>,
        content: impl Future<Output = Content> + Send + 'static,
    ) -> impl Future<Output = Response> + Send {
        self.respond_with(app.names(), app, content)
    }

    /// The page with these names of tables, for which its content may wait, too.
    pub(super) async fn respond_with(
        self,
        names: Names,
        app: Arc<App>,
        content: impl Future<Output = Content> + Send + 'static,
    ) -> Response {
        // The page does not wait for a service that is slow, or is not there.
        let names = match timeout(NAMES_WAIT_MAX, names).await {
            Ok(names) => names.map_err(|error| problem::text(&*error)),
            Err(_) => Err("the service has not answered yet".to_owned()),
        };
        let begin = self.begin(&app, &names);
        let is_review = self.tab == Tab::Review;
        let rest = async move {
            let content = content.await;
            let bar = if is_review {
                html! {}
            } else {
                bar::show(&app)
            };
            rest(content, &bar)
        };
        let parts = stream::once(ready(begin)).chain(stream::once(rest));
        let parts = parts.map(|part| Ok::<_, Infallible>(Bytes::from(part.into_string())));
        let body = Body::from_stream(parts);
        ([(CONTENT_TYPE, HTML)], body).into_response()
    }

    fn begin(&self, app: &App, names: &Result<Vec<String>, String>) -> Markup {
        html! {
            (PreEscaped("<!DOCTYPE html><html lang=\"en\"><head>"))
            (assets::head(&self.title))
            meta name="token" content=(app.gate.form_token());
            (PreEscaped("</head><body>"))
            a.skip href="#main" { "Skip to the content" }
            (self.side(app, names))
            (self.head(app))
            @if !self.query.0.is_empty() { section.query aria-label="Query" { (self.query) } }
            (PreEscaped("<main id=\"main\" tabindex=\"-1\">"))
            p.loading role="status" { span.spinner {} "Waiting for the service…" }
        }
    }

    fn side(&self, app: &App, names: &Result<Vec<String>, String>) -> Markup {
        html! {
            nav.side aria-label="Tables" {
                a.button.all href="/" { "☰ Tables" }
                a.brand href="/" { img src=(assets::path("icon.svg")) alt="" width="18" height="18"; "tables" }
                div.account {
                    strong { (app.account()) }
                    div.muted {
                        (app.host()) " "
                        @match &app.kit {
                            Some(_) => { a.pill.good href="/bench/requests" title="The test bench of this server" { "tablesdk-server --test" } }
                            None => { span.pill.good { (app.kind()) } }
                        }
                    }
                    @if let Some(reason) = app.rights.refusal() {
                        span.pill.warn title=(reason) { "read only" }
                    }
                }
                form action="/tables" method="get" role="search" aria-label="Find a table" {
                    input.find type="search" name="find" placeholder="Find a table  ( / )" aria-label="Find a table" autocomplete="off" spellcheck="false";
                }
                div.names {
                    @match names {
                        Ok(names) => (self.names(app, names)),
                        Err(problem) => (unlisted(problem)),
                    }
                }
                a.history href="/history" { "History" }
            }
        }
    }

    fn names(&self, app: &App, names: &[String]) -> Markup {
        let (single, series): (Vec<_>, Vec<_>) = folded(names)
            .into_iter()
            .partition(|it| it.names.len() == 1);
        let single = single.iter().flat_map(|it| it.names);
        let (kept, single): (Vec<_>, Vec<_>) = single.partition(|name| app.tables.is_kept(name));
        html! {
            div.group {
                h2 { "Tables" }
                @if names.is_empty() { p.muted { "The account has no tables." } }
                @for name in single { (self.link(name)) }
            }
            @if !series.is_empty() {
                div.group {
                    h2 { "By period" }
                    @for Series { names } in &series {
                        @let is_open = names.iter().any(|name| self.table.as_ref() == Some(name));
                        details open[is_open] {
                            summary { (series_name(names)) span.count { (names.len()) " tables" } }
                            @for name in names.iter() { (self.link(name)) }
                        }
                    }
                }
            }
            @if !kept.is_empty() {
                div.group {
                    h2 { "Kept by patterns" }
                    @for name in kept { (self.link(name)) }
                }
            }
        }
    }

    fn link(&self, name: &str) -> Markup {
        let is_current = self
            .table
            .as_ref()
            .is_some_and(|it| it.eq_ignore_ascii_case(name));
        html! {
            a.table href=(url::table(name)) aria-current=[is_current.then_some("page")] { (name) }
        }
    }

    fn head(&self, app: &App) -> Markup {
        html! {
            header.head {
                h1 { (harmless(&self.title)) }
                @if let (Some(table), true) = (&self.table, self.tab != Tab::None) {
                    nav.tabs aria-label="Views of the table" {
                        (tab("Entities", &app.tables.last(table), self.tab == Tab::Entities))
                        (tab("Schema", &url::schema(table), self.tab == Tab::Schema))
                        @if app.kit.is_some() { (tab("Test bench", &url::requests(table), false)) }
                    }
                }
                @if let Tab::Bench(tabs) = self.tab { (tabs.show()) }
                div.tools { (self.tools) }
            }
        }
    }
}

fn rest(content: Content, bar: &Markup) -> Markup {
    html! {
        (content.main)
        (PreEscaped("</main>"))
        @if let Some(panel) = content.panel { aside.panel #panel aria-label="Details" { (panel) } }
        (bar)
        footer.foot { (content.foot) (keys::show()) }
        (PreEscaped("</body></html>"))
    }
}

pub(super) fn tab(name: &str, href: &str, is_current: bool) -> Markup {
    html! { a href=(href) aria-current=[is_current.then_some("page")] { (name) } }
}

/// The common beginning of the names of a series.
fn series_name(names: &[String]) -> &str {
    let name = names.first().map(String::as_str).unwrap_or_default();
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// The sidebar without names: a signature for one table, for example, does not list the others.
fn unlisted(problem: &str) -> Markup {
    html! {
        h2 { "Tables" }
        p.muted { "The tables cannot be listed: " (problem) }
        p.muted { "A table opens by its name in the field above." }
    }
}

const NAMES_WAIT_MAX: Duration = Duration::from_secs(2);
const HTML: &str = "text/html; charset=utf-8";
