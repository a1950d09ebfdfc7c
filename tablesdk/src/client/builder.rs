//! The options of a client, and what is made of them.

use std::sync::Arc;

use tablesdk_protocol::{Clock, Endpoint, InProcessServer, Transport};
use tokio::sync::Semaphore;

use super::TableServiceClient;
use crate::connection_string::ConnectionString;
use crate::credential::{Account, Credential, CredentialSlot};
use crate::error::Error;
use crate::pipeline::{
    Hook, OperationReport, Pipeline, PipelineHandle, PipelineOptions, RetryPolicy, user_agent,
};
use crate::sas::SasUrl;
use crate::transport::{Backend, SystemClock};

/// Builds a [`TableServiceClient`].
///
/// It starts from an endpoint ([`TableServiceClient::builder`]), a connection string
/// ([`TableServiceClientBuilder::from_connection_string`]) or a URL with a shared access signature
/// ([`SasUrl::builder`]).
///
/// ```
/// use std::time::Duration;
/// use tablesdk::{RetryPolicy, SharedKey, TableServiceClient};
///
/// let service = TableServiceClient::builder("https://acct.table.core.windows.net")
///     .credential(SharedKey::new("acct", "c2VjcmV0")?)
///     .retry(RetryPolicy::exponential().attempts(3).deadline(Duration::from_secs(20)))
///     .max_in_flight(64)
///     .deny_scans()
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until build is called"]
pub struct TableServiceClientBuilder {
    endpoint: Result<Endpoint, Error>,
    secondary: Option<Result<Endpoint, Error>>,
    credential: Credential,
    transport: Option<Arc<dyn Transport>>,
    clock: Arc<dyn Clock>,
    backend: Option<Backend>,
    retry: RetryPolicy,
    max_in_flight: Option<usize>,
    reads_secondary: bool,
    denies_scans: bool,
    hook: Option<Hook>,
    application_id: Option<String>,
}

impl TableServiceClientBuilder {
    pub(super) fn new(endpoint: Result<Endpoint, Error>) -> Self {
        Self {
            endpoint,
            secondary: None,
            credential: Credential::Anonymous,
            transport: None,
            clock: Arc::new(SystemClock),
            backend: None,
            retry: RetryPolicy::exponential(),
            max_in_flight: None,
            reads_secondary: false,
            denies_scans: false,
            hook: None,
            application_id: None,
        }
    }

    /// Starts a client from a connection string, to add options to what it says.
    ///
    /// ```
    /// use tablesdk::{RetryPolicy, TableServiceClientBuilder};
    ///
    /// let text = "AccountName=acct;AccountKey=c2VjcmV0";
    /// let service = TableServiceClientBuilder::from_connection_string(text)?.retry(RetryPolicy::none()).build()?;
    /// # Ok::<(), tablesdk::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TableServiceClient::from_connection_string`].
    pub fn from_connection_string(text: &str) -> Result<Self, Error> {
        ConnectionString::parse(text).map(Self::connecting)
    }

    /// Starts a client of a server in this process, to add options. Requests need no socket: the
    /// builder has the endpoint, the credential, the transport, the clock and the backend of the
    /// server.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tablesdk::{RetryPolicy, TableServiceClientBuilder};
    /// use tablesdk_server::TableServer;
    ///
    /// let server = TableServer::in_process();
    /// let service = TableServiceClientBuilder::in_process(&server).retry(RetryPolicy::none()).build()?;
    /// service.table("Employees").create_table().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_process(server: &(impl InProcessServer + ?Sized)) -> Self {
        let builder = Self::new(Ok(server.endpoint()))
            .credential(server.credential())
            .transport(server.transport())
            .clock(server.clock());
        Self {
            backend: server.is_cosmos_db().then_some(Backend::Cosmos),
            ..builder
        }
    }

    pub(super) fn connecting(connection: ConnectionString) -> Self {
        let ConnectionString {
            endpoint,
            secondary,
            credential,
        } = connection;
        let builder = Self::new(Ok(endpoint)).credential(credential);
        Self {
            secondary: secondary.map(Ok),
            ..builder
        }
    }

    /// The endpoint where a replicated account can be read, such as
    /// `https://account-secondary.table.core.windows.net`. By default it is derived from the
    /// endpoint, if the endpoint names the account.
    pub fn secondary_endpoint(mut self, endpoint: impl AsRef<str>) -> Self {
        self.secondary = Some(endpoint.as_ref().parse().map_err(Error::configuration));
        self
    }

    /// The credential that authenticates requests: a [`SharedKey`](crate::SharedKey), a
    /// [`Sas`](crate::Sas) or tokens of [`EntraId`](crate::EntraId). Without one, the client is
    /// anonymous.
    pub fn credential(mut self, credential: impl Into<Credential>) -> Self {
        self.credential = credential.into();
        self
    }

    /// The transport that carries the requests, instead of HTTP by `reqwest`. A client of the
    /// bundled server has its transport from [`TableServiceClientBuilder::in_process`]; the [guide
    /// to testing](crate::guide::testing) shows transports of your own.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    ///
    /// use bytes::Bytes;
    /// use http::Request;
    /// use tablesdk::TableServiceClientBuilder;
    /// use tablesdk::transport::{Transport, TransportFuture};
    /// use tablesdk_server::TableServer;
    ///
    /// /// Prints the path of each request.
    /// #[derive(Debug)]
    /// struct Printing(Arc<dyn Transport>);
    ///
    /// impl Transport for Printing {
    ///     fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
    ///         println!("{} {}", request.method(), request.uri().path());
    ///         self.0.send(request)
    ///     }
    /// }
    ///
    /// let server = TableServer::in_process();
    /// let service = TableServiceClientBuilder::in_process(&server)
    ///     .transport(Printing(server.transport()))
    ///     .build()?;
    /// service.table("Employees").create_table().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn transport(mut self, transport: impl Transport + 'static) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// The clock that dates requests, instead of the system clock.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The service behind the endpoint, where its host does not identify it.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = Some(backend);
        self
    }

    /// How requests are retried; [`RetryPolicy::exponential`] by default.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// The maximum number of requests of this client and its clones that are in flight at a time.
    /// Other requests wait, and the wait counts towards their deadline. Unlimited by default. Must
    /// not be 0.
    pub fn max_in_flight(mut self, requests: usize) -> Self {
        self.max_in_flight = Some(requests);
        self
    }

    /// Retries reads at the account's secondary, `account-secondary`, when the primary does not
    /// respond, and at the primary when the secondary does not. For accounts with read access to
    /// their secondary (RA-GRS and RA-GZRS), and for reads only.
    ///
    /// The secondary lags behind the primary, at times by minutes: with this option, a read may
    /// return old data. An old ETag from the secondary is safe, since a conditional write with it
    /// fails. A response of the secondary that something does not exist is never trusted. What an
    /// operation reads for a write, as `modify` does, is always read from the primary.
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

    /// Refuses queries that read a whole table, which are those without a partition, before
    /// anything is sent. For programs that must never scan a table by mistake.
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

    /// Sets a function that is called with a report after each operation that sent a request: to
    /// count, to measure, to bill. The function runs inline and must be quick. In addition, every
    /// operation is a span of `tracing`, and its attempts are spans inside it; retries are
    /// [events](crate::guide::observability) for a log.
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

    /// The name of the application, such as `billing/2.1`. It is the first word of the `User-Agent`
    /// of each request, where the logs of the service show it. It has 1 to 24 characters: letters,
    /// digits and any of ``!#$%&'*+-./^_`|~``.
    ///
    /// ```
    /// use tablesdk::TableServiceClient;
    ///
    /// let service = TableServiceClient::builder("https://acct.table.core.windows.net")
    ///     .application_id("billing/2.1")
    ///     .build()?;
    /// # Ok::<(), tablesdk::Error>(())
    /// ```
    pub fn application_id(mut self, id: &str) -> Self {
        self.application_id = Some(id.to_owned());
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    ///
    /// When the endpoint or the application id is malformed, when reads should go to a secondary
    /// that cannot be derived from the endpoint, when an option allows no request at all, or when
    /// the transport cannot be set up.
    pub fn build(self) -> Result<TableServiceClient, Error> {
        let endpoint = self.endpoint?;
        let transport = match self.transport {
            Some(transport) => transport,
            None => default_transport()?,
        };
        self.retry.check().map_err(Error::configuration_message)?;
        if let Some(requests) = self.max_in_flight
            && !(1..=Semaphore::MAX_PERMITS).contains(&requests)
        {
            return Err(Error::configuration_message(format!(
                "{requests} is no number of requests in flight"
            )));
        }
        let backend = self.backend.unwrap_or_else(|| Backend::of(&endpoint));
        let secondary = match self.secondary {
            Some(secondary) => Some(secondary?),
            // SERVICE: Cosmos DB replicates in its own way, behind one endpoint.
            None if backend == Backend::Cosmos => None,
            None => endpoint.secondary(),
        };
        if self.reads_secondary && secondary.is_none() {
            return Err(Error::configuration_message(format!(
                "reads cannot go to a secondary: {endpoint} is no primary of an Azure Storage account"
            )));
        }
        let account = Account {
            endpoint: &endpoint,
            secondary: secondary.as_ref(),
            backend,
            clock: &self.clock,
        };
        let credential = CredentialSlot::new(self.credential, &account)?;
        let pipeline = Pipeline::new(PipelineOptions {
            endpoint,
            secondary,
            reads_secondary: self.reads_secondary,
            denies_scans: self.denies_scans,
            hook: self.hook,
            backend,
            credential,
            transport,
            clock: self.clock,
            retry: self.retry,
            max_in_flight: self.max_in_flight,
            user_agent: user_agent(self.application_id.as_deref())?,
        });
        Ok(TableServiceClient {
            pipeline: PipelineHandle::new(pipeline),
        })
    }
}

impl SasUrl {
    /// Starts a client for the account that the URL names, with the signature as its credential.
    pub fn builder(&self) -> TableServiceClientBuilder {
        let builder = TableServiceClientBuilder::new(Ok(self.endpoint().clone()));
        builder.credential(self.sas().clone())
    }
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
