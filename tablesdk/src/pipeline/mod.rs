//! What happens to every request, in order: a place among those in flight, date and version, signature, sending within a time
//! limit, a first look at the answer, and another attempt where that helps.
//!
//! Knows nothing of what an operation means.

mod attempt;
mod budget;
mod operation_run;
mod operation_span;
mod policy;
mod poll_backoff;
mod request_auth;
mod table;
mod task;

pub(crate) use attempt::Effect;
pub(crate) use operation_run::{OperationRun, ServiceResponse};
pub use operation_span::OperationReport;
pub(crate) use operation_span::{Hook, PagedOperation, in_current_span};
pub use policy::RetryPolicy;
pub(crate) use poll_backoff::PollBackoff;
pub(crate) use table::Table;
pub(crate) use task::{joined_of, read_ahead, spawn};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use tablesdk_protocol::header as name;
use tablesdk_protocol::operation::update_entity::merge_by_post;
use tablesdk_protocol::{Clock, Endpoint, Guid, Timestamp, Transport};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use self::budget::Budget;
use self::request_auth::RequestAuth;
use crate::credential::{Account, Credential, CredentialSlot};
use crate::error::Error;
use crate::transport::Backend;

/// Sends requests to one account.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) endpoint: Endpoint,
    /// Where the account can be read when it is replicated, if that is known.
    pub(crate) secondary: Option<Endpoint>,
    /// Whether reads may go there that the primary does not answer.
    reads_secondary: bool,
    /// Queries that read whole tables are refused.
    pub(crate) denies_scans: bool,
    /// Called with the report of each operation.
    pub(crate) hook: Option<Hook>,
    backend: Backend,
    pub(crate) credential: CredentialSlot,
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    retry: RetryPolicy,
    budget: Budget,
    places: Option<Semaphore>,
}

impl Pipeline {
    pub(crate) fn new(
        endpoint: Endpoint,
        backend: Backend,
        credential: CredentialSlot,
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
        retry: RetryPolicy,
        max_in_flight: Option<usize>,
    ) -> Self {
        Self {
            endpoint,
            secondary: None,
            reads_secondary: false,
            denies_scans: false,
            hook: None,
            backend,
            credential,
            transport,
            clock,
            budget: Budget::new(retry.budget),
            retry,
            places: max_in_flight.map(Semaphore::new),
        }
    }

    /// Tells where the account can be read when it is replicated, and whether reads that fail may be repeated there.
    pub(crate) fn with_secondary(mut self, secondary: Option<Endpoint>, for_reads: bool) -> Self {
        self.secondary = secondary;
        self.reads_secondary = for_reads;
        self
    }

    /// A request to the endpoint as one to the secondary, where reads may go there.
    fn at_secondary(&self, request: &Request<Bytes>) -> Option<Request<Bytes>> {
        let secondary = self.secondary.as_ref().filter(|_| self.reads_secondary)?;
        let resource = request.uri().path_and_query()?.as_str();
        let resource = resource.strip_prefix(self.endpoint.path())?;
        let mut request = request.clone();
        *request.uri_mut() = format!("{secondary}{resource}").parse().ok()?;
        Some(request)
    }

    /// The time, and how long an operation may take.
    pub(crate) fn now_and_deadline(&self) -> (Timestamp, Duration) {
        (self.clock.now(), self.retry.deadline)
    }

    /// The time, by the client's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Uses another credential for all requests from now on. Requests in flight keep the old one.
    pub(crate) fn replace_credential(&self, credential: Credential) -> Result<(), Error> {
        let account = Account {
            endpoint: &self.endpoint,
            secondary: self.secondary.as_ref(),
            backend: self.backend,
            clock: &self.clock,
        };
        self.credential.replace(credential, &account)
    }

    /// Starts an operation: its deadline begins here.
    pub(crate) fn begin(&self, operation: &'static str, table: Option<&str>) -> OperationRun<'_> {
        OperationRun::new(self, operation, table)
    }

    /// Goes on with an operation whose requests begin one by one: the deadline of the next ones begins here.
    pub(crate) fn resume(
        &self,
        operation: &'static str,
        table: Option<&str>,
        paged: &PagedOperation,
    ) -> OperationRun<'_> {
        OperationRun::resume(self, operation, table, paged)
    }

    /// Sends the only request of an operation, and gives back the answer of its success.
    pub(crate) async fn send(
        &self,
        operation: &'static str,
        table: Option<&str>,
        effect: Effect,
        request: &Request<Bytes>,
    ) -> Result<ServiceResponse, Error> {
        let mut run = self.begin(operation, table);
        let answer = run.send(effect, request).await;
        run.end(answer)
    }

    /// Writes a request the way the backend knows it. A batch needs it for each request in it.
    pub(crate) fn adapt(&self, request: &mut Request<Bytes>) {
        match self.backend {
            Backend::Cosmos => merge_by_post(request),
            Backend::Storage => {}
        }
    }

    /// Waits for a place among the requests in flight, where those are limited.
    async fn place(&self, deadline: Option<Instant>) -> Result<Option<SemaphorePermit<'_>>, ()> {
        let Some(places) = &self.places else {
            return Ok(None);
        };
        let place = match deadline {
            Some(deadline) => timeout_at(deadline, places.acquire())
                .await
                .map_err(|_| ())?,
            None => places.acquire().await,
        };
        place.map(Some).map_err(|_| ())
    }

    /// Adds what every attempt has, and signs it: after this, nothing may change.
    fn prepare(
        &self,
        mut request: Request<Bytes>,
        client_request_id: &str,
        auth: &RequestAuth,
    ) -> Request<Bytes> {
        self.adapt(&mut request);
        let date = self.clock.now().to_http_date();
        let headers = request.headers_mut();
        headers.insert(
            name::X_MS_VERSION,
            HeaderValue::from_static(auth.service_version()),
        );
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        headers.insert(name::X_MS_DATE, ascii(&date));
        headers.insert(name::X_MS_CLIENT_REQUEST_ID, ascii(client_request_id));
        auth.sign(&mut request);
        request
    }
}

/// A random GUID of version 4, from the randomness of the operating system: two equal ones would let a client take another's marker
/// for its own. A generator seeded by a clock gives equal ones on clones of one machine image.
pub(crate) fn random_guid() -> Guid {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
    *version = *version & 0x0F | 0x40;
    *variant = *variant & 0x3F | 0x80;
    Guid::from_bytes(bytes)
}

fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("dates and GUIDs are visible ASCII")
}

const USER_AGENT: &str = concat!("tablesdk/", env!("CARGO_PKG_VERSION"));
