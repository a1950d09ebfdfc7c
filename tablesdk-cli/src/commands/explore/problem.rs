//! Errors, as a page or as a part of one, with advice.

use std::error::Error;
use std::time::Duration;

use axum::body::to_bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, html};

use super::assets;
use crate::error::without_remedy;
use crate::escape::{harmless, shortened};

/// Why a request is refused before a page looks at it.
#[derive(Debug)]
pub(super) enum Refusal {
    Host,
    Origin,
    /// There is no cookie. With the path that was asked for.
    Cookie(Option<String>),
    Opening,
    Method,
    Form,
    /// A field is missing, or is not one of the form's.
    Incomplete,
    TooLarge,
    ReadOnly(&'static str),
}

impl Refusal {
    const fn status(&self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin | Self::Form | Self::ReadOnly(_) => StatusCode::FORBIDDEN,
            Self::Cookie(_) | Self::Opening => StatusCode::UNAUTHORIZED,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Incomplete => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }

    const fn text(&self) -> &'static str {
        match self {
            Self::Host => "This address is not that of the page.",
            Self::Origin => "The request comes from another page, and was refused.",
            Self::Cookie(_) => {
                "This browser has not opened the page. If `tables explore` was started again, open the URL that it has printed."
            }
            Self::Opening => "This URL was used before: it opens the page once.",
            Self::Method => "The page takes GET and POST.",
            Self::Form => {
                "The form is not one of this page: load the page again, and send it again."
            }
            Self::Incomplete => "The form is not complete: load its page again.",
            Self::TooLarge => "The form is larger than 16 MiB.",
            Self::ReadOnly(_) => "Nothing is changed: the page is read only.",
        }
    }
}

/// The response to a request that is refused.
pub(super) fn refused(refusal: &Refusal) -> Response {
    let page = bare(
        refusal.text(),
        html! {
            @match refusal {
                Refusal::Cookie(path) => {
                    @if let Some(path) = path.as_deref().filter(|path| stays(path)) {
                        p { "If it has, and a link from elsewhere led here:" }
                        p { a.button.primary href=(path) { "Show the page" } }
                    }
                    p.muted { "Otherwise open the URL that " code { "tables explore" } " has printed, or start it again." }
                }
                Refusal::Opening => {
                    p { a.button.primary href="/" { "Show the page" } }
                    p.muted { "In another browser, start " code { "tables explore" } " again." }
                }
                Refusal::ReadOnly(reason) => { p.muted { (reason) "." } }
                _ => { p { a href="/" { "Tables" } } }
            }
        },
    );
    (refusal.status(), page).into_response()
}

/// Returns true if a link to this path leads to the page itself. Browsers read a backslash as a
/// slash, and two slashes as the beginning of a host.
fn stays(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.contains('\\')
}

/// The response to a path that no page has.
pub(super) async fn no_page(uri: Uri) -> Response {
    let path = harmless(uri.path());
    let page = bare(
        "There is no such page.",
        html! {
            p.mono { (shortened(&path, 200)) }
            p { a.button.primary href="/" { "Tables" } }
        },
    );
    (StatusCode::NOT_FOUND, page).into_response()
}

/// A response of the framework to a URL that no page takes, as a page: it names the field.
pub(super) async fn with_words(response: Response) -> Response {
    let kind = response.headers().get(CONTENT_TYPE);
    let is_plain = kind.is_some_and(|it| it.as_bytes().starts_with(b"text/plain"));
    if response.status() != StatusCode::BAD_REQUEST || !is_plain {
        return response;
    }
    let text = to_bytes(response.into_body(), REASON_BYTES_MAX).await;
    let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
    let text = text.rsplit_once("query string: ").map_or(&*text, |it| it.1);
    let page = bare(
        "The URL is not valid.",
        html! {
            p.mono { (shortened(&harmless(text), 200)) }
            p { a.button.primary href="/" { "Tables" } }
        },
    );
    (StatusCode::BAD_REQUEST, page).into_response()
}

/// A page without tables.
#[expect(clippy::needless_pass_by_value, reason = "each caller makes one")]
fn bare(title: &str, content: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { (assets::head(title)) }
            body.bare {
                main.card.notice { h1 { (title) } (content) }
            }
        }
    }
}

/// An error as the content of a page.
pub(super) fn shown(error: &(dyn Error + 'static)) -> Markup {
    let known = error.downcast_ref::<tablesdk::Error>();
    if let Some(error) = known.filter(|error| error.is_throttled()) {
        return throttled(error);
    }
    notice(
        "error",
        &text(error),
        html! {
            @if let Some(advice) = known.and_then(advice) { p.muted { (advice) } }
        },
    )
}

/// The text of an error, without what the page shows anyway: the operation, the table and the
/// account.
pub(super) fn text(error: &(dyn Error + 'static)) -> String {
    let text = without_remedy(error);
    let endpoint = error.downcast_ref().and_then(tablesdk::Error::endpoint);
    let place = endpoint.map(|it| it.as_str().split("://").last().unwrap_or_default());
    let place = place.map(|place| format!("{}: ", place.trim_end_matches('/')));
    let rest = place.and_then(|place| Some(text.split_once(&place)?.1));
    harmless(rest.unwrap_or(&text))
}

/// A card in the content of a page: what it is, what it says, and what can be done.
#[expect(clippy::needless_pass_by_value, reason = "each caller makes one")]
pub(super) fn notice(pill: &str, text: &str, rest: Markup) -> Markup {
    let tone = match pill {
        "error" => "pill bad",
        _ => "pill warn",
    };
    html! {
        section.card.notice role="alert" {
            p { span class=(tone) { (pill) } " " strong { (text) } }
            (rest)
        }
    }
}

/// The service asks to wait. The script loads the page again then. A `meta` element for it is no
/// way: assistive programs cannot stop it.
fn throttled(error: &tablesdk::Error) -> Markup {
    let wait = error.retry_after().unwrap_or(WAIT);
    let seconds = wait.as_secs().clamp(1, 300);
    notice(
        "throttled",
        "The service is busy, and refuses requests for now.",
        html! {
            p.muted data-again=(seconds) hidden { "This page asks again in " (seconds) " seconds." }
            p { a.button href="" { "Ask now" } }
        },
    )
}

fn advice(error: &tablesdk::Error) -> Option<&'static str> {
    Some(match () {
        () if error.is_table_not_found() => {
            "The table was deleted, or its name is written differently."
        }
        () if error.is_denied() => {
            "The key or the signature is not valid, has ended, or does not allow this. Start tables explore with another one."
        }
        () if error.is_unavailable() || error.is_timeout() => {
            "Is the service running, and is this its address? Load the page again."
        }
        () => return None,
    })
}

/// The wait if the service names none.
const WAIT: Duration = Duration::from_secs(5);
const REASON_BYTES_MAX: usize = 64 << 10;
