//! The account of a command: the options and environment variables of the Azure command line.

use clap::Args;
use tablesdk::{Sas, SharedKey, TableServiceClient, TableServiceClientBuilder};

use crate::output::AnyError;
use crate::output::UsageError;

/// An account, as `az storage` takes it
#[derive(Args)]
#[expect(
    clippy::doc_markdown,
    clippy::struct_field_names,
    reason = "the comments are help texts, and the fields are options of the Azure command line"
)]
pub(crate) struct Account {
    /// A connection string, or env:NAME for an environment variable that contains it
    ///
    /// Default: $AZURE_STORAGE_CONNECTION_STRING
    ///
    /// Other users of this machine can see the arguments of a program. Prefer environment
    /// variables for secrets.
    #[arg(long, help_heading = "Account", value_name = "STRING", conflicts_with_all = ["account_name", "account_key", "sas_token", "table_endpoint"])]
    connection_string: Option<String>,
    /// The name of the account. Default: $AZURE_STORAGE_ACCOUNT
    #[arg(long, help_heading = "Account", value_name = "NAME")]
    account_name: Option<String>,
    /// A key of the account. Default: $AZURE_STORAGE_KEY
    #[arg(
        long,
        help_heading = "Account",
        value_name = "KEY",
        conflicts_with = "sas_token"
    )]
    account_key: Option<String>,
    /// A shared access signature. Default: $AZURE_STORAGE_SAS_TOKEN
    #[arg(long, help_heading = "Account", value_name = "TOKEN")]
    sas_token: Option<String>,
    /// The URL of the table service. Default: https://NAME.table.core.windows.net
    #[arg(long, help_heading = "Account", value_name = "URL")]
    table_endpoint: Option<String>,
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
        let Self {
            connection_string,
            account_name,
            account_key,
            sas_token,
            table_endpoint,
        } = self;
        if let Some(text) = connection_string {
            return connection_string_builder(&text);
        }
        let has_options = account_name.is_some()
            || account_key.is_some()
            || sas_token.is_some()
            || table_endpoint.is_some();
        if !has_options && let Some(text) = variable("AZURE_STORAGE_CONNECTION_STRING") {
            return Ok(TableServiceClientBuilder::from_connection_string(&text)?);
        }
        let name = account_name.or_else(|| variable("AZURE_STORAGE_ACCOUNT"));
        // A credential among the arguments wins over any in the environment.
        let (key, sas) = match (account_key, sas_token) {
            (None, None) => (
                variable("AZURE_STORAGE_KEY"),
                variable("AZURE_STORAGE_SAS_TOKEN"),
            ),
            given => given,
        };
        let endpoint = match (&name, table_endpoint) {
            (_, Some(url)) => url,
            (Some(name), None) => format!("https://{name}.table.core.windows.net"),
            (None, None) => {
                return Err("no account is given: use --connection-string or --account-name, or set AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_ACCOUNT".into());
            }
        };
        let builder = TableServiceClient::builder(&endpoint);
        let builder = match (key, sas) {
            (Some(key), _) => {
                let name =
                    name.ok_or("an account key needs --account-name or AZURE_STORAGE_ACCOUNT")?;
                builder.credential(SharedKey::new(name, &key)?)
            }
            (None, Some(sas)) => builder.credential(Sas::new(&sas)?),
            (None, None) => {
                return Err("no credential is given: use --account-key or --sas-token, or set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN".into());
            }
        };
        Ok(builder)
    }
}

/// A client from a connection string, or from `env:NAME`.
pub(crate) fn connect(text: &str) -> Result<TableServiceClient, AnyError> {
    let builder = connection_string_builder(text);
    built(builder.map_err(|error| AnyError::from(UsageError(error)))?)
}

/// What is wrong with an endpoint is wrong with the arguments.
pub(crate) fn built(builder: TableServiceClientBuilder) -> Result<TableServiceClient, AnyError> {
    builder
        .build()
        .map_err(|error| UsageError(error.into()).into())
}

fn connection_string_builder(text: &str) -> Result<TableServiceClientBuilder, AnyError> {
    match text.strip_prefix("env:") {
        Some(name) => {
            let text = variable(name);
            let text = text.ok_or_else(|| format!("the environment variable {name} is not set"))?;
            Ok(TableServiceClientBuilder::from_connection_string(&text)?)
        }
        None => Ok(TableServiceClientBuilder::from_connection_string(text)?),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "c2VjcmV0";

    /// The endpoint of the account that the options and the variables select, or the error.
    fn endpoint(options: [Option<&str>; 5], variables: &[(&str, &str)]) -> Result<String, String> {
        let [
            connection_string,
            account_name,
            account_key,
            sas_token,
            table_endpoint,
        ] = options.map(|option| option.map(str::to_owned));
        let account = Account {
            connection_string,
            account_name,
            account_key,
            sas_token,
            table_endpoint,
        };
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let client = account.builder_with(variable).and_then(built);
        let client = client.map_err(|error| error.to_string())?;
        Ok(client.endpoint().to_string())
    }

    #[test]
    fn an_account_is_found_as_the_azure_command_line_finds_it() {
        let text = format!("AccountName=fromstring;AccountKey={KEY}");
        let string = ("AZURE_STORAGE_CONNECTION_STRING", text.as_str());
        let name = ("AZURE_STORAGE_ACCOUNT", "fromname");
        let key = ("AZURE_STORAGE_KEY", KEY);
        let sas = ("AZURE_STORAGE_SAS_TOKEN", "sv=2019-02-02&sig=c2VjcmV0");
        let azure = |name: &str| Ok(format!("https://{name}.table.core.windows.net"));
        let none = [None; 5];
        assert_eq!(
            endpoint([Some(&text), None, None, None, None], &[name, key]),
            azure("fromstring")
        );
        assert_eq!(endpoint(none, &[string, name, key]), azure("fromstring"));
        assert_eq!(endpoint(none, &[name, key]), azure("fromname"));
        assert_eq!(endpoint(none, &[name, sas]), azure("fromname"));
        assert_eq!(
            endpoint([None, Some("given"), None, None, None], &[string, key]),
            azure("given")
        );
        let url = Some("http://127.0.0.1:10002/given");
        assert_eq!(
            endpoint([None, Some("given"), Some(KEY), None, url], &[string]),
            Ok("http://127.0.0.1:10002/given".to_owned())
        );

        for (options, variables, problem) in [
            (none, &[][..], "no account is given"),
            (none, &[name], "no credential is given"),
            (
                [None, None, Some(KEY), None, url],
                &[],
                "needs --account-name",
            ),
            (
                [None, Some("given"), Some("secret!"), None, None],
                &[],
                "Base64",
            ),
        ] {
            let error = endpoint(options, variables).unwrap_err();
            assert!(
                error.contains(problem) && !error.contains("secret!"),
                "{error}"
            );
        }
    }
}
