//! The page at the URL of the server, or of an account, for a person who opens it in a browser. It
//! says what the server is, and what shows its tables.
//!
//! Only a request that no client of the service sends gets it. The page needs no script, loads
//! nothing, and contains no secret.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, header};

use crate::request::address::Location;
use crate::request::context::Context;

/// The page, if a browser asks for it. `serves`: whether the server has an account.
pub(super) fn respond(
    head: &Parts,
    context: &Context,
    serves: impl Fn(&str) -> bool,
) -> Option<Response<Bytes>> {
    // Few requests have such a URL.
    if !is_of_account(context, &serves) || !is_from_browser(head) {
        return None;
    }
    let origin = origin(context)?;
    let account = match context.account() {
        "" if serves(EMULATOR_ACCOUNT) => EMULATOR_ACCOUNT,
        "" => "ACCOUNT",
        account => account,
    };
    let endpoint = match context.account() {
        "" => format!("{origin}/{account}"),
        _ => context.endpoint().to_string(),
    };
    let page = PAGE
        .replace("{version}", env!("CARGO_PKG_VERSION"))
        .replace("{account}", account)
        .replace("{endpoint}", &endpoint)
        .replace("{emulator}", &format!("{origin}/{EMULATOR_ACCOUNT}"));
    let mut response = Response::new(page.into());
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    Some(response)
}

/// Returns true if a browser opens the URL: no client of the service asks for a page, and no other
/// page does so by a script.
fn is_from_browser(head: &Parts) -> bool {
    let is_of_client = |name: &HeaderName| {
        let own = [header::AUTHORIZATION, header::ORIGIN];
        own.contains(name) || name.as_str().starts_with("x-ms-")
    };
    head.method == Method::GET
        && head.uri.query().is_none()
        && !head.headers.keys().any(is_of_client)
        && head.headers.get_all(header::ACCEPT).iter().any(has_html)
}

fn has_html(accept: &HeaderValue) -> bool {
    let mut forms = accept.as_bytes().split(|byte| *byte == b',');
    forms.any(|form| {
        let name = form.split(|byte| *byte == b';').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(b"text/html")
    })
}

/// Returns true if the URL is that of the server or of one of its accounts.
fn is_of_account(context: &Context, serves: impl Fn(&str) -> bool) -> bool {
    let account = context.account();
    context.resource().trim_start_matches('/').is_empty()
        && context.location() == Location::Primary
        && (account.is_empty() || serves(account))
}

/// Scheme, host and port as the browser wrote them; `None` if they have characters that would need
/// an escape in the page.
fn origin(context: &Context) -> Option<&str> {
    let endpoint = context.endpoint();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:/-[]".contains(&byte);
    let url = endpoint.as_str();
    let origin = url.strip_suffix(endpoint.path()).unwrap_or(url);
    url.bytes().all(is_plain).then_some(origin)
}

const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    ),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        ),
    ),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    ),
];
const PAGE: &str = include_str!("front_page.html");
