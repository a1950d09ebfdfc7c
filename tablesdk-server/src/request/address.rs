//! Parses the target of a URL: the account, from the host or from the path, its location, and the
//! resource.
//!
//! This module has no list of the accounts; the caller passes a function that knows them. See
//! <https://learn.microsoft.com/azure/storage/common/storage-use-azurite#service-urls> for both styles of URL.

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use http::request::Parts;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri, header};
use tablesdk_protocol::Endpoint;

/// The account and the resource that a request addresses.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// The account. It may not exist.
    pub(crate) account: Arc<str>,
    /// The location of the account.
    pub(crate) location: Location,
    is_https: bool,
    /// The value of the header `Host`.
    host: Option<HeaderValue>,
    uri: Uri,
    /// Where the account is in the path, with the slash before it; empty if the host names it.
    segment: Range<usize>,
    /// Where the path below the account starts.
    resource_start: usize,
    /// Made when a response needs it: most have no URL.
    endpoint: OnceLock<Endpoint>,
}

/// A location of an account. Both have the same content here; the service replicates from the
/// primary to the secondary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// For reads and writes.
    Primary,
    /// For reads only: the name of the account is followed by `-secondary`.
    Secondary,
}

impl Address {
    /// Reads the head of a request: the first label of the host, where it names an account, or else
    /// the first segment of the path.
    ///
    /// `is_encrypted`: whether the request came over TLS. `known` returns the name of an account of
    /// the server, to be shared.
    pub(crate) fn of(
        head: &Parts,
        is_encrypted: bool,
        known: impl Fn(&str) -> Option<Arc<str>>,
    ) -> Self {
        let path = head.uri.path();
        let host = head.headers.get(header::HOST);
        let address = |account, location, segment, resource: &str| Self {
            account,
            location,
            is_https: is_encrypted || head.uri.scheme() == Some(&Scheme::HTTPS),
            host: host.cloned(),
            uri: head.uri.clone(),
            segment,
            resource_start: path.len() - resource.len(),
            endpoint: OnceLock::new(),
        };
        // A server in a container is reached under any host name, which may contain dots. So the
        // first label counts only if it is the name of an account here.
        if let Some(label) = account_label(authority(host, &head.uri)) {
            let (account, location) = split_location(&label);
            // The path names an account of the server with that name, too, as for any other host
            // without dots.
            let in_path = || label == LOCALHOST && known(split_path(path).0).is_some();
            if let Some(account) = known(account)
                && !in_path()
            {
                return address(account, location, 0..0, path.trim_start_matches('/'));
            }
        }
        let (segment, resource) = split_path(path);
        let (account, location) = split_location(segment);
        let resource = match location {
            Location::Primary => resource,
            Location::Secondary => without_account(resource, account),
        };
        let start = path.len() - path.trim_start_matches('/').len();
        let segment = start.saturating_sub(1)..start + segment.len();
        let account = known(account).unwrap_or_else(|| account.into());
        address(account, location, segment, resource)
    }

    /// The account's URL as the client wrote it.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.endpoint.get_or_init(|| {
            let scheme = if self.is_https { "https" } else { "http" };
            let authority = authority(self.host.as_ref(), &self.uri);
            let path = self.uri.path().get(self.segment.clone());
            Endpoint::from_parts(scheme, authority, path.unwrap_or_default())
        })
    }

    /// The path below the account, percent-encoded.
    pub(crate) fn resource(&self) -> &str {
        let resource = self.uri.path().get(self.resource_start..);
        resource.unwrap_or_default()
    }
}

/// The label of a host that may name an account, in lower case: the first of several.
fn account_label(authority: &str) -> Option<Cow<'_, str>> {
    // The rest of an IPv6 address starts with a bracket, so it is never an account.
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    let host = host.trim_end_matches('.');
    let is_none = |name: &&str| host.eq_ignore_ascii_case(name);
    if host.parse::<IpAddr>().is_ok() || NO_ACCOUNT.iter().any(is_none) {
        return None;
    }
    let label = match host.split_once('.') {
        Some((label, _)) => label,
        // As the emulator of Cosmos DB: its account has the name of its host.
        None if host.eq_ignore_ascii_case(LOCALHOST) => host,
        None => return None,
    };
    Some(if label.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(label.to_ascii_lowercase())
    } else {
        Cow::Borrowed(label)
    })
}

fn split_location(name: &str) -> (&str, Location) {
    match name.strip_suffix("-secondary") {
        Some(account) => (account, Location::Secondary),
        None => (name, Location::Primary),
    }
}

/// The account's name, and the rest of the path. Some clients double slashes.
fn split_path(path: &str) -> (&str, &str) {
    let path = path.trim_start_matches('/');
    path.split_once('/').unwrap_or((path, ""))
}

/// The path without the account's name in front.
// SERVICE: the Python client addresses a secondary as `/acct-secondary/acct/…`. If nothing follows,
// the name is that of a table.
fn without_account<'p>(resource: &'p str, account: &str) -> &'p str {
    let rest = resource.trim_start_matches('/').strip_prefix(account);
    rest.and_then(|rest| rest.strip_prefix('/'))
        .unwrap_or(resource)
}

/// Host and port as the client wrote them.
fn authority<'a>(host: Option<&'a HeaderValue>, uri: &'a Uri) -> &'a str {
    host.and_then(|host| host.to_str().ok())
        .or_else(|| uri.authority().map(Authority::as_str))
        .unwrap_or("localhost")
}

/// The only host name without dots that may name an account.
const LOCALHOST: &str = "localhost";

/// A host name with dots that means the machine itself, inside a container.
const NO_ACCOUNT: [&str; 1] = ["host.docker.internal"];

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn address(host: &str, uri: &str) -> Address {
        let mut request = Request::get(uri);
        if !host.is_empty() {
            request = request.header("host", host);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let known = ["acct", "second", "host"];
        Address::of(&head, false, |name| {
            known.contains(&name).then(|| name.into())
        })
    }

    #[test]
    fn the_path_names_the_account() {
        let host = "127.0.0.1:10002";
        for (uri, account, resource) in [
            ("/acct/Tables", "acct", "Tables"),
            ("//acct//Tables", "acct", "/Tables"),
            ("/acct", "acct", ""),
            ("/acct/", "acct", ""),
            ("/", "", ""),
            ("http://elsewhere/acct/people()?$top=1", "acct", "people()"),
        ] {
            let address = address(host, uri);
            assert_eq!((&*address.account, address.resource()), (account, resource));
            let endpoint = format!("http://127.0.0.1:10002/{account}");
            assert_eq!(address.endpoint().as_str(), endpoint.trim_end_matches('/'));
        }
        let address = address("", "http://localhost:7/acct/Tables");
        assert_eq!(address.endpoint().as_str(), "http://localhost:7/acct");
    }

    #[test]
    fn a_host_names_an_account_that_exists() {
        use Location::{Primary, Secondary};
        for (host, account, location) in [
            ("acct.table.localhost:10002", "acct", Primary),
            ("acct.table.localhost", "acct", Primary),
            ("ACCT.Table.Localhost.:1", "acct", Primary),
            ("acct.table.core.windows.net", "acct", Primary),
            ("acct.local", "acct", Primary),
            ("second-secondary.table.localhost", "second", Secondary),
        ] {
            let address = address(host, "/Tables");
            let found = (&*address.account, address.location, address.resource());
            assert_eq!(found, (account, location, "Tables"), "{host}");
            assert_eq!(address.endpoint().as_str(), format!("http://{host}"));
        }
        // Whatever the path says then.
        let under = address("acct.table.localhost", "//second/Tables");
        assert_eq!(
            (&*under.account, under.resource()),
            ("acct", "second/Tables")
        );
    }

    #[test]
    fn localhost_is_an_account_if_it_exists() {
        let address = |uri: &str| {
            let request = Request::get(uri).header("host", "Localhost:8902");
            let (head, ()) = request.body(()).unwrap().into_parts();
            Address::of(&head, false, |name| {
                (name == "localhost").then(|| name.into())
            })
        };
        let without = address("/Tables");
        assert_eq!(
            (&*without.account, without.resource()),
            ("localhost", "Tables")
        );
        assert_eq!(without.endpoint().as_str(), "http://Localhost:8902");
        let with = address("/localhost/Tables");
        assert_eq!((&*with.account, with.resource()), ("localhost", "Tables"));
        assert_eq!(with.endpoint().as_str(), "http://Localhost:8902/localhost");
    }

    #[test]
    fn without_an_account_in_the_host_the_path_names_it() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:10002",
            "[::1]:10002",
            "[::1]",
            "localhost:10002",
            "localhost",
            "localhost.",
            "acct",
            "acct:10002",
            "host.docker.internal:10002",
            "nobody.table.localhost",
            "nobody-secondary.table.localhost",
            "in-process.invalid",
            ".acct",
            ":",
            "",
        ] {
            let address = address(host, "/acct/Tables");
            assert_eq!(
                (&*address.account, address.resource()),
                ("acct", "Tables"),
                "{host}"
            );
        }
    }
}
