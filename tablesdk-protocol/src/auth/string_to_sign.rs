//! The string that a signature covers, from the parts of a request as they are on the wire.

use http::{HeaderMap, HeaderValue, Method, Uri, header};
use percent_encoding::percent_decode_str;

use crate::types::header::{CONTENT_MD5, X_MS_DATE};

/// The two schemes that sign with an account's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the service has these two schemes")]
pub enum Scheme {
    /// `SharedKey`: verb, Content-MD5, Content-Type, date and resource.
    SharedKey,
    /// `SharedKeyLite`: date and resource.
    SharedKeyLite,
}

impl Scheme {
    /// The word in the `Authorization` header.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SharedKey => "SharedKey",
            Self::SharedKeyLite => "SharedKeyLite",
        }
    }
}

/// The string that `scheme` signs for this request to `account`.
///
/// The date line is `x-ms-date` where the request has one, else `Date`; a missing header is an
/// empty line.
pub fn string_to_sign(
    scheme: Scheme,
    account: &str,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> String {
    let mut text = String::with_capacity(256);
    write_string_to_sign(scheme, account, method, uri, headers, |part| {
        text.push_str(part);
    });
    text
}

/// Passes the parts of the string that `scheme` signs to a function, in order.
pub(super) fn write_string_to_sign(
    scheme: Scheme,
    account: &str,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    mut write: impl FnMut(&str),
) {
    let date = headers.get(X_MS_DATE).or_else(|| headers.get(header::DATE));
    if scheme == Scheme::SharedKey {
        for line in [
            method.as_str(),
            text(headers.get(CONTENT_MD5)),
            text(headers.get(header::CONTENT_TYPE)),
        ] {
            write(line);
            write("\n");
        }
    }
    write(text(date));
    write("\n");
    write_canonicalized_resource(account, uri, write);
}

/// `/{account}{path}`, the path with its percent-encoding untouched, and `?comp=…` where the query
/// has it.
pub fn canonicalized_resource(account: &str, uri: &Uri) -> String {
    let mut text = String::new();
    write_canonicalized_resource(account, uri, |part| text.push_str(part));
    text
}

/// A missing header is empty.
fn text(value: Option<&HeaderValue>) -> &str {
    let text = value.and_then(|value| value.to_str().ok());
    text.unwrap_or_default()
}

fn write_canonicalized_resource(account: &str, uri: &Uri, mut write: impl FnMut(&str)) {
    let path = match uri.path() {
        "" => "/",
        path => path,
    };
    // By its decoded name, as the server reads it: a spelling that is not signed must not mean the
    // same.
    let is_comp = |name: &str| percent_decode_str(name).eq(*b"comp");
    let comp = uri.query().and_then(|query| {
        let pairs = query.split('&');
        let mut pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let comp = pairs.find(|(name, _)| is_comp(name));
        comp.map(|(_, value)| value)
    });
    for part in ["/", account, path] {
        write(part);
    }
    if let Some(comp) = comp {
        write("?comp=");
        write(comp);
    }
}

/// The URL of a path-style secondary with the `-secondary` taken off its account: what the
/// documentation says is signed, where most clients sign the URL they send. `None` for any other
/// URL.
pub fn documented_secondary(account: &str, uri: &Uri) -> Option<Uri> {
    let rest = uri
        .path()
        .strip_prefix('/')?
        .strip_prefix(account)?
        .strip_prefix("-secondary")?;
    if !(rest.is_empty() || rest.starts_with('/')) {
        return None;
    }
    let query = uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    format!("/{account}{rest}{query}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_comp_is_signed() {
        for (query, resource) in [
            ("comp=acl", "/acct/t?comp=acl"),
            ("%63omp=acl", "/acct/t?comp=acl"),
            ("a=b&co%6dp=acl&comp=x", "/acct/t?comp=acl"),
            ("comp", "/acct/t?comp="),
            ("xcomp=acl&$filter=comp", "/acct/t"),
        ] {
            let uri = format!("http://127.0.0.1/t?{query}").parse().unwrap();
            assert_eq!(canonicalized_resource("acct", &uri), resource, "{query}");
        }
    }
}
