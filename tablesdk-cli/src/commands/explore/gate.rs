//! Who gets in: the browser that has opened the page, on this machine, from a page of its own.
//!
//! Cookies and `SameSite` ignore ports, and any page on the internet can send requests to a port of
//! this machine. So the `Host` and the `Origin` of a request are exact, the browser says that the
//! request comes from the page itself (`Sec-Fetch-Site`), and it has the cookie that only the first
//! use of the printed token sets. What a form sends has a token of its own: see
//! [`Posted`](super::posted::Posted).

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};

use super::app::App;
use super::posted::TOKEN;
use super::problem::{self, Refusal};
use super::random::Secret;
use crate::error::AnyError;

/// The secrets of the page, and its address.
pub(super) struct Gate {
    /// The only `Host`: an address and a port, which a browser leaves out if it is 80.
    host: String,
    origin: String,
    cookie_name: String,
    cookie: Secret,
    /// That of the URL which sets the cookie; `None` once it was used.
    opening: Mutex<Option<Secret>>,
    form: Secret,
}

impl Gate {
    pub(super) fn new(port: u16) -> Result<Self, AnyError> {
        let host = match port {
            80 => "127.0.0.1".to_owned(),
            _ => format!("127.0.0.1:{port}"),
        };
        Ok(Self {
            origin: format!("http://{host}"),
            host,
            cookie_name: format!("tables-{port}"),
            cookie: Secret::new()?,
            opening: Mutex::new(Some(Secret::new()?)),
            form: Secret::new()?,
        })
    }

    /// The URL that opens the page, once.
    pub(super) fn opening_url(&self) -> Option<String> {
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let token = opening.as_ref()?.as_str();
        Some(format!("{}/open?token={token}", self.origin))
    }

    /// The URL of a path of the page.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// Takes the token of the opening URL. The result is the cookie to set.
    pub(super) fn open(&self, token: &str) -> Option<HeaderValue> {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        opening.take_if(|known| known.is(token))?;
        let (name, value) = (&self.cookie_name, self.cookie.as_str());
        HeaderValue::try_from(format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/")).ok()
    }

    /// The token that a form of the page has.
    pub(super) fn form_token(&self) -> &str {
        self.form.as_str()
    }

    /// The field that each form of the page has.
    pub(super) fn token_field(&self) -> Markup {
        html! { input type="hidden" name=(TOKEN) value=(self.form_token()); }
    }

    pub(super) fn is_form_token(&self, text: &str) -> bool {
        self.form.is(text)
    }

    /// Returns true if the browser has the cookie.
    pub(super) fn knows(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).into_iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        cookies
            .flat_map(|value| value.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .any(|(name, value)| name == self.cookie_name && self.cookie.is(value))
    }

    fn check(&self, request: &Request) -> Result<(), Refusal> {
        let headers = request.headers();
        let authority = request.uri().authority();
        if only(headers, &HOST) != Some(&self.host)
            || authority.is_some_and(|it| it.as_str() != self.host)
        {
            return Err(Refusal::Host);
        }
        let path = request.uri().path();
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let site = if headers.contains_key(&SEC_FETCH_SITE) {
            only(headers, &SEC_FETCH_SITE)
        } else {
            Some("none")
        };
        let is_own_site = matches!(site, Some("same-origin" | "none"));
        if headers.contains_key(ORIGIN) {
            let origin = only(headers, &ORIGIN);
            // A form has no origin, since the page has no referrer. Then the browser itself must
            // say where it comes from.
            let is_hidden = origin == Some("null") && site == Some("same-origin");
            if origin != Some(&self.origin) && !is_hidden {
                return Err(Refusal::Origin);
            }
        }
        if *request.method() == Method::GET && path == "/open"
            || is_read && path.starts_with("/assets/")
        {
            // The token is the proof. A file of the program is no secret, and the page without the
            // cookie looks as it should.
            return Ok(());
        }
        if !is_own_site && !is_read {
            return Err(Refusal::Origin);
        }
        if !is_own_site || !self.knows(headers) {
            let target = request.uri().path_and_query();
            return Err(Refusal::Cookie(target.map(ToString::to_string)));
        }
        match *request.method() {
            Method::GET | Method::HEAD | Method::POST => Ok(()),
            _ => Err(Refusal::Method),
        }
    }
}

/// The value of a header that is there exactly once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).into_iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Lets a request in or refuses it, and sets the headers of the response.
pub(super) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = match app.gate.check(&request) {
        Ok(()) => problem::with_words(next.run(request).await).await,
        Err(refusal) => problem::refused(&refusal).into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // A page has data of the tables: only a file of the program may be kept.
    let cache = headers.entry(CACHE_CONTROL);
    cache.or_insert(HeaderValue::from_static("no-store"));
    response
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const HEADERS: [(HeaderName, &str); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn a_browser_leaves_port_80_out() {
        for (port, host) in [(80, "127.0.0.1"), (10010, "127.0.0.1:10010")] {
            let gate = Gate::new(port).expect("there are random numbers");
            let url = gate.opening_url().expect("it was not used");
            assert!(url.starts_with(&format!("http://{host}/open?")), "{url}");
            for named in ["127.0.0.1", "127.0.0.1:80", "127.0.0.1:10010"] {
                let request = Request::get("/open").header(HOST, named);
                let origin = format!("http://{named}");
                let request = request.header(ORIGIN, origin).body(Body::empty());
                let checked = gate.check(&request.expect("it is a request"));
                assert_eq!(checked.is_ok(), named == host, "{port}: {named}");
            }
        }
    }
}
