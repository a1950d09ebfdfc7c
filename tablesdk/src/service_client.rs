//! The handle to an account's table service, and how it is built.

use std::fmt;
use std::sync::Arc;

use tablesdk_protocol::{Clock, Endpoint, Transport};
use tokio::sync::Semaphore;

use crate::action::QueryTables;
use crate::clock::SystemClock;
use crate::connection_string::ConnectionString;
use crate::credential::Credential;
use crate::pipeline::{Hook, OperationReport, Pipeline, Retry};
use crate::transfer::{Export, Import, ImportMode};
use crate::{Backend, Error, TableClient};

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
/// table.create().await?;
/// assert_eq!(service.tables().collect().await?, ["Employees"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TableServiceClient {
    pipeline: Arc<Pipeline>,
}

impl TableServiceClient {
    /// A client for the account that a connection string names, as the Azure portal, an emulator or the bundled server gives
    /// it.
    ///
    /// # Errors
    ///
    /// When the connection string cannot be used. The error names the key that is wrong, and never repeats a value.
    pub fn from_connection_string(text: &str) -> Result<Self, Error> {
        let ConnectionString {
            endpoint,
            credential,
        } = ConnectionString::parse(text)?;
        Builder::new(Ok(endpoint)).credential(credential).build()
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
                "the environment variable {CONNECTION_STRING_VARIABLE} is not set, or not text"
            ))),
        }
    }

    /// A client for a storage emulator on this machine, at its usual port with its well-known account.
    ///
    /// # Errors
    ///
    /// When the transport cannot be set up.
    pub fn emulator() -> Result<Self, Error> {
        let ConnectionString {
            endpoint,
            credential,
        } = ConnectionString::emulator();
        Builder::new(Ok(endpoint)).credential(credential).build()
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
    pub fn builder(endpoint: impl AsRef<str>) -> Builder {
        Builder::new(endpoint.as_ref().parse().map_err(Error::configuration))
    }

    /// A client of the table of that name, which need not exist yet. A name that breaks the rules is reported when an
    /// operation on it is awaited.
    pub fn table(&self, name: impl Into<String>) -> TableClient {
        TableClient::new(Arc::clone(&self.pipeline), name.into())
    }

    /// Lists the account's tables.
    pub fn tables(&self) -> QueryTables {
        QueryTables::new(Arc::clone(&self.pipeline))
    }

    /// Reads whole tables, all of them unless told otherwise, as records that can be written to a file or another account.
    /// See [`transfer`](crate::transfer).
    pub fn export(&self) -> Export {
        Export::new(self.clone())
    }

    /// Writes records that an [`export`](Self::export) read into tables of this account. See
    /// [`transfer`](crate::transfer).
    pub fn import(&self, mode: ImportMode) -> Import {
        Import::new(self.clone(), mode)
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

/// Builds a [`TableServiceClient`].
#[derive(Debug)]
#[must_use = "a builder does nothing until build is called"]
pub struct Builder {
    endpoint: Result<Endpoint, Error>,
    credential: Credential,
    transport: Option<Arc<dyn Transport>>,
    clock: Arc<dyn Clock>,
    backend: Option<Backend>,
    retry: Retry,
    in_flight_max: Option<usize>,
    reads_secondary: bool,
    denies_scans: bool,
    hook: Option<Hook>,
}

impl Builder {
    fn new(endpoint: Result<Endpoint, Error>) -> Self {
        Self {
            endpoint,
            credential: Credential::Anonymous,
            transport: None,
            clock: Arc::new(SystemClock),
            backend: None,
            retry: Retry::exponential(),
            in_flight_max: None,
            reads_secondary: false,
            denies_scans: false,
            hook: None,
        }
    }

    /// What the client proves its identity with: a [`SharedKey`](crate::SharedKey) or a [`Sas`](crate::Sas). Without
    /// one it is anonymous.
    pub fn credential(mut self, credential: impl Into<Credential>) -> Self {
        self.credential = credential.into();
        self
    }

    /// What carries the requests, in the place of HTTP by `reqwest`: the bundled server in this process, or a transport of
    /// your own.
    pub fn transport(mut self, transport: impl Transport + 'static) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// The clock that requests are dated by, in the place of the system's.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Which service is behind the endpoint, where its host does not tell.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = Some(backend);
        self
    }

    /// How requests are repeated: [`Retry::exponential`] unless told otherwise.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// How many requests of this client and its clones are on their way at a time, at most. Others wait, and their deadline
    /// runs. Unlimited unless told otherwise; not 0.
    pub fn max_in_flight(mut self, requests: usize) -> Self {
        self.in_flight_max = Some(requests);
        self
    }

    /// Repeats reads that the account's primary does not answer at its secondary, `account-secondary`, and the other way round.
    /// For accounts with read access to their secondary (RA-GRS and RA-GZRS), and for reads only.
    ///
    /// The secondary lags behind, by minutes at times: with this, a read may show what was true a while ago. An ETag from
    /// there is no danger, since a write on the condition of an old one fails. That something is missing at the secondary
    /// is never believed, and what an operation needs for a write, as `modify` does, is always read at the primary.
    ///
    /// ```
    /// use tablesdk::TableServiceClient;
    ///
    /// let service = TableServiceClient::builder("https://acct.table.core.windows.net")
    ///     .secondary_reads()
    ///     .build()?;
    /// # Ok::<(), tablesdk::Error>(())
    /// ```
    pub fn secondary_reads(mut self) -> Self {
        self.reads_secondary = true;
        self
    }

    /// Refuses queries that read a whole table, before anything is sent: those without a partition. For programs that must
    /// never do so by mistake.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tablesdk::{DynamicEntity, ErrorKind, TableServiceClient};
    ///
    /// let service = TableServiceClient::builder("https://acct.table.core.windows.net")
    ///     .deny_scans()
    ///     .build()?;
    /// let scan = service.table("Employees").query::<DynamicEntity>().collect();
    /// assert_eq!(scan.await.unwrap_err().kind(), ErrorKind::Input);
    /// # Ok(())
    /// # }
    /// ```
    pub fn deny_scans(mut self) -> Self {
        self.denies_scans = true;
        self
    }

    /// Calls a function after each operation that sent anything, with what it took: to count, to measure, to bill. It runs
    /// in between and must be quick. Beside it, every operation is a span of `tracing`, with its attempts inside.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use tablesdk::TableServiceClient;
    ///
    /// let received = Arc::new(AtomicU64::new(0));
    /// let counter = Arc::clone(&received);
    /// let service = TableServiceClient::builder(server.endpoint())
    ///     .credential(server.credential())
    ///     .on_operation(move |operation| {
    ///         counter.fetch_add(operation.bytes_received, Ordering::Relaxed);
    ///     })
    ///     .build()?;
    /// service.tables().collect().await?;
    /// assert!(received.load(Ordering::Relaxed) > 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_operation(mut self, hook: impl Fn(&OperationReport) + Send + Sync + 'static) -> Self {
        self.hook = Some(Hook::new(hook));
        self
    }

    /// The client.
    ///
    /// # Errors
    ///
    /// When the endpoint is not one, reads should go to a secondary and the endpoint does not tell which that is, an option allows no request at all, or the transport cannot be set up.
    pub fn build(self) -> Result<TableServiceClient, Error> {
        let endpoint = self.endpoint?;
        let transport = match self.transport {
            Some(transport) => transport,
            None => default_transport()?,
        };
        self.retry.check()?;
        if let Some(requests) = self.in_flight_max
            && !(1..=Semaphore::MAX_PERMITS).contains(&requests)
        {
            return Err(Error::configuration_message(format!(
                "{requests} is no number of requests in flight"
            )));
        }
        let backend = self.backend.unwrap_or_else(|| Backend::of(&endpoint));
        let secondary = if self.reads_secondary {
            Some(secondary(&endpoint, backend)?)
        } else {
            None
        };
        let mut pipeline = Pipeline::new(
            endpoint,
            backend,
            self.credential,
            transport,
            self.clock,
            self.retry,
            self.in_flight_max,
        );
        pipeline.denies_scans = self.denies_scans;
        pipeline.hook = self.hook;
        Ok(TableServiceClient {
            pipeline: Arc::new(pipeline.with_secondary_for_reads(secondary)),
        })
    }
}

fn secondary(endpoint: &Endpoint, backend: Backend) -> Result<Endpoint, Error> {
    let secondary = endpoint.secondary().filter(|_| backend == Backend::Storage);
    secondary.ok_or_else(|| {
        Error::configuration_message(format!(
            "reads cannot go to a secondary: {endpoint} is no primary of an Azure Storage account"
        ))
    })
}

#[cfg(feature = "reqwest")]
fn default_transport() -> Result<Arc<dyn Transport>, Error> {
    Ok(Arc::new(crate::transport::ReqwestTransport::new()?))
}

#[cfg(not(feature = "reqwest"))]
fn default_transport() -> Result<Arc<dyn Transport>, Error> {
    Err(Error::configuration_message(
        "this build has no HTTP transport: enable the feature `reqwest`, or give the builder a transport",
    ))
}

const CONNECTION_STRING_VARIABLE: &str = "AZURE_STORAGE_CONNECTION_STRING";
