//! The base URL of an account's table service.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/addressing-table-service-resources>.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use http::Uri;

use super::QueryOptions;
use super::resource_path::write_entity_path;
use crate::types::{EntityKey, TableName};

/// The URL under which an account's tables are addressed, such as
/// `https://acct.table.core.windows.net` or `http://127.0.0.1:10002/devstoreaccount1`. Has no
/// trailing slash.
///
/// ```
/// # use tablesdk_protocol::Endpoint;
/// let endpoint: Endpoint = "http://127.0.0.1:10002/devstoreaccount1/".parse()?;
/// assert_eq!(endpoint.to_string(), "http://127.0.0.1:10002/devstoreaccount1");
/// assert_eq!(endpoint.account(), Some("devstoreaccount1"));
/// # Ok::<(), tablesdk_protocol::InvalidEndpointError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    url: String,
    /// Where the path starts in `url`: at its end, for an endpoint of host style.
    path_start: usize,
}

impl Endpoint {
    /// The endpoint from its parts; `path` is empty or starts with a slash.
    pub fn from_parts(scheme: &str, authority: &str, path: &str) -> Self {
        let path_start = scheme.len() + "://".len() + authority.len();
        let mut url = String::with_capacity(path_start + path.len());
        for part in [scheme, "://", authority, path.trim_end_matches('/')] {
            url.push_str(part);
        }
        Self { url, path_start }
    }

    /// The URL, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.url
    }

    /// The host, without a port: a name or an address, the latter in brackets if it is one of IPv6.
    pub fn host(&self) -> &str {
        let (_, rest) = self.url.split_once("://").unwrap_or_default();
        let authority = rest.split('/').next().unwrap_or_default();
        match authority.rsplit_once(':') {
            // What is behind the last colon of an IPv6 address without a port ends with its
            // bracket.
            Some((host, port)) if !port.ends_with(']') => host,
            _ => authority,
        }
    }

    /// The path that precedes every resource: empty for an endpoint of host style, `/account` for
    /// one of path style.
    pub fn path(&self) -> &str {
        self.url.get(self.path_start..).unwrap_or_default()
    }

    /// Returns true if the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.url.starts_with("https://")
    }

    /// The account that the URL names: the first segment of the path, or else the first label of a
    /// host that has `.table.` in it. A trailing `-secondary` is no part of it. `None` for a custom
    /// domain.
    pub fn account(&self) -> Option<&str> {
        let segment = self.path().split('/').find(|segment| !segment.is_empty());
        let account = segment.or_else(|| {
            let (_, host) = self.url.split_once("://")?;
            let (label, rest) = host.split_once('.')?;
            (rest.starts_with("table.") || rest.contains(".table.")).then_some(label)
        })?;
        Some(account.strip_suffix("-secondary").unwrap_or(account))
    }

    /// The endpoint of the account's secondary, `account-secondary`, which serves reads of a
    /// geo-redundant account. `None` for a custom domain, whose secondary has a name of its own,
    /// and for an endpoint that is a secondary already.
    ///
    /// ```
    /// # use tablesdk_protocol::Endpoint;
    /// let endpoint: Endpoint = "https://acct.table.core.windows.net".parse()?;
    /// let secondary = endpoint.secondary().unwrap();
    /// assert_eq!(secondary.as_str(), "https://acct-secondary.table.core.windows.net");
    /// assert!(secondary.secondary().is_none());
    /// # Ok::<(), tablesdk_protocol::InvalidEndpointError>(())
    /// ```
    #[must_use]
    pub fn secondary(&self) -> Option<Self> {
        let account = self.account()?;
        let (origin, path) = self.url.split_at_checked(self.path_start)?;
        let (scheme, authority) = origin.split_once("://")?;
        // Behind the account's name, in the path or else in the host.
        match path.strip_prefix('/') {
            Some(segments) => {
                let rest = segments.strip_prefix(account)?;
                let whole = rest.is_empty() || rest.starts_with('/');
                let path = format!("/{account}-secondary{rest}");
                whole.then(|| Self::from_parts(scheme, authority, &path))
            }
            None => {
                let rest = authority.strip_prefix(account)?;
                let authority = format!("{account}-secondary{rest}");
                rest.starts_with('.')
                    .then(|| Self::from_parts(scheme, &authority, ""))
            }
        }
    }

    /// The URL of a resource below this endpoint.
    ///
    /// # Panics
    ///
    /// Never for what [`ResourcePath`](crate::path::ResourcePath) and
    /// [`QueryOptions`](super::QueryOptions) print, up to the 65,534 bytes that a `Uri` can have.
    pub(crate) fn join(&self, resource: fmt::Arguments<'_>) -> Uri {
        let mut url = String::with_capacity(self.url.len() + RESOURCE_BYTES);
        write!(url, "{}/{resource}", self.url).expect("writing to memory cannot fail");
        as_uri(url)
    }

    /// The URL of an entity, or that of the set of all entities of a table, with a query.
    pub(crate) fn entity_uri(
        &self,
        table: &TableName,
        key: Option<&EntityKey>,
        options: &QueryOptions,
    ) -> Uri {
        let mut url = self.entity_url(table, key);
        write!(url, "{options}").expect("writing to memory cannot fail");
        as_uri(url)
    }

    /// The URL of an entity, or that of the set of all entities of a table.
    pub(crate) fn entity_url(&self, table: &TableName, key: Option<&EntityKey>) -> String {
        let mut url = String::with_capacity(self.url.len() + RESOURCE_BYTES);
        self.write_entity_url(&mut url, table, key);
        url
    }

    /// Appends the URL of an entity, or that of the set of all entities of a table.
    pub(crate) fn write_entity_url(
        &self,
        out: &mut String,
        table: &TableName,
        key: Option<&EntityKey>,
    ) {
        out.push_str(&self.url);
        out.push('/');
        write_entity_path(out, table, key).expect("writing to memory cannot fail");
    }
}

fn as_uri(url: String) -> Uri {
    Uri::try_from(url).expect("percent-encoded text below a valid endpoint is a URL")
}

impl FromStr for Endpoint {
    type Err = InvalidEndpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.len() > ENDPOINT_BYTES_MAX {
            return Err(InvalidEndpointError::TooLong);
        }
        let uri: Uri = text.parse().map_err(|_| InvalidEndpointError::NotAUrl)?;
        let scheme = uri.scheme_str().ok_or(InvalidEndpointError::NotAUrl)?;
        if scheme != "http" && scheme != "https" {
            return Err(InvalidEndpointError::Scheme);
        }
        let authority = uri
            .authority()
            .ok_or(InvalidEndpointError::NotAUrl)?
            .as_str();
        if authority.contains('@') {
            return Err(InvalidEndpointError::UserInfo);
        }
        if uri.query().is_some() {
            return Err(InvalidEndpointError::Query);
        }
        Ok(Self::from_parts(scheme, authority, uri.path()))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// A string is not an [`Endpoint`]. The error never contains the string, which may contain a
/// signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEndpointError {
    /// Not an absolute URL.
    #[error("not a URL such as https://account.table.core.windows.net")]
    NotAUrl,
    /// A scheme other than http and https.
    #[error("the scheme is neither http nor https")]
    Scheme,
    /// A user name or password in front of the host.
    #[error("it holds a user name or password")]
    UserInfo,
    /// A query; a shared access signature is given on its own.
    #[error("it has a query; give a shared access signature on its own")]
    Query,
    /// More bytes than any host and path need.
    #[error("it is longer than {ENDPOINT_BYTES_MAX} bytes")]
    TooLong,
}

/// The bytes that most resources add to the URL of an endpoint. They are reserved, so that memory
/// is allocated once.
const RESOURCE_BYTES: usize = 80;

/// The longest endpoint, in bytes: URLs of resources below it must not exceed their limit.
const ENDPOINT_BYTES_MAX: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_styles() {
        for (text, url, path, account) in [
            (
                "https://acct.table.core.windows.net/",
                "https://acct.table.core.windows.net",
                "",
                Some("acct"),
            ),
            (
                "https://acct-secondary.table.core.windows.net",
                "https://acct-secondary.table.core.windows.net",
                "",
                Some("acct"),
            ),
            (
                "https://acct.z01.table.storage.azure.net",
                "https://acct.z01.table.storage.azure.net",
                "",
                Some("acct"),
            ),
            (
                "http://127.0.0.1:10002/acct//",
                "http://127.0.0.1:10002/acct",
                "/acct",
                Some("acct"),
            ),
            (
                "http://[::1]:10002/acct-secondary",
                "http://[::1]:10002/acct-secondary",
                "/acct-secondary",
                Some("acct"),
            ),
            (
                "https://tables.contoso.example",
                "https://tables.contoso.example",
                "",
                None,
            ),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.as_str(), url);
            assert_eq!(endpoint.path(), path);
            assert_eq!(endpoint.account(), account, "{text}");
        }
    }

    #[test]
    fn the_secondary_is_next_to_the_account() {
        for (text, secondary) in [
            (
                "https://acct.table.core.windows.net/",
                Some("https://acct-secondary.table.core.windows.net"),
            ),
            (
                "http://127.0.0.1:10002/acct",
                Some("http://127.0.0.1:10002/acct-secondary"),
            ),
            (
                "http://host/acct/more",
                Some("http://host/acct-secondary/more"),
            ),
            ("http://127.0.0.1:10002/acct-secondary", None),
            ("https://acct-secondary.table.core.windows.net", None),
            ("https://tables.contoso.example", None),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            let found = endpoint.secondary();
            assert_eq!(found.as_ref().map(Endpoint::as_str), secondary, "{text}");
        }
    }

    #[test]
    fn the_host_has_no_port() {
        for (text, host) in [
            (
                "https://acct.table.core.windows.net:443",
                "acct.table.core.windows.net",
            ),
            ("http://127.0.0.1/acct:1", "127.0.0.1"),
            ("http://[::1]/acct", "[::1]"),
            ("http://[::1]:1/acct", "[::1]"),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.host(), host, "{text}");
        }
    }

    #[test]
    fn says_why_it_refuses() {
        for (text, error) in [
            ("", InvalidEndpointError::NotAUrl),
            ("127.0.0.1:10002", InvalidEndpointError::NotAUrl),
            ("/acct", InvalidEndpointError::NotAUrl),
            ("ftp://acct", InvalidEndpointError::Scheme),
            (
                "https://me:secret@acct.example",
                InvalidEndpointError::UserInfo,
            ),
            ("https://acct.example/?sig=x", InvalidEndpointError::Query),
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(error), "{text}");
        }
    }
}
