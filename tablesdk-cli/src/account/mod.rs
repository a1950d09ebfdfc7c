//! The account of a command: the options and environment variables of the Azure command line, and
//! some more.

mod auth;
mod connection;
#[cfg(feature = "entra-id")]
mod entra;
mod secret;

use clap::Args;
use tablesdk::{Credential, Sas, SharedKey, TableServiceClient, TableServiceClientBuilder};

pub(crate) use self::auth::Auth;
use crate::error::{AnyError, UsageError};

/// An account, as `az storage` takes it
#[derive(Args, Default)]
#[expect(
    clippy::doc_markdown,
    clippy::struct_field_names,
    reason = "the comments are help texts, and the fields are options of the Azure command line"
)]
pub(crate) struct Account {
    /// A connection string. Default: $AZURE_STORAGE_CONNECTION_STRING
    ///
    /// Other users of this machine can see the arguments of a program, and shells keep them.
    /// So this option, --sas-url, --account-key and --sas-token also take env:NAME, an
    /// environment variable that contains the value, and file:PATH, a file that contains it.
    #[arg(
        long,
        help_heading = "Account",
        value_name = "STRING",
        verbatim_doc_comment
    )]
    connection_string: Option<String>,
    /// The emulator on this machine: devstoreaccount1 at http://127.0.0.1:10002
    ///
    /// An emulator elsewhere needs its --table-endpoint alone, such as
    /// http://azurite:10002/devstoreaccount1.
    #[arg(long, help_heading = "Account", verbatim_doc_comment)]
    emulator: bool,
    /// The URL of an account or of a table, with a shared access signature
    ///
    /// That of a table is for the entities of this table, and cannot list tables.
    #[arg(long, help_heading = "Account", value_name = "URL")]
    sas_url: Option<String>,
    /// The name of the account. Default: the one of the --table-endpoint, or $AZURE_STORAGE_ACCOUNT
    #[arg(long, help_heading = "Account", value_name = "NAME")]
    account_name: Option<String>,
    /// A key of the account. Default: $AZURE_STORAGE_KEY
    #[arg(long, help_heading = "Account", value_name = "KEY")]
    account_key: Option<String>,
    /// A shared access signature. Default: $AZURE_STORAGE_SAS_TOKEN
    #[arg(long, help_heading = "Account", value_name = "TOKEN")]
    sas_token: Option<String>,
    /// The URL of the table service. Default: https://NAME.table.core.windows.net
    ///
    /// For Azure Cosmos DB for Table: https://NAME.table.cosmos.azure.com
    #[arg(long, help_heading = "Account", value_name = "URL")]
    table_endpoint: Option<String>,
    /// Microsoft Entra ID instead of a key: with --account-name or --table-endpoint
    ///
    /// The account permits it to those that have a role such as Storage Table Data Reader.
    #[arg(long, help_heading = "Account", value_enum, value_name = "SOURCE")]
    auth: Option<Auth>,
}

impl Account {
    /// A client of the account.
    pub(crate) fn connect(self) -> Result<TableServiceClient, AnyError> {
        built(self.builder()?)
    }

    /// A client of the account that has no options yet.
    pub(crate) fn builder(self) -> Result<TableServiceClientBuilder, AnyError> {
        let builder = self.builder_with(variable);
        builder.map_err(|error| UsageError(error).into())
    }

    fn builder_with(
        self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<TableServiceClientBuilder, AnyError> {
        self.check()?;
        if self.emulator {
            return connection::of_string(connection::DEVELOPMENT);
        }
        let has_parts = self.parts().any(|(_, is_given)| is_given);
        if let Some(url) = self.sas_url {
            let url = secret::value(SAS_URL, &url, &variable)?;
            return named(SAS_URL, connection::of_sas_url(&url));
        }
        if let Some(text) = self.connection_string {
            let text = secret::value(CONNECTION_STRING, &text, &variable)?;
            return named(CONNECTION_STRING, connection::of_string(&text));
        }
        if let (false, Some(text)) = (has_parts, variable(STRING_VARIABLE)) {
            return named(STRING_VARIABLE, connection::of_string(text.trim()));
        }
        self.builder_by_parts(variable)
    }

    /// Returns true if the client will have tokens of Microsoft Entra ID.
    pub(crate) const fn has_tokens(&self) -> bool {
        self.auth.is_some()
    }

    /// Says which options exclude each other, and why.
    fn check(&self) -> Result<(), AnyError> {
        let whole = [
            (CONNECTION_STRING, self.connection_string.is_some()),
            ("--emulator", self.emulator),
            (SAS_URL, self.sas_url.is_some()),
        ];
        let given = |options: &mut dyn Iterator<Item = Part>| {
            let given = options.filter(|(_, is_given)| *is_given);
            given.map(|(name, _)| name).collect::<Vec<_>>()
        };
        let wholes = given(&mut whole.into_iter());
        let parts = given(&mut self.parts());
        let credentials = given(&mut self.credentials());
        match (&*wholes, &*parts, &*credentials) {
            ([one, other, ..], ..) => Err(format!(
                "{one} cannot be used with {other}: each of them names an account"
            )
            .into()),
            ([whole], [part, ..], _) => Err(format!(
                "{whole} cannot be used with {part}: it says all about the account"
            )
            .into()),
            (_, _, [one, other, ..]) => Err(format!(
                "{one} cannot be used with {other}: each of them is a credential"
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// The options that describe an account together, and whether they are given.
    fn parts(&self) -> impl Iterator<Item = Part> {
        let of_account = [
            ("--account-name", self.account_name.is_some()),
            ("--table-endpoint", self.table_endpoint.is_some()),
        ];
        of_account.into_iter().chain(self.credentials())
    }

    fn credentials(&self) -> impl Iterator<Item = Part> + use<> {
        let credentials = [
            (ACCOUNT_KEY, self.account_key.is_some()),
            (SAS_TOKEN, self.sas_token.is_some()),
            ("--auth", self.auth.is_some()),
        ];
        credentials.into_iter()
    }

    fn builder_by_parts(
        self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<TableServiceClientBuilder, AnyError> {
        let Self {
            account_name,
            account_key,
            sas_token,
            table_endpoint,
            auth,
            ..
        } = self;
        let endpoint = table_endpoint.map(|url| named(TABLE_ENDPOINT, connection::endpoint(&url)));
        let endpoint = endpoint.transpose()?;
        let of_endpoint = endpoint.as_ref().and_then(|it| it.account());
        let name = account_name
            .or_else(|| of_endpoint.map(str::to_owned))
            .or_else(|| variable(NAME_VARIABLE));
        let endpoint = match (endpoint, &name) {
            (Some(endpoint), _) => endpoint,
            (None, Some(name)) => named("--account-name", connection::endpoint_of(name))?,
            (None, None) if variable(STRING_VARIABLE).is_some() => {
                return Err(NO_ENDPOINT.into());
            }
            (None, None) => return Err(NO_ACCOUNT.into()),
        };
        let credential = match auth {
            Some(auth) => Some(auth.credential(&variable)?),
            None => {
                // That of another account is not for an emulator.
                let is_own = !connection::is_emulator(&endpoint) || variable(NAME_VARIABLE) == name;
                let of_environment = |name: &str| variable(name).filter(|_| is_own);
                credential(name, account_key, sas_token, &variable, of_environment)?
            }
        };
        connection::of_endpoint(&endpoint, credential)
    }
}

/// A key or a signature. One among the arguments wins over any in the environment.
fn credential(
    name: Option<String>,
    key: Option<String>,
    sas: Option<String>,
    variable: impl Fn(&str) -> Option<String>,
    of_environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<Credential>, AnyError> {
    let secret = |option: &str, text: Option<String>| {
        text.map(|text| secret::value(option, &text, &variable))
            .transpose()
    };
    let (key, sas) = match (secret(ACCOUNT_KEY, key)?, secret(SAS_TOKEN, sas)?) {
        (None, None) => (
            of_environment("AZURE_STORAGE_KEY"),
            of_environment("AZURE_STORAGE_SAS_TOKEN"),
        ),
        given => given,
    };
    Ok(match (key, sas) {
        (Some(key), _) => {
            let name =
                name.ok_or("an account key needs --account-name or AZURE_STORAGE_ACCOUNT")?;
            Some(SharedKey::new(name, &key)?.into())
        }
        (None, Some(sas)) => Some(Sas::new(&sas)?.into()),
        (None, None) => None,
    })
}

/// An option, and whether it is given.
type Part = (&'static str, bool);

/// The client of the account that a text after an option describes: a connection string, the URL of
/// a table service, or `emulator`. The token is for a URL without a signature.
pub(crate) fn connect(
    option: &str,
    text: &str,
    token: &mut Token,
) -> Result<TableServiceClient, AnyError> {
    let text = secret::value(option, text, variable);
    let builder = text.and_then(|text| {
        let token = || token.take();
        named(option, connection::of_text(&text, token))
    });
    built(builder.map_err(|error| AnyError::from(UsageError(error)))?)
}

/// The `--auth` of a command with several accounts, at least one of which needs it.
pub(crate) struct Token {
    auth: Option<Auth>,
    is_needed: bool,
}

impl Token {
    pub(crate) fn new(auth: Option<Auth>) -> Self {
        Self {
            auth,
            is_needed: false,
        }
    }

    fn take(&mut self) -> Result<Option<Credential>, AnyError> {
        self.is_needed = true;
        self.auth.map(|auth| auth.credential(variable)).transpose()
    }

    /// Refuses an option that no account has used.
    pub(crate) fn check(self) -> Result<(), AnyError> {
        if self.auth.is_none() || self.is_needed {
            return Ok(());
        }
        let problem = "--auth is for the https URL of a table service without a signature, and no account is one";
        Err(UsageError(problem.into()).into())
    }
}

/// Builds the client. An error in the endpoint is an error in the arguments.
pub(crate) fn built(builder: TableServiceClientBuilder) -> Result<TableServiceClient, AnyError> {
    builder
        .build()
        .map_err(|error| UsageError(error.into()).into())
}

/// The result, whose error names the option.
fn named<T>(option: &str, result: Result<T, AnyError>) -> Result<T, AnyError> {
    result.map_err(|error| format!("{option}: {error}").into())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

const ACCOUNT_KEY: &str = "--account-key";
const CONNECTION_STRING: &str = "--connection-string";
const NAME_VARIABLE: &str = "AZURE_STORAGE_ACCOUNT";
const NO_ENDPOINT: &str = "a credential needs --account-name or --table-endpoint: AZURE_STORAGE_CONNECTION_STRING has a credential of its own, and is not used with another one";
const NO_ACCOUNT: &str = "no account is given: use --connection-string, --sas-url, --emulator or --account-name, or set AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_ACCOUNT";
const SAS_TOKEN: &str = "--sas-token";
const SAS_URL: &str = "--sas-url";
const STRING_VARIABLE: &str = "AZURE_STORAGE_CONNECTION_STRING";
const TABLE_ENDPOINT: &str = "--table-endpoint";

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "c2VjcmV0";
    const TOKEN: &str = "sv=2019-02-02&sig=c2VjcmV0";

    /// The endpoint of the account that the options and the variables select, or the error.
    fn endpoint(account: Account, variables: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let client = account.builder_with(variable).and_then(built);
        let client = client.map_err(|error| error.to_string())?;
        Ok(client.endpoint().to_string())
    }

    /// The account of options, each with its value.
    fn account(options: &[(&str, &str)]) -> Account {
        let mut account = Account::default();
        for (option, value) in options {
            let field = match *option {
                CONNECTION_STRING => &mut account.connection_string,
                SAS_URL => &mut account.sas_url,
                ACCOUNT_KEY => &mut account.account_key,
                SAS_TOKEN => &mut account.sas_token,
                TABLE_ENDPOINT => &mut account.table_endpoint,
                "--account-name" => &mut account.account_name,
                _ => {
                    account.emulator = true;
                    continue;
                }
            };
            *field = Some((*value).to_owned());
        }
        account
    }

    #[test]
    fn an_account_is_found_as_the_azure_command_line_finds_it() {
        let text = format!("AccountName=fromstring;AccountKey={KEY}");
        let string = (STRING_VARIABLE, text.as_str());
        let name = (NAME_VARIABLE, "fromname");
        let key = ("AZURE_STORAGE_KEY", KEY);
        let sas = ("AZURE_STORAGE_SAS_TOKEN", TOKEN);
        let azure = |name: &str| Ok(format!("https://{name}.table.core.windows.net"));
        let given = ("--account-name", "given");
        for (options, variables, expected) in [
            (
                &[(CONNECTION_STRING, &*text)][..],
                &[name, key][..],
                azure("fromstring"),
            ),
            (
                &[(CONNECTION_STRING, "env:OTHER")],
                &[("OTHER", &*text), key],
                azure("fromstring"),
            ),
            (&[], &[string, name, key], azure("fromstring")),
            (&[], &[name, key], azure("fromname")),
            (&[], &[name, sas], azure("fromname")),
            (&[given], &[string, key], azure("given")),
            (
                &[given, (ACCOUNT_KEY, "env:OTHER")],
                &[("OTHER", KEY)],
                azure("given"),
            ),
            (
                &[("--emulator", "")],
                &[string],
                Ok("http://127.0.0.1:10002/devstoreaccount1".to_owned()),
            ),
            (
                &[(SAS_URL, "env:OTHER")],
                &[(
                    "OTHER",
                    "https://of-url.table.core.windows.net/?sig=c2VjcmV0",
                )],
                azure("of-url"),
            ),
            (
                &[
                    given,
                    (ACCOUNT_KEY, KEY),
                    (TABLE_ENDPOINT, "http://127.0.0.1:10002/given"),
                ],
                &[string],
                Ok("http://127.0.0.1:10002/given".to_owned()),
            ),
            // The endpoint names the account, and an emulator its key.
            (
                &[
                    (ACCOUNT_KEY, KEY),
                    (TABLE_ENDPOINT, "https://acct.table.cosmos.azure.com"),
                ],
                &[name],
                Ok("https://acct.table.cosmos.azure.com".to_owned()),
            ),
            (
                &[(TABLE_ENDPOINT, "http://127.0.0.1:7/devstoreaccount1")],
                &[name, ("AZURE_STORAGE_KEY", "not Base64")],
                Ok("http://127.0.0.1:7/devstoreaccount1".to_owned()),
            ),
        ] {
            assert_eq!(
                endpoint(account(options), variables),
                expected,
                "{options:?} {variables:?}"
            );
        }
    }

    #[test]
    fn an_account_that_is_not_valid_is_said_without_its_secret() {
        let name = ("--account-name", "given");
        let (key, sas) = ((ACCOUNT_KEY, KEY), (SAS_TOKEN, TOKEN));
        let string = (CONNECTION_STRING, "AccountName=a;AccountKey=c2VjcmV0");
        let url = (SAS_URL, "https://a.table.core.windows.net/?sig=c2VjcmV0");
        let own_host = (TABLE_ENDPOINT, "https://tables.contoso.example");
        for (options, problem) in [
            (&[][..], "no account is given"),
            (&[name], "no credential is given"),
            (&[key, own_host], "needs --account-name"),
            (&[name, (ACCOUNT_KEY, "c2VjcmV0!")], "Base64"),
            (
                &[name, key, sas],
                "--account-key cannot be used with --sas-token: each of them is a credential",
            ),
            (
                &[string, name],
                "--connection-string cannot be used with --account-name: it says all about the account",
            ),
            (
                &[("--emulator", ""), key],
                "--emulator cannot be used with --account-key: it says all",
            ),
            (
                &[string, url],
                "--connection-string cannot be used with --sas-url: each of them names an account",
            ),
            (
                &[(
                    CONNECTION_STRING,
                    "https://a.table.core.windows.net/?sig=c2VjcmV0",
                )],
                "--connection-string: this is a URL, not a connection string: use --sas-url",
            ),
            (
                &[(
                    CONNECTION_STRING,
                    "AccountName=a;AccountKey=c2VjcmV0;c2VjcmV0==",
                )],
                "part 3",
            ),
            (
                &[(SAS_URL, "AccountName=a;AccountKey=c2VjcmV0")],
                "--sas-url: ",
            ),
            (
                &[(SAS_URL, "https://c2VjcmV0@a.example/?sig=c2VjcmV0")],
                "--sas-url: ",
            ),
            (
                &[(SAS_URL, "https://a.example/?sig=c2VjcmV0 x")],
                "--sas-url: ",
            ),
            (
                &[(
                    TABLE_ENDPOINT,
                    "https://a.table.core.windows.net/?sig=c2VjcmV0",
                )],
                "give a URL with a shared access signature with --sas-url",
            ),
            (
                &[("--account-name", "a.example/c2VjcmV0")],
                "letters, digits and hyphens",
            ),
            (
                &[name, (SAS_TOKEN, "c2VjcmV0")],
                "not a query string with a `sig`",
            ),
        ] {
            let error = endpoint(account(options), &[]).unwrap_err();
            assert!(error.contains(problem), "{options:?}: {error}");
            assert!(!error.contains("c2VjcmV0"), "{error}");
        }
    }

    #[test]
    fn no_error_repeats_the_secret_of_a_malformed_text() {
        const SECRET: &str = "c2VjcmV0c2VjcmV0cw==";
        const PARTS: [&str; 30] = [
            SECRET,
            SECRET,
            SECRET,
            "AccountName=a",
            "AccountKey=",
            ";",
            "https://",
            "http:",
            "?",
            "sig=",
            "sv=2019-02-02&",
            "&",
            "@",
            "/",
            "env:",
            "file:",
            "a.table.core.windows.net",
            "127.0.0.1:10002",
            "devstoreaccount1",
            " ",
            "\n",
            "é",
            "%",
            "#",
            "UseDevelopmentStorage=true",
            "TableEndpoint=",
            "SharedAccessSignature=",
            "AccountEndpoint=",
            "\0",
            "=",
        ];
        let seed = fastrand::u64(..);
        eprintln!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let options = [
            CONNECTION_STRING,
            SAS_URL,
            ACCOUNT_KEY,
            SAS_TOKEN,
            TABLE_ENDPOINT,
            "--account-name",
            "copy",
        ];
        let mut errors = 0;
        for _ in 0..5_000 {
            let count = rng.usize(1..=8);
            let text: String = (0..count).filter_map(|_| rng.choice(PARTS)).collect();
            let option = rng.choice(options).unwrap_or_default();
            let given = match option {
                "copy" => connect(option, &text, &mut Token::new(None))
                    .map(drop)
                    .map_err(|error| error.to_string()),
                "--account-key" | "--sas-token" => {
                    endpoint(account(&[("--account-name", "a"), (option, &text)]), &[]).map(drop)
                }
                _ => endpoint(
                    account(&[(option, &text)]),
                    &[("AZURE_STORAGE_KEY", "a2V5")],
                )
                .map(drop),
            };
            if let Err(error) = given {
                errors += 1;
                assert!(!error.contains(SECRET), "{option} {text:?}: {error}");
            }
        }
        assert!(errors > 2_500, "{errors}");
    }
}
