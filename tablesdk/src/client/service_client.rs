//! The client of an account.

use std::fmt;
use std::time::Duration;

use tablesdk_protocol::{Endpoint, InProcessServer, ServiceProperties, ServiceStats, Timestamp};

use super::{TableClient, TableServiceClientBuilder};
use crate::action::{
    Action, GetUserDelegationKey, QueryTables, get_properties, get_stats, set_properties,
};
use crate::connection_string::ConnectionString;
use crate::credential::Credential;
use crate::error::Error;
use crate::pipeline::PipelineHandle;
use crate::sas::{AccountSasBuilder, SasUrl};

/// A client of an account's table service. Cloning it is cheap; clones share connections.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let text = server.connection_string();
/// use tablesdk::TableServiceClient;
///
/// let service = TableServiceClient::from_connection_string(&text)?;
/// let table = service.table("Employees");
/// table.create_table().await?;
/// assert_eq!(service.tables().collect().await?, ["Employees"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TableServiceClient {
    pub(crate) pipeline: PipelineHandle,
}

impl TableServiceClient {
    /// A client for the account that a connection string names, as the Azure portal, an emulator or
    /// the bundled server gives it.
    ///
    /// # Errors
    ///
    /// When the connection string cannot be used. The error names the key that is wrong, and never
    /// contains a value.
    pub fn from_connection_string(text: &str) -> Result<Self, Error> {
        TableServiceClientBuilder::from_connection_string(text)?.build()
    }

    /// A client of a server in this process, such as the bundled server in a test. Requests need no
    /// socket, and tokio's time can be paused. The client keeps the tables of a server in memory:
    /// the server may be dropped before it.
    ///
    /// For options, start with [`TableServiceClientBuilder::in_process`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tablesdk::TableServiceClient;
    /// use tablesdk_server::TableServer;
    ///
    /// let service = TableServiceClient::in_process(&TableServer::in_process());
    /// service.table("Employees").create_table().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_process(server: &(impl InProcessServer + ?Sized)) -> Self {
        let service = TableServiceClientBuilder::in_process(server).build();
        service.expect("with a transport, an account key and no options, nothing can be refused")
    }

    /// A client for the account that the connection string in the environment variable
    /// `AZURE_STORAGE_CONNECTION_STRING` names.
    ///
    /// # Errors
    ///
    /// When the variable is not set, or holds no usable connection string.
    pub fn from_env() -> Result<Self, Error> {
        match std::env::var(CONNECTION_STRING_VARIABLE) {
            Ok(text) => Self::from_connection_string(&text),
            Err(_) => Err(Error::configuration_message(format!(
                "the environment variable {CONNECTION_STRING_VARIABLE} is not set, or is not a string of Unicode"
            ))),
        }
    }

    /// A client for a storage emulator on this machine, at its usual port with its well-known
    /// account.
    ///
    /// ```
    /// use tablesdk::TableServiceClient;
    ///
    /// let service = TableServiceClient::emulator()?;
    /// assert_eq!(service.endpoint().as_str(), "http://127.0.0.1:10002/devstoreaccount1");
    /// # Ok::<(), tablesdk::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the transport cannot be set up.
    #[doc(alias("UseDevelopmentStorage", "Azurite"))]
    pub fn emulator() -> Result<Self, Error> {
        TableServiceClientBuilder::connecting(ConnectionString::emulator()).build()
    }

    /// A client for the account of a URL with a shared access signature, as [`sas`](Self::sas) and
    /// the Azure portal create it. For more options, use [`SasUrl`].
    ///
    /// # Errors
    ///
    /// When the string is not such a URL, or is that of a table: use [`TableClient::from_sas_url`]
    /// for that. The error does not contain the string.
    pub fn from_sas_url(url: &str) -> Result<Self, Error> {
        SasUrl::parse_account(url)?.builder().build()
    }

    /// Starts a client for an endpoint, such as `https://account.table.core.windows.net`.
    ///
    /// ```
    /// use tablesdk::{SharedKey, TableServiceClient};
    ///
    /// let service = TableServiceClient::builder("https://acct.table.core.windows.net")
    ///     .credential(SharedKey::new("acct", "c2VjcmV0")?)
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(endpoint: impl AsRef<str>) -> TableServiceClientBuilder {
        TableServiceClientBuilder::new(endpoint.as_ref().parse().map_err(Error::configuration))
    }

    /// A client of the table with that name, which need not exist yet. A valid name has 3 to 63
    /// letters and digits, and starts with a letter. An invalid name is reported when an operation
    /// on the table is awaited. The case of a name does not matter.
    #[doc(alias("table_client", "get_table_client", "get_table_reference"))]
    pub fn table(&self, name: impl Into<String>) -> TableClient {
        TableClient::new(self.pipeline.clone(), name.into())
    }

    /// Lists the account's tables.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// service.table("Employees").create_table().await?;
    /// assert_eq!(service.tables().collect().await?, ["Employees"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of the service, such as `AuthenticationFailed`; a shared access signature needs
    /// the permission to list.
    #[doc(alias("list_tables", "query_tables"))]
    pub fn tables(&self) -> QueryTables {
        QueryTables::new(self.pipeline.clone())
    }

    /// Reads the properties of the account's table service: logging, metrics and CORS rules.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// let metrics = service.properties().await?.hour_metrics.expect("the service has them");
    /// assert_eq!(metrics.retention_days, Some(7)); // as in every new account
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `AuthorizationPermissionMismatch` and `AuthorizationResourceTypeMismatch` for a shared
    /// access signature without the permission or the resource type. Cosmos DB does not support
    /// this operation.
    #[doc(alias = "get_service_properties")]
    pub fn properties(&self) -> Action<ServiceProperties> {
        Action::new(&self.pipeline, get_properties)
    }

    /// Changes the properties of the account's table service. Properties that are `None` stay as
    /// they are. The change takes effect within 30 seconds.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// use tablesdk::service_properties::{CorsRule, Logging, Metrics, ServiceProperties};
    ///
    /// let dashboard = CorsRule::new("https://dashboard.contoso.example")
    ///     .allow_method("GET")
    ///     .allow_header("x-ms-*")
    ///     .max_age_in_seconds(600);
    /// let properties = ServiceProperties::default()
    ///     .with_logging(Logging::default().deletes().retain_days(30))
    ///     .with_minute_metrics(Metrics::enabled().include_apis().retain_days(7))
    ///     .with_cors([dashboard]);
    /// service.set_properties(properties).await?;
    /// # assert_eq!(service.properties().await?.cors.unwrap()[0].allowed_methods, ["GET"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input), before anything is sent, for more than five
    /// CORS rules, for more than 2 KiB of them, or for a retention that is not 1 to 365 days.
    #[doc(alias = "set_service_properties")]
    pub fn set_properties(&self, properties: ServiceProperties) -> Action<()> {
        Action::new(&self.pipeline, |pipeline| {
            set_properties(pipeline, properties)
        })
    }

    /// Reads how far the account's secondary location lags behind. Only accounts with read access
    /// to a secondary have one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// use tablesdk::service_properties::GeoReplicationStatus;
    ///
    /// let stats = service.stats().await?;
    /// assert_eq!(stats.status, GeoReplicationStatus::Live);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport) where there is no secondary, since its
    /// host name does not resolve. [`ErrorKind::Configuration`](crate::ErrorKind::Configuration)
    /// where the name of the secondary cannot be derived from the endpoint, and
    /// [`TableServiceClientBuilder::secondary_endpoint`] was not set.
    #[doc(alias("get_service_stats", "get_statistics"))]
    pub fn stats(&self) -> Action<ServiceStats> {
        Action::new(&self.pipeline, get_stats)
    }

    /// Starts a shared access signature for the account. Signing it takes the account's key;
    /// nothing is sent.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// use std::time::Duration;
    /// use tablesdk::TableServiceClient;
    /// use tablesdk::sas::{AccountPermissions, ResourceTypes};
    ///
    /// let url = service
    ///     .sas()
    ///     .on(ResourceTypes::CONTAINER)
    ///     .allow(AccountPermissions::CREATE | AccountPermissions::LIST)
    ///     .expires_in(Duration::from_secs(600))
    ///     .sign()?;
    /// let guest = TableServiceClient::from_sas_url(&url.expose())?;
    /// guest.table("Employees").create_table().await?;
    /// assert_eq!(guest.tables().collect().await?, ["Employees"]);
    /// assert!(guest.table("Employees").delete_table().await.unwrap_err().is_denied());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`sign`](AccountSasBuilder::sign).
    #[doc(alias = "generate_account_sas")]
    pub fn sas(&self) -> AccountSasBuilder {
        AccountSasBuilder::new(self.pipeline.clone())
    }

    /// Gets a user delegation key, which signs for tables without a key of the account, with the
    /// rights of the client's identity. `lifetime` is at most seven days. The credential must be an
    /// [`EntraId`](crate::EntraId).
    ///
    /// [`TableSasBuilder::delegate`](crate::sas::TableSasBuilder::delegate) gets and keeps a key by
    /// itself: use it where the same client signs.
    ///
    /// ```no_run
    /// # async fn sign(service: tablesdk::TableServiceClient) -> Result<(), tablesdk::Error> {
    /// use std::time::Duration;
    /// use tablesdk::sas::Permissions;
    ///
    /// let day = Duration::from_secs(24 * 60 * 60);
    /// let key = service.user_delegation_key(day).await?;
    /// let sas = service.table("Employees").sas().allow(Permissions::READ);
    /// let url = sas.expires_in(Duration::from_secs(3600)).sign_with(&key)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input), before anything is sent, for more than seven
    /// days. `AuthenticationFailed` for a credential that is no token,
    /// `AuthorizationPermissionMismatch` for an identity without a role that includes
    /// `generateUserDelegationKey`. Cosmos DB and Azurite do not support this operation.
    #[doc(alias = "get_user_delegation_key")]
    pub fn user_delegation_key(&self, lifetime: Duration) -> GetUserDelegationKey {
        GetUserDelegationKey::new(self.pipeline.clone(), lifetime)
    }

    /// Replaces the credential of this client and of all its clones, for example after a key was
    /// changed, or before a shared access signature expires.
    ///
    /// In-flight requests keep the old credential. A request that is refused because its credential
    /// was replaced in the meantime is sent again with the new one, so callers do not notice the
    /// change. To rotate the keys of an account, switch its clients to the other one of its two
    /// keys, then change the first one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tablesdk::{SharedKey, TableServiceClient};
    /// use tablesdk_server::TableServer;
    ///
    /// let (first, second) = (SharedKey::new("acct", "b25l")?, SharedKey::new("acct", "dHdv")?);
    /// let server = TableServer::builder().account(first.clone()).account(second.clone()).start().await?;
    /// let service = TableServiceClient::builder(server.endpoint()).credential(first).build()?;
    /// let table = service.table("Employees");
    ///
    /// service.update_credential(second)?;
    /// table.create_table().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) for tokens, where the endpoint
    /// is not https. The client then keeps the old credential.
    pub fn update_credential(&self, credential: impl Into<Credential>) -> Result<(), Error> {
        self.pipeline.replace_credential(credential.into())
    }

    /// The time by the clock of the client, as [`TableClient::now`].
    pub fn now(&self) -> Timestamp {
        self.pipeline.now()
    }

    /// The URL of the account's table service.
    pub fn endpoint(&self) -> &Endpoint {
        &self.pipeline.endpoint
    }
}

impl fmt::Debug for TableServiceClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableServiceClient")
            .field("endpoint", &self.pipeline.endpoint)
            .field("credential", &self.pipeline.credential)
            .finish_non_exhaustive()
    }
}

const CONNECTION_STRING_VARIABLE: &str = "AZURE_STORAGE_CONNECTION_STRING";
