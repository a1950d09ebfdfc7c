//! What happens to every request, in order: a place among those in flight, date and version, signature, sending within a time
//! limit, a first look at the answer, and another attempt where that helps.
//!
//! Knows nothing of what an operation means.

mod budget;
mod observe;
mod policy;
mod retry;
mod sign;

pub(crate) use observe::Hook;
pub use observe::OperationReport;
pub use policy::Retry;
pub(crate) use retry::{Answer, Effect, Run};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use tablesdk_protocol::operation::update_entity::merge_by_post;
use tablesdk_protocol::wire::header as name;
use tablesdk_protocol::{Clock, Endpoint, Guid, Timestamp, Transport};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use self::budget::Budget;
use crate::credential::Credential;
use crate::{Backend, Error};

/// Sends requests to one account.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) endpoint: Endpoint,
    /// Where reads may go that the primary does not answer.
    secondary_for_reads: Option<Endpoint>,
    /// Queries that read whole tables are refused.
    pub(crate) denies_scans: bool,
    /// What is told of each operation.
    pub(crate) hook: Option<Hook>,
    backend: Backend,
    pub(crate) credential: Credential,
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    retry: Retry,
    budget: Budget,
    places: Option<Semaphore>,
}

impl Pipeline {
    pub(crate) fn new(
        endpoint: Endpoint,
        backend: Backend,
        credential: Credential,
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
        retry: Retry,
        in_flight_max: Option<usize>,
    ) -> Self {
        Self {
            endpoint,
            secondary_for_reads: None,
            denies_scans: false,
            hook: None,
            backend,
            credential,
            transport,
            clock,
            budget: Budget::new(retry.budget),
            retry,
            places: in_flight_max.map(Semaphore::new),
        }
    }

    /// Lets reads that fail be repeated at the account's secondary.
    pub(crate) fn with_secondary_for_reads(mut self, secondary: Option<Endpoint>) -> Self {
        self.secondary_for_reads = secondary;
        self
    }

    /// A request to the endpoint as one to the secondary, where reads may go there.
    fn at_secondary(&self, request: &Request<Bytes>) -> Option<Request<Bytes>> {
        let secondary = self.secondary_for_reads.as_ref()?;
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

    /// Starts an operation: its deadline begins here.
    pub(crate) fn begin(&self, operation: &'static str, table: Option<&str>) -> Run<'_> {
        Run::new(self, operation, table)
    }

    /// Sends the only request of an operation, and gives back the answer of its success.
    pub(crate) async fn send(
        &self,
        operation: &'static str,
        effect: Effect,
        request: &Request<Bytes>,
    ) -> Result<Answer, Error> {
        self.begin(operation, None).send(effect, request).await
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
    fn prepare(&self, mut request: Request<Bytes>, client_request_id: &str) -> Request<Bytes> {
        self.adapt(&mut request);
        let date = self.clock.now().to_http_date();
        let headers = request.headers_mut();
        headers.insert(
            name::X_MS_VERSION,
            HeaderValue::from_static(SERVICE_VERSION),
        );
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        headers.insert(name::X_MS_DATE, ascii(&date));
        headers.insert(name::X_MS_CLIENT_REQUEST_ID, ascii(client_request_id));
        sign::sign(&self.credential, &mut request);
        request
    }
}

/// A random GUID of version 4.
pub(crate) fn random_guid() -> Guid {
    let mut bytes = fastrand::u128(..).to_be_bytes();
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
    *version = *version & 0x0F | 0x40;
    *variant = *variant & 0x3F | 0x80;
    Guid::from_bytes(bytes)
}

fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("dates and GUIDs are visible ASCII")
}

/// Known to Azure Table storage, Cosmos DB and every emulator.
const SERVICE_VERSION: &str = "2019-02-02";
const USER_AGENT: &str = concat!("tablesdk/", env!("CARGO_PKG_VERSION"));
