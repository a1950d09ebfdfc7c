//! Parses the target of a URL: the account, from the host or from the path, its location, and the resource.
//!
//! This module has no list of the accounts; the caller passes a function that knows them. See
//! <https://learn.microsoft.com/azure/storage/common/storage-use-azurite#service-urls> for both styles of URL.

use std::net::IpAddr;

use http::header;
use http::request::Parts;
use tablesdk_protocol::Endpoint;

use crate::request::connection::Encrypted;

/// The account and the resource that a request addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The account. It may not exist.
    pub(crate) account: String,
    /// The account's URL as the client wrote it.
    pub(crate) endpoint: Endpoint,
    /// The location of the account.
    pub(crate) location: Location,
    /// The path below the account, percent-encoded.
    pub(crate) resource: String,
}

/// A location of an account. Both have the same content here; the service replicates from the primary to the secondary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// For reads and writes.
    Primary,
    /// For reads only: the name of the account is followed by `-secondary`.
    Secondary,
}

impl Address {
    /// Reads the head of a request: the first label of the host, where it names an account, or else the first segment of the
    /// path.
    pub(crate) fn of(head: &Parts, is_account: impl Fn(&str) -> bool) -> Self {
        let authority = authority(head);
        let scheme = match head.extensions.get::<Encrypted>() {
            Some(Encrypted) => "https",
            None => head.uri.scheme_str().unwrap_or("http"),
        };
        let path = head.uri.path();
        // A server in a container is reached under any host name, which may contain dots. So the first label counts only if it is
        // the name of an account here.
        if let Some(label) = account_label(authority) {
            let (account, location) = split_location(&label);
            if is_account(account) {
                return Self {
                    account: account.to_owned(),
                    endpoint: Endpoint::from_parts(scheme, authority, ""),
                    location,
                    resource: path.trim_start_matches('/').to_owned(),
                };
            }
        }
        let (segment, resource) = split_path(path);
        let (account, location) = split_location(segment);
        let resource = match location {
            Location::Primary => resource,
            Location::Secondary => without_account(resource, account),
        };
        Self {
            account: account.to_owned(),
            endpoint: Endpoint::from_parts(scheme, authority, &format!("/{segment}")),
            location,
            resource: resource.to_owned(),
        }
    }
}

/// The label of a host that may name an account, in lower case: the first of several.
fn account_label(authority: &str) -> Option<String> {
    // The rest of an IPv6 address starts with a bracket, so it is never an account.
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host.parse::<IpAddr>().is_ok() || NO_ACCOUNT.contains(&host.as_str()) {
        return None;
    }
    let (label, _) = host.split_once('.')?;
    Some(label.to_owned())
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
// SERVICE: the Python client addresses a secondary as `/acct-secondary/acct/…`. If nothing follows, the name is that of a table.
fn without_account<'p>(resource: &'p str, account: &str) -> &'p str {
    let rest = resource.trim_start_matches('/').strip_prefix(account);
    rest.and_then(|rest| rest.strip_prefix('/'))
        .unwrap_or(resource)
}

/// Host and port as the client wrote them.
fn authority(head: &Parts) -> &str {
    let host = head.headers.get(header::HOST);
    host.and_then(|host| host.to_str().ok())
        .or_else(|| head.uri.authority().map(http::uri::Authority::as_str))
        .unwrap_or("localhost")
}

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
        Address::of(&head, |name| ["acct", "second", "host"].contains(&name))
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
            assert_eq!((&*address.account, &*address.resource), (account, resource));
            let endpoint = format!("http://127.0.0.1:10002/{account}");
            assert_eq!(address.endpoint.as_str(), endpoint.trim_end_matches('/'));
        }
        let address = address("", "http://localhost:7/acct/Tables");
        assert_eq!(address.endpoint.as_str(), "http://localhost:7/acct");
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
            let found = (&*address.account, address.location, &*address.resource);
            assert_eq!(found, (account, location, "Tables"), "{host}");
            assert_eq!(address.endpoint.as_str(), format!("http://{host}"));
        }
        // Whatever the path says then.
        let under = address("acct.table.localhost", "//second/Tables");
        assert_eq!(
            (&*under.account, &*under.resource),
            ("acct", "second/Tables")
        );
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
                (&*address.account, &*address.resource),
                ("acct", "Tables"),
                "{host}"
            );
        }
    }
}
