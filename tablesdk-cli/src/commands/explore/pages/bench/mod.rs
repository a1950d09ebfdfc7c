//! `/bench/…`: the test bench, with what a server for tests records and injects.
//!
//! The parts that all views of the bench share: their tabs, the clock above them, and what a form
//! of theirs ends with.

mod clock;
mod faults;
mod lints;
mod request_row;
mod requests;
mod rule;
mod snapshots;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use futures::join;
use maud::{Markup, html};
use tablesdk::Timestamp;

use super::super::app::App;
use super::super::frame::{Content, Frame, Tab, tab};
use super::super::kit::{Clock, Kit, KitError, Lint, Rule};
use super::super::problem;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/bench", get(first))
        .route("/bench/requests", get(requests::show))
        .route("/bench/requests/after/{number}", get(requests::newer))
        .route("/bench/requests/forget", post(requests::forget))
        .route("/bench/faults", get(faults::show).post(faults::add))
        .route("/bench/faults/remove", post(faults::remove))
        .route("/bench/faults/clear", post(faults::clear))
        .route("/bench/throttle", post(faults::throttle))
        .route("/bench/clock", get(clock::show).post(clock::change))
        .route(
            "/bench/snapshots",
            get(snapshots::show).post(snapshots::take),
        )
        .route("/bench/snapshots/restore", post(snapshots::restore))
        .route("/bench/snapshots/forget", post(snapshots::forget))
        .route("/bench/lints", get(lints::show))
}

async fn first() -> Redirect {
    Redirect::to(View::Requests.path())
}

/// A view of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Requests,
    Faults,
    Clock,
    Snapshots,
    Lints,
}

impl View {
    const ALL: [Self; 5] = [
        Self::Requests,
        Self::Faults,
        Self::Clock,
        Self::Snapshots,
        Self::Lints,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Requests => "Requests",
            Self::Faults => "Faults",
            Self::Clock => "Clock",
            Self::Snapshots => "Snapshots",
            Self::Lints => "Lints",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Requests => "/bench/requests",
            Self::Faults => "/bench/faults",
            Self::Clock => "/bench/clock",
            Self::Snapshots => "/bench/snapshots",
            Self::Lints => "/bench/lints",
        }
    }

    /// The view to which a form of each view returns.
    fn back(name: &str) -> Self {
        let known = Self::ALL.into_iter().find(|view| view.name() == name);
        known.unwrap_or(Self::Requests)
    }
}

/// The tabs of the bench, with how much is in some of them.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Tabs {
    view: View,
    rules: usize,
    lints: usize,
}

impl Tabs {
    pub(crate) fn show(self) -> Markup {
        html! {
            nav.tabs aria-label="Views of the test bench" {
                @for view in View::ALL { (self.tab(view)) }
            }
        }
    }

    fn tab(self, view: View) -> Markup {
        let count = match view {
            View::Faults => self.rules,
            View::Lints => self.lints,
            _ => 0,
        };
        let is_current = self.view == view;
        if count == 0 {
            return tab(view.name(), view.path(), is_current);
        }
        html! {
            a href=(view.path()) aria-current=[is_current.then_some("page")] {
                (view.name()) " " span.pill.warn { (count) }
            }
        }
    }
}

/// The kit, or the response that there is none.
macro_rules! kit_of {
    ($app:ident, $view:expr) => {
        match $app.kit.clone() {
            Some(kit) => kit,
            None => return super::absent($app, $view).await,
        }
    };
}
use kit_of;

/// The data around each view. A view shows a part of it, too.
struct Around {
    clock: Result<Clock, KitError>,
    rules: Result<Vec<Rule>, KitError>,
    lints: Result<Vec<Lint>, KitError>,
}

impl Around {
    async fn read(kit: &Kit) -> Self {
        let (clock, rules, lints) = join!(kit.clock(), kit.rules(), kit.lints());
        Self {
            clock,
            rules,
            lints,
        }
    }

    /// The tabs and the tools, which need all of it.
    fn show(&self, app: &App, view: View) -> (Tabs, Markup) {
        let (Ok(clock), Ok(rules), Ok(lints)) = (&self.clock, &self.rules, &self.lints) else {
            return (none(view), html! {});
        };
        let (rules, lints) = (rules.len(), lints.len());
        (Tabs { view, rules, lints }, tools(app, view, clock))
    }
}

/// A page of the bench.
async fn page(
    app: Arc<App>,
    view: View,
    around: &Around,
    query: Markup,
    content: Content,
) -> Response {
    let (tabs, tools) = around.show(&app, view);
    framed(app, tabs, tools, query, content).await
}

async fn framed(
    app: Arc<App>,
    tabs: Tabs,
    tools: Markup,
    query: Markup,
    content: Content,
) -> Response {
    let frame = Frame {
        title: "Test bench".to_owned(),
        table: None,
        tab: Tab::Bench(tabs),
        tools,
        query,
    };
    frame.respond(app, async { content }).await
}

const fn none(view: View) -> Tabs {
    Tabs {
        view,
        rules: 0,
        lints: 0,
    }
}

fn failure(error: &KitError) -> Content {
    Content::of(problem::shown(error))
}

/// The page of a program that was started without a kit.
async fn absent(app: Arc<App>, view: View) -> Response {
    let content = Content::of(html! {
            section.card.notice {
                p { strong { "The test bench shows a server for tests." } }
                p.muted { "Start one, and give the URL that it prints as \"test\":" }
                pre { "tablesdk-server --test\ntables explore --connection-string '…' --test-endpoint http://127.0.0.1:PORT/test" }
            }
    });
    let mut response = framed(app, none(view), html! {}, html! {}, content).await;
    *response.status_mut() = StatusCode::CONFLICT;
    response
}

/// The clock, and what is used most.
fn tools(app: &App, view: View, clock: &Clock) -> Markup {
    let (kind, label) = opposite(clock);
    html! {
        span.muted.clock { "clock " (seconds(&clock.now)) " · " (state(clock)) }
        form method="post" action="/bench/clock" {
            (hidden(app, view))
            button.button name="kind" value=(kind) title={ (label) " the clock of the server" } { (label) }
        }
        form method="post" action="/bench/snapshots" {
            (hidden(app, view))
            button.button title="Keep all tables as they are now" { "Snapshot" }
        }
    }
}

/// The fields that each form of the bench has.
fn hidden(app: &App, view: View) -> Markup {
    html! {
        (app.gate.token_field())
        input type="hidden" name="view" value=(view.name());
    }
}

/// The response to a form: the page at this path, or the error.
async fn ended<T>(
    app: Arc<App>,
    view: View,
    result: Result<T, KitError>,
    path: impl Into<String>,
) -> Response {
    let Err(error) = result else {
        return Redirect::to(&path.into()).into_response();
    };
    let status = match &error {
        KitError::Refused(_) => StatusCode::BAD_REQUEST,
        _ => StatusCode::BAD_GATEWAY,
    };
    let mut content = failure(&error);
    content.main = html! {
        (content.main)
        p.after { a.button href=(view.path()) { "Back to " (view.name()) } }
    };
    let mut response = framed(app, none(view), html! {}, html! {}, content).await;
    *response.status_mut() = status;
    response
}

/// The effect of a click on the clock: its kind and its label.
const fn opposite(clock: &Clock) -> (&'static str, &'static str) {
    if clock.is_frozen {
        ("resume", "Resume")
    } else {
        ("freeze", "Freeze")
    }
}

const fn state(clock: &Clock) -> &'static str {
    if clock.is_frozen { "frozen" } else { "running" }
}

/// A time up to its seconds, in UTC.
fn seconds(time: &str) -> String {
    part(time, 0, 19).map_or_else(|| time.to_owned(), |text| text.replace('T', " "))
}

/// A time of day, up to its milliseconds.
fn of_day(time: &str) -> String {
    part(time, 11, 23).unwrap_or_else(|| time.to_owned())
}

fn part(time: &str, start: usize, end: usize) -> Option<String> {
    let padded = time.parse::<Timestamp>().ok()?.to_padded_string();
    padded.get(start..end).map(ToOwned::to_owned)
}
