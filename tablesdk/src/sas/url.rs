//! A shared access signature with the URL that it is for: what one program gives another.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::auth::sas::Sas as Granted;
use tablesdk_protocol::{Endpoint, TableName};
use zeroize::Zeroizing;

use super::terms::OPERATION;
use crate::credential::{Sas, Signer};
use crate::error::Error;
use crate::pipeline::Pipeline;

/// The URL of an account or of a table, with a shared access signature: everything that a client
/// needs.
///
/// The string form grants access: any client that has it can do what the signature allows. `Debug`
/// leaves the signature out, and there is no `Display`: only [`expose`](Self::expose) returns the
/// string.
///
/// ```
/// use tablesdk::sas::SasUrl;
///
/// let text = "https://acct.table.core.windows.net/Employees?sv=2019-02-02&tn=Employees&sp=r&se=2030-01-01&sig=c2ln";
/// let url: SasUrl = text.parse()?;
/// assert_eq!(url.endpoint().as_str(), "https://acct.table.core.windows.net");
/// assert_eq!(url.table(), Some("Employees"));
/// assert!(!format!("{url:?}").contains("c2ln"));
///
/// // A client with options of its own.
/// let service = url.builder().max_in_flight(4).build()?;
/// let table = service.table(url.table().expect("it names one"));
/// # Ok::<(), tablesdk::Error>(())
/// ```
#[derive(Clone)]
pub struct SasUrl {
    endpoint: Endpoint,
    table: Option<String>,
    sas: Sas,
}

impl SasUrl {
    /// The URL of the account's table service, without the table and the signature.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The table that the URL names; `None` for that of an account.
    pub fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    /// The signature: a [credential](crate::TableServiceClientBuilder::credential).
    pub const fn sas(&self) -> &Sas {
        &self.sas
    }

    /// The whole URL: to be given away, and for nothing that is logged.
    pub fn expose(&self) -> Zeroizing<String> {
        let (endpoint, table) = (&self.endpoint, self.table.as_deref().unwrap_or_default());
        Zeroizing::new(format!("{endpoint}/{table}?{}", self.sas.expose()))
    }

    pub(super) fn sign(
        pipeline: &Pipeline,
        table: Option<TableName>,
        sas: Granted,
    ) -> Result<Self, Error> {
        let signer = pipeline.credential.current();
        let Signer::SharedKey(key) = &*signer else {
            let problem = "a shared access signature is made with the account's key, which this client does not have";
            return Err(Error::configuration_message(problem).with_operation(OPERATION));
        };
        Self::signed_by(key, &pipeline.endpoint, table, sas)
    }

    pub(super) fn signed_by(
        key: &SharedKey,
        endpoint: &Endpoint,
        table: Option<TableName>,
        sas: Granted,
    ) -> Result<Self, Error> {
        let sas = Sas::new(&sas.sign(key).expose())?;
        Ok(Self {
            endpoint: endpoint.clone(),
            table: table.map(|name| name.as_str().to_owned()),
            sas,
        })
    }

    /// The URL as one of an account: what follows its endpoint is no table.
    pub(crate) fn parse_account(text: &str) -> Result<Self, Error> {
        let url: Self = text.parse()?;
        match url.table {
            None => Ok(url),
            Some(_) => Err(Error::configuration_message(
                "the URL is that of a table: make a TableClient of it",
            )),
        }
    }

    /// The URL as one of a table: the last segment of its path.
    pub(crate) fn parse_table(text: &str) -> Result<(Self, String), Error> {
        let mut url: Self = text.parse()?;
        if let Some(table) = &url.table {
            let table = table.clone();
            return Ok((url, table));
        }
        // At a host of the program's own: it may be the URL of an account or of a table there.
        let path = url.endpoint.path();
        let segments = path.rsplit_once('/');
        let Some((rest, table)) = segments.filter(|_| places_account(&url.endpoint).is_none())
        else {
            return Err(Error::configuration_message("the URL names no table"));
        };
        let table = table.to_owned();
        url.endpoint = without_segment(&url.endpoint, rest)?;
        url.table = Some(table.clone());
        Ok((url, table))
    }
}

/// Parses a URL with a signature. The signature, which is for a table or for the account,
/// determines whether the last segment names a table. So does the host, where it is one of the
/// service's.
impl FromStr for SasUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (url, token) = text.trim().split_once('?').ok_or_else(|| {
            Error::configuration_message("the URL has no query with a shared access signature")
        })?;
        let sas = Sas::new(token)?;
        let endpoint: Endpoint = url.parse().map_err(Error::configuration)?;
        let (rest, last) = endpoint.path().rsplit_once('/').unwrap_or_default();
        let is_table = match sas.table() {
            // The only character of a table's name that is escaped: a dollar in front of those of
            // the metrics.
            Some(signed) => last.eq_ignore_ascii_case(&signed.replace("%24", "$")),
            None => {
                let segments = endpoint.path().split('/').filter(|part| !part.is_empty());
                places_account(&endpoint).is_some_and(|of_account| segments.count() > of_account)
            }
        };
        if !is_table {
            return Ok(Self {
                endpoint,
                table: None,
                sas,
            });
        }
        let table = Some(last.to_owned());
        let endpoint = without_segment(&endpoint, rest)?;
        Ok(Self {
            endpoint,
            table,
            sas,
        })
    }
}

/// How many segments of the path belong to the account, where the host shows it: none at a host of
/// the service, one at an IP address or `localhost`, where emulators run.
fn places_account(endpoint: &Endpoint) -> Option<usize> {
    let host = endpoint.host();
    let (_, domain) = host.split_once('.').unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    if address.parse::<IpAddr>().is_ok() || host.eq_ignore_ascii_case("localhost") {
        Some(1)
    } else if domain.starts_with("table.") || domain.contains(".table.") {
        Some(0)
    } else {
        None
    }
}

fn without_segment(endpoint: &Endpoint, path: &str) -> Result<Endpoint, Error> {
    let origin = endpoint.as_str().strip_suffix(endpoint.path());
    let origin = origin.unwrap_or_default();
    format!("{origin}{path}")
        .parse()
        .map_err(Error::configuration)
}

impl fmt::Debug for SasUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SasUrl")
            .field("endpoint", &self.endpoint)
            .field("table", &self.table)
            .field("sas", &self.sas)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: &str = "sv=2019-02-02&ss=t&srt=sco&sp=r&se=2030-01-01&sig=c2VjcmV0";
    const METRICS: &str = "tn=%24MetricsHourPrimaryTransactionsTable&si=x&sig=c2VjcmV0";
    const TABLE: &str = "sv=2019-02-02&tn=people&sp=r&se=2030-01-01&sig=c2VjcmV0";

    #[test]
    fn account_and_table_are_told_apart() {
        for (url, query, endpoint, table) in [
            (
                "https://acct.table.core.windows.net/",
                ACCOUNT,
                "https://acct.table.core.windows.net",
                None,
            ),
            (
                "https://acct.table.core.windows.net",
                ACCOUNT,
                "https://acct.table.core.windows.net",
                None,
            ),
            (
                "https://acct.table.core.windows.net/People",
                ACCOUNT,
                "https://acct.table.core.windows.net",
                Some("People"),
            ),
            (
                "https://acct.table.core.windows.net/People",
                TABLE,
                "https://acct.table.core.windows.net",
                Some("People"),
            ),
            (
                "https://tables.contoso.example/people/",
                TABLE,
                "https://tables.contoso.example",
                Some("people"),
            ),
            (
                "https://tables.contoso.example",
                TABLE,
                "https://tables.contoso.example",
                None,
            ),
            (
                "https://tables.contoso.example/$MetricsHourPrimaryTransactionsTable",
                METRICS,
                "https://tables.contoso.example",
                Some("$MetricsHourPrimaryTransactionsTable"),
            ),
            (
                "http://127.0.0.1:10002/acct/people",
                TABLE,
                "http://127.0.0.1:10002/acct",
                Some("people"),
            ),
            (
                "http://127.0.0.1:10002/acct/people",
                ACCOUNT,
                "http://127.0.0.1:10002/acct",
                Some("people"),
            ),
            (
                "http://[::1]:10002/acct/people",
                ACCOUNT,
                "http://[::1]:10002/acct",
                Some("people"),
            ),
            (
                "http://127.0.0.1:10002/acct",
                ACCOUNT,
                "http://127.0.0.1:10002/acct",
                None,
            ),
            (
                "https://tables.contoso.example/people",
                ACCOUNT,
                "https://tables.contoso.example/people",
                None,
            ),
        ] {
            let parsed: SasUrl = format!("{url}?{query}").parse().unwrap();
            assert_eq!(parsed.endpoint().as_str(), endpoint, "{url} {query}");
            assert_eq!(parsed.table(), table, "{url} {query}");
            let again: SasUrl = parsed.expose().parse().unwrap();
            assert_eq!(
                (again.endpoint(), again.table()),
                (parsed.endpoint(), parsed.table())
            );
            assert!(!format!("{parsed:?}").contains("c2VjcmV0"));
        }
    }

    #[test]
    fn a_program_says_which_of_both_it_wants() {
        let text = format!("https://tables.contoso.example/people?{ACCOUNT}");
        let (url, table) = SasUrl::parse_table(&text).unwrap();
        assert_eq!(
            (url.endpoint().as_str(), &*table),
            ("https://tables.contoso.example", "people")
        );
        assert!(
            SasUrl::parse_account(&format!("https://a.table.core.windows.net/people?{TABLE}"))
                .is_err()
        );
        for text in [
            format!("https://a.table.core.windows.net?{TABLE}"),
            format!("https://a.table.core.windows.net/?{ACCOUNT}"),
            format!("http://127.0.0.1:10002/acct?{ACCOUNT}"),
            "https://a.table.core.windows.net/people".to_owned(),
            format!("a.table.core.windows.net/people?{TABLE}"),
            "https://a.table.core.windows.net/people?sv=c2VjcmV0".to_owned(),
        ] {
            let error = SasUrl::parse_table(&text).unwrap_err();
            assert_eq!(error.kind(), crate::error::ErrorKind::Configuration);
            assert!(!format!("{error:?}").contains("c2VjcmV0"), "{error:?}");
        }
    }
}
