//! The URL of a database, and the size of the pool.

use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};

use super::errors;

/// Where the database is, and how many connections a server opens.
#[derive(Clone)]
pub(crate) struct PostgresOptions {
    url: String,
    /// How many connections a server opens at most.
    pub(crate) connections_max: NonZeroUsize,
}

impl PostgresOptions {
    pub(crate) const fn new(url: String) -> Self {
        Self {
            url,
            connections_max: CONNECTIONS_MAX,
        }
    }

    /// The options of a connection.
    pub(super) fn config(&self) -> io::Result<Config> {
        let (url, _) = self.split()?;
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let error = errors::describe(&error);
            invalid(format!("the URL of the database is not valid: {error}"))
        })?;
        if config.get_hosts().is_empty() {
            return Err(invalid("the URL of the database names no host"));
        }
        if config.get_target_session_attrs() == TargetSessionAttrs::Any {
            // Of several hosts, the one that is the primary now.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        if config.get_application_name().is_none() {
            config.application_name("tablesdk-server");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(HOST_MAX);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(super::STATEMENT_MAX);
        }
        Ok(config)
    }

    /// The file with the certificates that the database's certificate must come from.
    pub(super) fn root_certificate(&self) -> Option<PathBuf> {
        let (_, root) = self.split().ok()?;
        root.map(PathBuf::from)
    }

    /// The URL as the client library reads it, and the parameter that only this module knows.
    fn split(&self) -> io::Result<(String, Option<String>)> {
        let is_url = ["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| self.url.starts_with(scheme));
        if !is_url {
            return Err(invalid(
                "the URL of a database starts with postgres:// or postgresql://",
            ));
        }
        // The library takes what is behind a first one for a host, and would show a part of the
        // password.
        let (_, rest) = self.url.split_once("://").unwrap_or_default();
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let count = |text: &str| text.matches('@').count();
        if count(rest) > 1 || count(rest) > count(authority) {
            return Err(invalid(
                "the URL of a database has one @, behind the password: write others as %40, and / and ? in the password as %2F and %3F",
            ));
        }
        let Some((url, query)) = self.url.split_once('?') else {
            return Ok((self.url.clone(), None));
        };
        let mut root = None;
        let mut kept = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslrootcert", path)) => {
                    let path = percent_encoding::percent_decode_str(path).decode_utf8();
                    root = Some(path.map_err(io::Error::other)?.into_owned());
                }
                // A certificate is always verified, with its host.
                Some(("sslmode", "verify-full")) => kept.push("sslmode=require"),
                Some(("sslmode", "verify-ca" | "allow")) => {
                    return Err(invalid(
                        "sslmode is disable, prefer, require or verify-full; the last two are the same: the certificate \
                         and its host are always verified",
                    ));
                }
                _ => kept.push(pair),
            }
        }
        Ok((format!("{url}?{}", kept.join("&")), root))
    }
}

/// The hosts and ports of a configuration.
pub(super) fn hosts(config: &Config) -> String {
    let ports = config.get_ports();
    let names = config.get_hosts().iter().enumerate().map(|(place, host)| {
        // One port is that of all hosts.
        let port = ports.get(place).or_else(|| ports.first()).unwrap_or(&5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            Host::Unix(directory) => format!("{}, port {port}", directory.display()),
        }
    });
    names.collect::<Vec<_>>().join(" or ")
}

/// Without the URL, which has a password.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("connections_max", &self.connections_max)
            .finish_non_exhaustive()
    }
}

fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message.into())
}

/// The number of connections unless another one is set.
const CONNECTIONS_MAX: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// How long a connection to one host may take, before the next one is tried.
const HOST_MAX: std::time::Duration = std::time::Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(url: &str) -> String {
        let options = PostgresOptions::new(url.to_owned());
        options.config().unwrap_err().to_string()
    }

    #[test]
    fn a_primary_is_looked_for_among_the_hosts() {
        let options = PostgresOptions::new("postgres://u:secret@a,b:5433/db".to_owned());
        let config = options.config().unwrap();
        assert_eq!(
            config.get_target_session_attrs(),
            TargetSessionAttrs::ReadWrite
        );
        assert_eq!(hosts(&config), "a:5432 or b:5433");
        assert!(!format!("{options:?}").contains("secret"));
    }

    #[test]
    fn the_root_certificate_is_a_parameter_of_the_url() {
        let url = "postgres://a/db?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem";
        let options = PostgresOptions::new(url.to_owned());
        assert_eq!(options.root_certificate(), Some("/etc/ca.pem".into()));
        options.config().unwrap();
    }

    #[test]
    fn errors_name_the_rule_and_show_no_password() {
        for (url, part) in [
            ("mysql://a", "starts with postgres://"),
            ("postgres:///db", "names no host"),
            ("postgres://u:secret@a/db?sslmode=verify-ca", "sslmode is"),
            ("postgres://u:x@secret@a/db", "%40"),
            ("postgres://u:x@a?secret=b@a/db", "%40"),
            ("postgres://u:x/secret@a/db", "%2F"),
            ("postgres://u:x?secret=b@a/db", "%3F"),
            ("postgres://u:secret@a:port/db", "`port`"),
            ("postgres://u:secret@a/db?sslmode=strict", "`sslmode`"),
            ("postgres://u:secret@a/db?color=red", "`color`"),
        ] {
            let error = error_of(url);
            assert!(error.contains(part) && !error.contains("secret"), "{error}");
        }
    }
}
