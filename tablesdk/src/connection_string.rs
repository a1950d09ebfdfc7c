//! Connection strings: parsed, every wrong key named, no value ever repeated in an error.
//!
//! See <https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string>.

use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::{Endpoint, InvalidEndpointError};

use crate::credential::{Credential, Sas};
use crate::error::Error;

/// What a connection string says about the table service.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionString {
    pub(crate) endpoint: Endpoint,
    /// What `TableSecondaryEndpoint` says.
    pub(crate) secondary: Option<Endpoint>,
    pub(crate) credential: Credential,
}

impl ConnectionString {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let settings = Settings::parse(text).map_err(Error::configuration)?;
        settings.resolve().map_err(|problem| match problem {
            Problem::Invalid(error) => Error::configuration(error),
            Problem::Sas(error) => error,
        })
    }

    /// The development account on this machine, as every storage emulator has it.
    pub(crate) fn emulator() -> Self {
        let endpoint = Endpoint::from_parts("http", EMULATOR_HOST, EMULATOR_PATH);
        Self {
            endpoint,
            secondary: None,
            credential: emulator_key().into(),
        }
    }
}

/// The settings of a connection string that concern tables.
#[derive(Default)]
struct Settings<'a> {
    account_key: Option<&'a str>,
    account_name: Option<&'a str>,
    default_endpoints_protocol: Option<&'a str>,
    development_storage_proxy_uri: Option<&'a str>,
    endpoint_suffix: Option<&'a str>,
    shared_access_signature: Option<&'a str>,
    table_endpoint: Option<&'a str>,
    table_secondary_endpoint: Option<&'a str>,
    use_development_storage: Option<&'a str>,
}

impl<'a> Settings<'a> {
    fn parse(text: &'a str) -> Result<Self, InvalidConnectionString> {
        let mut settings = Self::default();
        let mut any = false;
        let scheme = text.trim_start().split("://").next().unwrap_or_default();
        if ["http", "https"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(scheme))
        {
            return Err(InvalidConnectionString::Url);
        }
        for (index, pair) in text.split(';').map(str::trim).enumerate() {
            if pair.is_empty() {
                continue;
            }
            any = true;
            let (key, value) = pair
                .split_once('=')
                .ok_or(InvalidConnectionString::NoValue {
                    position: index + 1,
                })?;
            let (key, value) = (key.trim(), value.trim());
            let Some((name, slot)) = settings.slot(key) else {
                if is_of_another_service(key) {
                    continue;
                }
                // What is no word may be a value that lost its key.
                let is_word = key.len() <= KEY_CHARACTERS_MAX
                    && !key.is_empty()
                    && key.chars().all(|c| c.is_ascii_alphabetic());
                return Err(InvalidConnectionString::Unknown {
                    position: index + 1,
                    key: is_word.then(|| key.to_owned()),
                });
            };
            if slot.replace(value).is_some() {
                return Err(InvalidConnectionString::Repeated { key: name });
            }
            if value.is_empty() {
                return Err(InvalidConnectionString::Empty { key: name });
            }
        }
        if any {
            Ok(settings)
        } else {
            Err(InvalidConnectionString::Blank)
        }
    }

    /// Where the value of a key belongs; `None` for keys that say nothing about tables.
    fn slot(&mut self, key: &str) -> Option<(&'static str, &mut Option<&'a str>)> {
        let slots = [
            ("AccountKey", &mut self.account_key),
            ("AccountName", &mut self.account_name),
            (
                "DefaultEndpointsProtocol",
                &mut self.default_endpoints_protocol,
            ),
            (
                "DevelopmentStorageProxyUri",
                &mut self.development_storage_proxy_uri,
            ),
            ("EndpointSuffix", &mut self.endpoint_suffix),
            ("SharedAccessSignature", &mut self.shared_access_signature),
            ("TableEndpoint", &mut self.table_endpoint),
            ("TableSecondaryEndpoint", &mut self.table_secondary_endpoint),
            ("UseDevelopmentStorage", &mut self.use_development_storage),
        ];
        slots
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(key))
    }

    fn resolve(self) -> Result<ConnectionString, Problem> {
        if let Some(value) = self.use_development_storage {
            if !value.eq_ignore_ascii_case("true") {
                return Err(InvalidConnectionString::NotTrue.into());
            }
            if let Some(key) = self.beside_development_storage() {
                return Err(InvalidConnectionString::BesideDevelopmentStorage { key }.into());
            }
            let mut emulator = ConnectionString::emulator();
            if let Some(proxy) = self.development_storage_proxy_uri {
                emulator.endpoint = emulator_at(proxy)?;
            }
            return Ok(emulator);
        }
        if self.development_storage_proxy_uri.is_some() {
            return Err(InvalidConnectionString::ProxyAlone.into());
        }
        let endpoint = self.endpoint()?;
        let credential = match (
            self.account_name,
            self.account_key,
            self.shared_access_signature,
        ) {
            (name, Some(key), _) => {
                let name = name
                    .or_else(|| endpoint.account())
                    .ok_or(InvalidConnectionString::Missing { key: "AccountName" })?;
                SharedKey::new(name, key)
                    .map_err(|_| InvalidConnectionString::Key)?
                    .into()
            }
            (_, None, Some(sas)) => Sas::new(sas).map_err(Problem::Sas)?.into(),
            (_, None, None) => return Err(InvalidConnectionString::NoCredential.into()),
        };
        let secondary = self.table_secondary_endpoint;
        let secondary = secondary
            .map(|secondary| parse_endpoint("TableSecondaryEndpoint", &with_scheme(secondary)));
        Ok(ConnectionString {
            endpoint,
            secondary: secondary.transpose()?,
            credential,
        })
    }

    /// A key that says something else than `UseDevelopmentStorage`, which says everything.
    fn beside_development_storage(&self) -> Option<&'static str> {
        [
            ("AccountKey", self.account_key),
            ("AccountName", self.account_name),
            ("DefaultEndpointsProtocol", self.default_endpoints_protocol),
            ("EndpointSuffix", self.endpoint_suffix),
            ("SharedAccessSignature", self.shared_access_signature),
            ("TableEndpoint", self.table_endpoint),
            ("TableSecondaryEndpoint", self.table_secondary_endpoint),
        ]
        .into_iter()
        .find_map(|(key, value)| value.map(|_| key))
    }

    fn endpoint(&self) -> Result<Endpoint, InvalidConnectionString> {
        let protocol = self.default_endpoints_protocol.unwrap_or("https");
        if !["http", "https"]
            .iter()
            .any(|known| protocol.eq_ignore_ascii_case(known))
        {
            return Err(InvalidConnectionString::Protocol);
        }
        if let Some(endpoint) = self.table_endpoint {
            return parse_endpoint("TableEndpoint", &with_scheme(endpoint));
        }
        if self.table_secondary_endpoint.is_some() {
            return Err(InvalidConnectionString::SecondaryAlone);
        }
        let name = self
            .account_name
            .ok_or(InvalidConnectionString::Missing { key: "AccountName" })?;
        let suffix = self.endpoint_suffix.unwrap_or("core.windows.net");
        let protocol = protocol.to_ascii_lowercase();
        parse_endpoint(
            "AccountName",
            &format!("{protocol}://{name}.table.{suffix}"),
        )
    }
}

/// Whether the key is for the storage services that keep no tables: `BlobEndpoint` and the like.
fn is_of_another_service(key: &str) -> bool {
    OTHER_SERVICES.iter().any(|service| {
        ["Endpoint", "SecondaryEndpoint"]
            .iter()
            .any(|kind| key.eq_ignore_ascii_case(&format!("{service}{kind}")))
    })
}

/// The emulator on another machine: its URL takes the place of `http://127.0.0.1`, and the ports are the usual ones.
fn emulator_at(proxy: &str) -> Result<Endpoint, InvalidConnectionString> {
    let key = "DevelopmentStorageProxyUri";
    let proxy = parse_endpoint(key, proxy)?;
    // SERVICE: a port here would be that of one of three services, and it is not known of which.
    let has_port = proxy
        .as_str()
        .parse::<http::Uri>()
        .is_ok_and(|url| url.port().is_some());
    if has_port || !proxy.path().is_empty() {
        return Err(InvalidConnectionString::ProxyWithMore);
    }
    parse_endpoint(key, &format!("{proxy}:{EMULATOR_PORT}{EMULATOR_PATH}"))
}

fn with_scheme(endpoint: &str) -> String {
    if endpoint.contains("://") {
        endpoint.to_owned()
    } else {
        format!("https://{endpoint}")
    }
}

fn parse_endpoint(key: &'static str, text: &str) -> Result<Endpoint, InvalidConnectionString> {
    text.parse()
        .map_err(|error| InvalidConnectionString::Endpoint { key, error })
}

enum Problem {
    Invalid(InvalidConnectionString),
    Sas(Error),
}

impl From<InvalidConnectionString> for Problem {
    fn from(error: InvalidConnectionString) -> Self {
        Self::Invalid(error)
    }
}

/// Why a connection string cannot be used. Names keys, never values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum InvalidConnectionString {
    #[error(
        "the connection string has `{key}` beside `UseDevelopmentStorage`, which stands for all of the emulator's: leave one of them out"
    )]
    BesideDevelopmentStorage { key: &'static str },
    #[error("the connection string is blank")]
    Blank,
    #[error("`{key}` in the connection string is empty")]
    Empty { key: &'static str },
    #[error("the endpoint that `{key}` in the connection string gives cannot be used: {error}")]
    Endpoint {
        key: &'static str,
        error: InvalidEndpointError,
    },
    #[error("`AccountKey` in the connection string is not a Base64 text")]
    Key,
    #[error("the connection string lacks `{key}`")]
    Missing { key: &'static str },
    #[error("the connection string has neither `AccountKey` nor `SharedAccessSignature`")]
    NoCredential,
    #[error("`UseDevelopmentStorage` in the connection string can only be true")]
    NotTrue,
    #[error("part {position} of the connection string is not of the form key=value")]
    NoValue { position: usize },
    #[error("`DefaultEndpointsProtocol` in the connection string is neither http nor https")]
    Protocol,
    #[error(
        "the connection string has `DevelopmentStorageProxyUri` without `UseDevelopmentStorage`"
    )]
    ProxyAlone,
    #[error(
        "`DevelopmentStorageProxyUri` in the connection string is more than a scheme and a host such as http://10.0.0.1: the port is always {EMULATOR_PORT}, and `TableEndpoint` says another"
    )]
    ProxyWithMore,
    #[error("`{key}` stands in the connection string twice")]
    Repeated { key: &'static str },
    #[error("the connection string has `TableSecondaryEndpoint` without `TableEndpoint`")]
    SecondaryAlone,
    #[error("part {position} of the connection string{} has no key that is known: table storage has AccountKey, AccountName, DefaultEndpointsProtocol, DevelopmentStorageProxyUri, EndpointSuffix, SharedAccessSignature, TableEndpoint, TableSecondaryEndpoint and UseDevelopmentStorage", shown(key.as_deref()))]
    Unknown {
        position: usize,
        key: Option<String>,
    },
    #[error(
        "this is a URL and no connection string: from_sas_url takes one with a shared access signature"
    )]
    Url,
}

fn shown(key: Option<&str>) -> String {
    key.map(|key| format!(", `{key}`,")).unwrap_or_default()
}

fn emulator_key() -> SharedKey {
    SharedKey::new(EMULATOR_ACCOUNT, EMULATOR_KEY).expect("the development key is Base64")
}

const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
const EMULATOR_HOST: &str = "127.0.0.1:10002";
/// The same on every machine, and no secret.
const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const EMULATOR_PATH: &str = "/devstoreaccount1";
const EMULATOR_PORT: u16 = 10002;
/// No key of any service is longer.
const KEY_CHARACTERS_MAX: usize = 40;
const OTHER_SERVICES: [&str; 5] = ["Blob", "Dfs", "File", "Queue", "Web"];

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "c2VjcmV0c2VjcmV0";

    fn endpoint(text: &str) -> String {
        ConnectionString::parse(text).unwrap().endpoint.to_string()
    }

    fn problem(text: &str) -> String {
        let error = ConnectionString::parse(text).unwrap_err();
        let shown = format!("{error:?} {error}");
        assert!(!shown.contains(SECRET), "{shown}");
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
    }

    #[test]
    fn reads_every_form_that_the_portal_and_the_emulators_give() {
        for (text, expected) in [
            (
                format!(
                    "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey={SECRET};EndpointSuffix=core.windows.net"
                ),
                "https://acct.table.core.windows.net",
            ),
            (
                format!("accountname=acct; ACCOUNTKEY={SECRET};"),
                "https://acct.table.core.windows.net",
            ),
            (
                format!(
                    "DefaultEndpointsProtocol=http;AccountName=a;AccountKey={SECRET};TableEndpoint=http://127.0.0.1:10002/a/;BlobEndpoint=http://x"
                ),
                "http://127.0.0.1:10002/a",
            ),
            (
                format!(
                    "AccountName=a;AccountKey={SECRET};TableEndpoint=https://a.table.cosmos.azure.com:443/;"
                ),
                "https://a.table.cosmos.azure.com:443",
            ),
            (
                format!("AccountKey={SECRET};TableEndpoint=a.table.core.windows.net"),
                "https://a.table.core.windows.net",
            ),
            (
                format!(
                    "TableEndpoint=https://a.table.core.windows.net;SharedAccessSignature=?sv=2019-02-02&sig={SECRET}"
                ),
                "https://a.table.core.windows.net",
            ),
            (
                "UseDevelopmentStorage=true;".to_owned(),
                "http://127.0.0.1:10002/devstoreaccount1",
            ),
            (
                "usedevelopmentstorage=TRUE;DevelopmentStorageProxyUri=http://10.0.0.1".to_owned(),
                "http://10.0.0.1:10002/devstoreaccount1",
            ),
        ] {
            assert_eq!(endpoint(&text), expected, "{text}");
        }
    }

    #[test]
    fn the_secondary_is_what_is_said() {
        for (secondary, expected) in [
            ("https://b.example/", "https://b.example"),
            ("b.example", "https://b.example"),
            (
                "http://127.0.0.1:1/a-secondary",
                "http://127.0.0.1:1/a-secondary",
            ),
        ] {
            let text = format!(
                "AccountName=a;AccountKey={SECRET};TableEndpoint=https://a.example;TableSecondaryEndpoint={secondary}"
            );
            let found = ConnectionString::parse(&text).unwrap().secondary;
            assert_eq!(found.unwrap().as_str(), expected);
        }
        let text = format!("AccountName=a;AccountKey={SECRET}");
        assert!(ConnectionString::parse(&text).unwrap().secondary.is_none());
    }

    #[test]
    fn endpoints_of_other_services_are_not_ours() {
        let others = "BlobEndpoint=https://b;blobsecondaryendpoint=https://c;QueueEndpoint=d;FileEndpoint=e;DfsEndpoint=f;WebEndpoint=";
        let text = format!("AccountName=a;AccountKey={SECRET};{others}");
        assert_eq!(endpoint(&text), "https://a.table.core.windows.net");
    }

    #[test]
    fn what_is_unknown_is_not_ignored() {
        let known = "table storage has AccountKey, AccountName, ";
        for (text, expected) in [
            (
                format!("AccountName=a;AccountKey={SECRET};TableUrl=https://a.example"),
                "part 3 of the connection string, `TableUrl`, has no key that is known: ",
            ),
            (
                format!("AccountEndpoint=https://localhost:8081/;AccountKey={SECRET}"),
                "part 1 of the connection string, `AccountEndpoint`, has no key that is known: ",
            ),
            // A value whose semicolon was misplaced is not shown.
            (
                format!("AccountName=a;AccountKey=x;{SECRET}=="),
                "part 3 of the connection string has no key that is known: ",
            ),
            (
                format!("AccountName=a;AccountKey={SECRET};=b"),
                "part 3 of the connection string has no key that is known: ",
            ),
        ] {
            let told = problem(&text);
            assert!(told.starts_with(&format!("{expected}{known}")), "{told}");
        }
    }

    #[test]
    fn an_account_key_goes_before_a_signature() {
        let text = format!("AccountName=a;AccountKey={SECRET};SharedAccessSignature=sig={SECRET}");
        let credential = ConnectionString::parse(&text).unwrap().credential;
        assert!(matches!(credential, Credential::SharedKey(key) if key.account() == "a"));
    }

    #[test]
    fn says_which_key_is_wrong_and_never_its_value() {
        for (text, expected) in [
            ("", "the connection string is blank"),
            (" ; ", "the connection string is blank"),
            (
                "AccountName=a;nonsense",
                "part 2 of the connection string is not of the form key=value",
            ),
            (
                "https://a.table.core.windows.net/?sig=c2VjcmV0c2VjcmV0",
                "this is a URL and no connection string: from_sas_url takes one with a shared access signature",
            ),
            (
                "TableEndpoint=https://a;TableSecondaryEndpoint=ftp://b;AccountName=a;AccountKey=c2VjcmV0c2VjcmV0",
                "the endpoint that `TableSecondaryEndpoint` in the connection string gives cannot be used: the scheme is neither http nor https",
            ),
            (
                "AccountName=a",
                "the connection string has neither `AccountKey` nor `SharedAccessSignature`",
            ),
            (
                "AccountKey=c2VjcmV0c2VjcmV0",
                "the connection string lacks `AccountName`",
            ),
            (
                "AccountName=;AccountKey=c2VjcmV0c2VjcmV0",
                "`AccountName` in the connection string is empty",
            ),
            (
                "AccountName=a;AccountKey=c2VjcmV0c2VjcmV0!",
                "`AccountKey` in the connection string is not a Base64 text",
            ),
            (
                "AccountName=a;AccountKey=c2VjcmV0c2VjcmV0;accountkey=x",
                "`AccountKey` stands in the connection string twice",
            ),
            (
                "DefaultEndpointsProtocol=ftp;AccountName=a;AccountKey=c2VjcmV0c2VjcmV0",
                "`DefaultEndpointsProtocol` in the connection string is neither http nor https",
            ),
            (
                "TableSecondaryEndpoint=https://b;AccountName=a;AccountKey=c2VjcmV0c2VjcmV0",
                "the connection string has `TableSecondaryEndpoint` without `TableEndpoint`",
            ),
            (
                "AccountName=a;TableEndpoint=https://a?sig=c2VjcmV0c2VjcmV0",
                "the endpoint that `TableEndpoint` in the connection string gives cannot be used: it has a query; give a shared access signature on its own",
            ),
            (
                "AccountName=a b;AccountKey=c2VjcmV0c2VjcmV0",
                "the endpoint that `AccountName` in the connection string gives cannot be used: not a URL such as https://account.table.core.windows.net",
            ),
            (
                "UseDevelopmentStorage=false",
                "`UseDevelopmentStorage` in the connection string can only be true",
            ),
            (
                "UseDevelopmentStorage=true;AccountName=a;AccountKey=c2VjcmV0c2VjcmV0",
                "the connection string has `AccountKey` beside `UseDevelopmentStorage`, which stands for all of the emulator's: leave one of them out",
            ),
            (
                "AccountName=a;AccountKey=c2VjcmV0c2VjcmV0;DevelopmentStorageProxyUri=http://10.0.0.1",
                "the connection string has `DevelopmentStorageProxyUri` without `UseDevelopmentStorage`",
            ),
            (
                "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://10.0.0.1:80",
                "`DevelopmentStorageProxyUri` in the connection string is more than a scheme and a host such as http://10.0.0.1: the port is always 10002, and `TableEndpoint` says another",
            ),
            (
                "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://10.0.0.1/path",
                "`DevelopmentStorageProxyUri` in the connection string is more than a scheme and a host such as http://10.0.0.1: the port is always 10002, and `TableEndpoint` says another",
            ),
            (
                "AccountName=a;SharedAccessSignature=sv=c2VjcmV0c2VjcmV0",
                "the shared access signature is not a query string with a `sig`",
            ),
        ] {
            assert_eq!(problem(text), expected, "{text}");
        }
    }
}
