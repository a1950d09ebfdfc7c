//! Parses connection strings. An error names the key, and never contains a value.
//!
//! See <https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string>.

use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::{Endpoint, InvalidEndpointError};

use crate::credential::{Credential, Sas};
use crate::error::Error;

/// The table service of a connection string.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionString {
    pub(crate) endpoint: Endpoint,
    /// The value of `TableSecondaryEndpoint`.
    pub(crate) secondary: Option<Endpoint>,
    pub(crate) credential: Credential,
}

impl ConnectionString {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        Settings::parse(text)?.resolve()
    }

    /// The development account on this machine, which is the same for every storage emulator.
    pub(crate) fn emulator() -> Self {
        Self {
            endpoint: Endpoint::from_parts("http", EMULATOR_HOST, EMULATOR_PATH),
            secondary: None,
            credential: emulator_key().into(),
        }
    }
}

/// The values of the [known keys](KEYS), in their order.
#[derive(Default)]
struct Settings<'a>([Option<&'a str>; KEYS.len()]);

impl<'a> Settings<'a> {
    fn parse(text: &'a str) -> Result<Self, InvalidConnectionString> {
        let scheme = text.trim_start().split("://").next().unwrap_or_default();
        if is_http(scheme) {
            return Err(InvalidConnectionString::Url);
        }
        let mut settings = Self::default();
        let mut is_blank = true;
        for (index, pair) in text.split(';').map(str::trim).enumerate() {
            if pair.is_empty() {
                continue;
            }
            is_blank = false;
            let position = index + 1;
            let (key, value) = pair
                .split_once('=')
                .ok_or(InvalidConnectionString::NoValue { position })?;
            let (key, value) = (key.trim(), value.trim());
            let mut slots = KEYS.into_iter().zip(&mut settings.0);
            let Some((key, slot)) = slots.find(|(known, _)| known.eq_ignore_ascii_case(key)) else {
                if is_of_another_service(key) {
                    continue;
                }
                // Anything else than a word may be a value without its key.
                let is_word = key.len() <= KEY_CHARACTERS_MAX
                    && !key.is_empty()
                    && key.chars().all(|c| c.is_ascii_alphabetic());
                let key = is_word.then(|| key.to_owned());
                return Err(InvalidConnectionString::Unknown { position, key });
            };
            if slot.replace(value).is_some() {
                return Err(InvalidConnectionString::Repeated { key });
            }
            if value.is_empty() {
                return Err(InvalidConnectionString::Empty { key });
            }
        }
        if is_blank {
            return Err(InvalidConnectionString::Blank);
        }
        Ok(settings)
    }

    /// The present settings.
    fn iter(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let settings = KEYS.into_iter().zip(self.0);
        settings.filter_map(|(key, value)| Some((key, value?)))
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        let mut settings = self.iter();
        settings.find_map(|(known, value)| (known == key).then_some(value))
    }

    fn resolve(self) -> Result<ConnectionString, Error> {
        let proxy = self.get(PROXY);
        if let Some(value) = self.get(DEVELOPMENT) {
            if !value.eq_ignore_ascii_case("true") {
                return Err(InvalidConnectionString::NotTrue.into());
            }
            let mut keys = self.iter().map(|(key, _)| key);
            if let Some(key) = keys.find(|key| ![DEVELOPMENT, PROXY].contains(key)) {
                return Err(InvalidConnectionString::BesideDevelopmentStorage { key }.into());
            }
            let mut emulator = ConnectionString::emulator();
            if let Some(proxy) = proxy {
                emulator.endpoint = emulator_at(proxy)?;
            }
            return Ok(emulator);
        }
        if proxy.is_some() {
            return Err(InvalidConnectionString::ProxyAlone.into());
        }
        let endpoint = self.endpoint()?;
        let credential = if let Some(key) = self.get("AccountKey") {
            let name = self.get(ACCOUNT_NAME).or_else(|| endpoint.account());
            let name = name.ok_or(InvalidConnectionString::Missing { key: ACCOUNT_NAME })?;
            let key = SharedKey::new(name, key).map_err(|_| InvalidConnectionString::Key)?;
            key.into()
        } else if let Some(sas) = self.get("SharedAccessSignature") {
            Sas::new(sas)?.into()
        } else {
            return Err(InvalidConnectionString::NoCredential.into());
        };
        let secondary = self.get(SECONDARY);
        let secondary = secondary.map(|url| parse_endpoint(SECONDARY, &with_scheme(url)));
        Ok(ConnectionString {
            endpoint,
            secondary: secondary.transpose()?,
            credential,
        })
    }

    fn endpoint(&self) -> Result<Endpoint, InvalidConnectionString> {
        let protocol = self.get("DefaultEndpointsProtocol").unwrap_or("https");
        if !is_http(protocol) {
            return Err(InvalidConnectionString::Protocol);
        }
        if let Some(endpoint) = self.get("TableEndpoint") {
            return parse_endpoint("TableEndpoint", &with_scheme(endpoint));
        }
        if self.get(SECONDARY).is_some() {
            return Err(InvalidConnectionString::SecondaryAlone);
        }
        let name = self.get(ACCOUNT_NAME);
        let name = name.ok_or(InvalidConnectionString::Missing { key: ACCOUNT_NAME })?;
        let suffix = self.get("EndpointSuffix").unwrap_or("core.windows.net");
        let protocol = protocol.to_ascii_lowercase();
        let endpoint = format!("{protocol}://{name}.table.{suffix}");
        parse_endpoint(ACCOUNT_NAME, &endpoint)
    }
}

fn is_http(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Returns true if the key is for a storage service other than tables, such as `BlobEndpoint`.
fn is_of_another_service(key: &str) -> bool {
    OTHER_SERVICES.iter().any(|service| {
        ["Endpoint", "SecondaryEndpoint"]
            .iter()
            .any(|kind| key.eq_ignore_ascii_case(&format!("{service}{kind}")))
    })
}

/// The emulator on another machine: its URL replaces `http://127.0.0.1`, and the ports are the
/// usual ones.
fn emulator_at(proxy: &str) -> Result<Endpoint, InvalidConnectionString> {
    let proxy = parse_endpoint(PROXY, proxy)?;
    // SERVICE: the URL stands for three services with three ports, so it has no port itself.
    let has_port = proxy
        .as_str()
        .parse::<http::Uri>()
        .is_ok_and(|url| url.port().is_some());
    if has_port || !proxy.path().is_empty() {
        return Err(InvalidConnectionString::ProxyWithMore);
    }
    parse_endpoint(PROXY, &format!("{proxy}:{EMULATOR_PORT}{EMULATOR_PATH}"))
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

impl From<InvalidConnectionString> for Error {
    fn from(error: InvalidConnectionString) -> Self {
        Self::configuration(error)
    }
}

/// Why a connection string cannot be used. Names keys, never values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum InvalidConnectionString {
    #[error(
        "the connection string has `{key}` and `UseDevelopmentStorage`, which stands for all settings of the emulator: remove one of them"
    )]
    BesideDevelopmentStorage { key: &'static str },
    #[error("the connection string is blank")]
    Blank,
    #[error("`{key}` in the connection string is empty")]
    Empty { key: &'static str },
    #[error("the endpoint from `{key}` in the connection string is not valid: {error}")]
    Endpoint {
        key: &'static str,
        error: InvalidEndpointError,
    },
    #[error("`AccountKey` in the connection string is not valid Base64")]
    Key,
    #[error("the connection string has no `{key}`")]
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
        "`DevelopmentStorageProxyUri` in the connection string is more than a scheme and a host such as http://10.0.0.1: the port is always {EMULATOR_PORT}; for another one, use `TableEndpoint`"
    )]
    ProxyWithMore,
    #[error("the connection string has `{key}` twice")]
    Repeated { key: &'static str },
    #[error("the connection string has `TableSecondaryEndpoint` without `TableEndpoint`")]
    SecondaryAlone,
    #[error("part {position} of the connection string{} has an unknown key: table storage has AccountKey, AccountName, DefaultEndpointsProtocol, DevelopmentStorageProxyUri, EndpointSuffix, SharedAccessSignature, TableEndpoint, TableSecondaryEndpoint and UseDevelopmentStorage", shown(key.as_deref()))]
    Unknown {
        position: usize,
        key: Option<String>,
    },
    #[error(
        "this is a URL, not a connection string: from_sas_url takes a URL with a shared access signature"
    )]
    Url,
}

fn shown(key: Option<&str>) -> String {
    key.map(|key| format!(", `{key}`,")).unwrap_or_default()
}

fn emulator_key() -> SharedKey {
    SharedKey::new(EMULATOR_ACCOUNT, EMULATOR_KEY).expect("the development key is Base64")
}

/// The keys that concern tables.
const KEYS: [&str; 9] = [
    "AccountKey",
    ACCOUNT_NAME,
    "DefaultEndpointsProtocol",
    PROXY,
    "EndpointSuffix",
    "SharedAccessSignature",
    "TableEndpoint",
    SECONDARY,
    DEVELOPMENT,
];
const ACCOUNT_NAME: &str = "AccountName";
const DEVELOPMENT: &str = "UseDevelopmentStorage";
const PROXY: &str = "DevelopmentStorageProxyUri";
const SECONDARY: &str = "TableSecondaryEndpoint";

const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
const EMULATOR_HOST: &str = "127.0.0.1:10002";
/// Published: the same on every machine.
const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const EMULATOR_PATH: &str = "/devstoreaccount1";
const EMULATOR_PORT: u16 = 10002;
/// The keys of all storage services are shorter.
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
        error.to_string()
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
                "part 3 of the connection string, `TableUrl`, has an unknown key: ",
            ),
            (
                format!("AccountEndpoint=https://localhost:8081/;AccountKey={SECRET}"),
                "part 1 of the connection string, `AccountEndpoint`, has an unknown key: ",
            ),
            // A value whose semicolon was misplaced is not shown.
            (
                format!("AccountName=a;AccountKey=x;{SECRET}=="),
                "part 3 of the connection string has an unknown key: ",
            ),
            (
                format!("AccountName=a;AccountKey={SECRET};=b"),
                "part 3 of the connection string has an unknown key: ",
            ),
        ] {
            let message = problem(&text);
            assert!(
                message.starts_with(&format!("{expected}{known}")),
                "{message}"
            );
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
                "this is a URL, not a connection string: from_sas_url takes a URL with a shared access signature",
            ),
            (
                "TableEndpoint=https://a;TableSecondaryEndpoint=ftp://b;AccountName=a;AccountKey=c2VjcmV0c2VjcmV0",
                "the endpoint from `TableSecondaryEndpoint` in the connection string is not valid: the scheme is neither http nor https",
            ),
            (
                "AccountName=a",
                "the connection string has neither `AccountKey` nor `SharedAccessSignature`",
            ),
            (
                "AccountKey=c2VjcmV0c2VjcmV0",
                "the connection string has no `AccountName`",
            ),
            (
                "AccountName=;AccountKey=c2VjcmV0c2VjcmV0",
                "`AccountName` in the connection string is empty",
            ),
            (
                "AccountName=a;AccountKey=c2VjcmV0c2VjcmV0!",
                "`AccountKey` in the connection string is not valid Base64",
            ),
            (
                "AccountName=a;AccountKey=c2VjcmV0c2VjcmV0;accountkey=x",
                "the connection string has `AccountKey` twice",
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
                "the endpoint from `TableEndpoint` in the connection string is not valid: it has a query; give a shared access signature on its own",
            ),
            (
                "AccountName=a b;AccountKey=c2VjcmV0c2VjcmV0",
                "the endpoint from `AccountName` in the connection string is not valid: not a URL such as https://account.table.core.windows.net",
            ),
            (
                "UseDevelopmentStorage=false",
                "`UseDevelopmentStorage` in the connection string can only be true",
            ),
            (
                "UseDevelopmentStorage=true;AccountName=a;AccountKey=c2VjcmV0c2VjcmV0",
                "the connection string has `AccountKey` and `UseDevelopmentStorage`, which stands for all settings of the emulator: remove one of them",
            ),
            (
                "AccountName=a;AccountKey=c2VjcmV0c2VjcmV0;DevelopmentStorageProxyUri=http://10.0.0.1",
                "the connection string has `DevelopmentStorageProxyUri` without `UseDevelopmentStorage`",
            ),
            (
                "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://10.0.0.1:80",
                "`DevelopmentStorageProxyUri` in the connection string is more than a scheme and a host such as http://10.0.0.1: the port is always 10002; for another one, use `TableEndpoint`",
            ),
            (
                "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://10.0.0.1/path",
                "`DevelopmentStorageProxyUri` in the connection string is more than a scheme and a host such as http://10.0.0.1: the port is always 10002; for another one, use `TableEndpoint`",
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
