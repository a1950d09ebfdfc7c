//! Cross-origin resource sharing: evaluates the CORS rules of an account for pages of other
//! origins.
//!
//! A browser first sends an unauthenticated preflight for a request of a page, and shows a response
//! to the page only if its headers permit it. CORS does not change the effect of a request. This
//! module knows rules and headers, but neither credentials nor storage. See
//! <https://learn.microsoft.com/rest/api/storageservices/cross-origin-resource-sharing--cors--support-for-the-azure-storage-services>.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use tablesdk_protocol::{CorsRule, ErrorCode, ServiceError};

/// The CORS headers of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cors {
    allowed: Option<Allowed>,
    /// True if another origin may get other headers.
    varies: bool,
    is_deferred: bool,
}

/// The permissions that a rule grants to the page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Allowed {
    /// The page's origin, or `*` for all.
    origin: HeaderValue,
    exposed_headers: Vec<String>,
}

impl Cors {
    /// Returns true if the rules can matter for a request at all.
    pub(crate) fn concerns(head: &Parts) -> bool {
        is_cached(&head.method) || head.headers.contains_key(ORIGIN)
    }

    /// The state of a request without an origin. The rules are read together with the resource that
    /// it asks for.
    pub(crate) const fn deferred() -> Self {
        Self {
            allowed: None,
            varies: false,
            is_deferred: true,
        }
    }

    /// Returns true if the rules are not known yet.
    pub(crate) const fn is_deferred(&self) -> bool {
        self.is_deferred
    }

    /// Evaluates the rules for a cacheable request without an origin.
    pub(crate) fn without_origin(rules: &[CorsRule]) -> Self {
        Self {
            varies: distinguishes_origins(rules),
            ..Self::default()
        }
    }

    /// Evaluates the rules for a request that is not a preflight.
    // SERVICE: only the preflight compares the headers of the request with the rule.
    pub(crate) fn of(head: &Parts, rules: &[CorsRule]) -> Self {
        let origin = head.headers.get(ORIGIN);
        let rule = origin.and_then(|origin| {
            let mut rules = rules.iter();
            rules.find(|rule| {
                allows_origin(rule, origin) && allows_method(rule, head.method.as_str())
            })
        });
        let allowed = rule.zip(origin).map(|(rule, origin)| Allowed {
            origin: if allows_all_origins(rule) {
                HeaderValue::from_static(ALL)
            } else {
                origin.clone()
            },
            exposed_headers: rule.exposed_headers.clone(),
        });
        let varies = match &allowed {
            Some(allowed) => allowed.origin != ALL,
            // A cache must not give this response to a page for which another one is made.
            None => is_cached(&head.method) && distinguishes_origins(rules),
        };
        Self {
            allowed,
            varies,
            is_deferred: false,
        }
    }

    /// Adds the headers to a response to an unauthenticated client: those of a preflight, and the
    /// list of exposed headers. The existence of rules for other origins is not revealed, and
    /// caches do not keep a refusal.
    // SERVICE: it is unknown whether its front end sends these headers to unauthenticated clients.
    pub(crate) fn apply_to_refusal(&self, headers: &mut HeaderMap) {
        if self.allowed.is_some() {
            self.apply(headers);
        }
    }

    /// Adds the headers to a response that has all its other headers.
    pub(crate) fn apply(&self, headers: &mut HeaderMap) {
        if self.varies {
            headers.insert(VARY, HeaderValue::from_static("Origin"));
        }
        let Some(allowed) = &self.allowed else {
            return;
        };
        let exposed = exposed_headers(&allowed.exposed_headers, headers);
        if let Some(exposed) = exposed {
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed.origin.clone());
        if allowed.origin != ALL {
            let yes = HeaderValue::from_static("true");
            headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
        }
    }
}

/// Returns true if a request is a preflight.
// SERVICE: `OPTIONS` without a CORS header is an ordinary method, which no resource supports.
pub(crate) fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS
        && (head.headers.contains_key(ORIGIN)
            || head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD))
}

/// Responds to a preflight by the first rule that allows all of it.
///
/// # Errors
///
/// `InvalidHeaderValue` if origin or method are missing; `CorsPreflightFailure` if no rule allows
/// it.
pub(crate) fn preflight(
    headers: &HeaderMap,
    rules: &[CorsRule],
) -> Result<Response<Bytes>, ServiceError> {
    let required = |name: HeaderName| {
        let message = "A required CORS header is not present.";
        let value = headers.get(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| ServiceError::new(ErrorCode::InvalidHeaderValue, message))
    };
    let origin = required(ORIGIN)?;
    let method = required(ACCESS_CONTROL_REQUEST_METHOD)?;
    let wanted = headers.get(ACCESS_CONTROL_REQUEST_HEADERS);
    let rule = rules.iter().find(|rule| {
        allows_origin(rule, origin)
            && method
                .to_str()
                .is_ok_and(|method| allows_method(rule, method))
            && wanted.is_none_or(|wanted| allows_headers(rule, wanted))
    });
    let rule = rule.ok_or_else(|| ServiceError::from(ErrorCode::CorsPreflightFailure))?;
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, method.clone());
    if let Some(wanted) = wanted {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, rule.max_age_in_seconds.into());
    let yes = HeaderValue::from_static("true");
    headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
    Ok(response)
}

/// Returns true if pages of other origins may get other headers.
fn distinguishes_origins(rules: &[CorsRule]) -> bool {
    rules.iter().any(|rule| !allows_all_origins(rule))
}

fn allows_all_origins(rule: &CorsRule) -> bool {
    rule.allowed_origins.iter().any(|allowed| allowed == ALL)
}

/// Origins are compared with their case, as documented.
fn allows_origin(rule: &CorsRule, origin: &HeaderValue) -> bool {
    let origins = rule.allowed_origins.iter();
    allows_all_origins(rule)
        || origins
            .into_iter()
            .any(|allowed| origin == allowed.as_str())
}

fn allows_method(rule: &CorsRule, method: &str) -> bool {
    rule.allowed_methods.iter().any(|allowed| allowed == method)
}

/// Returns true if each of the names is in the list.
fn allows_headers(rule: &CorsRule, names: &HeaderValue) -> bool {
    let Ok(names) = names.to_str() else {
        return false;
    };
    let mut names = names.split(',').map(str::trim);
    names.all(|name| {
        let mut allowed = rule.allowed_headers.iter();
        name.is_empty() || allowed.any(|allowed| covers(allowed, name))
    })
}

/// Returns true if an item of a list of headers, which is a name or a prefix followed by a star,
/// covers a name. Case does not matter.
fn covers(item: &str, name: &str) -> bool {
    match item.strip_suffix('*') {
        Some(prefix) => {
            let start = name.get(..prefix.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        }
        None => item.eq_ignore_ascii_case(name),
    }
}

/// The headers that the page may see: the listed ones, and those of the response with a listed
/// prefix.
fn exposed_headers(items: &[String], response: &HeaderMap) -> Option<HeaderValue> {
    let mut names: Vec<&str> = Vec::new();
    for item in items {
        if item.ends_with('*') {
            let found = response.keys().map(HeaderName::as_str);
            names.extend(found.filter(|name| covers(item, name)));
        } else {
            names.push(item);
        }
    }
    if names.is_empty() {
        return None;
    }
    HeaderValue::from_str(&names.join(",")).ok()
}

/// Returns true if caches keep responses to this method.
fn is_cached(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// Every origin.
const ALL: &str = "*";
