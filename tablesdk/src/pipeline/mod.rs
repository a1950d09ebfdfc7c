//! The steps of every request, in order: a permit among the requests in flight, date and version,
//! authentication, sending within a time limit, a first check of the response, and another attempt
//! where that helps.
//!
//! Knows nothing of what an operation means.

mod attempt;
mod budget;
mod deadline;
pub(crate) mod event;
mod handle;
mod operation_run;
mod operation_span;
mod policy;
mod poll_backoff;
mod request_auth;
mod service_time;
mod span;
mod table;
mod task;

pub(crate) use attempt::{Effect, NoSuccess};
pub(crate) use deadline::Deadline;
pub(crate) use handle::PipelineHandle;
pub(crate) use operation_run::{OperationRun, SendOptions};
pub use operation_span::OperationReport;
pub(crate) use operation_span::{Hook, PagedOperation};
pub use policy::RetryPolicy;
pub(crate) use policy::random_pause;
pub(crate) use poll_backoff::PollBackoff;
pub(crate) use service_time::date_of;
pub(crate) use span::in_current_span;
pub(crate) use table::Table;
pub(crate) use task::{joined_of, read_ahead};

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use tablesdk_protocol::header as name;
use tablesdk_protocol::limits::REQUEST_BODY_BYTES_MAX;
use tablesdk_protocol::operation::batch::{self, Change, Refusal};
use tablesdk_protocol::operation::update_entity::{MergeMethod, merge_by_post};
use tablesdk_protocol::{Clock, Endpoint, Timestamp, Transport};
use tokio::sync::Semaphore;

use self::budget::Budget;
use self::request_auth::RequestAuth;
use self::service_time::ServiceTime;
use crate::credential::{Account, Credential, CredentialSlot};
use crate::error::Error;
use crate::random::random_guid;
use crate::transport::Backend;

/// Sends requests to one account.
pub(crate) struct Pipeline {
    options: PipelineOptions,
    budget: Budget,
    /// A permit for each request that may be in flight at a time.
    in_flight: Option<Semaphore>,
    date: DateHeader,
    service_time: ServiceTime,
}

/// How a pipeline sends requests.
pub(crate) struct PipelineOptions {
    pub(crate) endpoint: Endpoint,
    /// Where the account can be read when it is replicated, if that is known.
    pub(crate) secondary: Option<Endpoint>,
    /// True if reads are retried at the secondary.
    pub(crate) reads_secondary: bool,
    /// Queries that read whole tables are refused.
    pub(crate) denies_scans: bool,
    /// Called with the report of each operation.
    pub(crate) hook: Option<Hook>,
    pub(crate) backend: Backend,
    pub(crate) credential: CredentialSlot,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) retry: RetryPolicy,
    pub(crate) max_in_flight: Option<usize>,
    pub(crate) user_agent: HeaderValue,
}

impl std::ops::Deref for Pipeline {
    type Target = PipelineOptions;

    fn deref(&self) -> &PipelineOptions {
        &self.options
    }
}

impl Pipeline {
    pub(crate) fn new(options: PipelineOptions) -> Self {
        Self {
            budget: Budget::new(options.retry.budget),
            in_flight: options.max_in_flight.map(Semaphore::new),
            date: DateHeader::default(),
            service_time: ServiceTime::default(),
            options,
        }
    }

    /// A request to the endpoint as one to the secondary, where reads may go there.
    fn at_secondary(&self, effect: Effect, request: &Request<Bytes>) -> Option<Request<Bytes>> {
        let may_respond = self.reads_secondary && effect == Effect::Read;
        let secondary = self.secondary.as_ref().filter(|_| may_respond)?;
        let resource = request.uri().path_and_query()?.as_str();
        let resource = resource.strip_prefix(self.endpoint.path())?;
        let mut request = request.clone();
        *request.uri_mut() = format!("{secondary}{resource}").parse().ok()?;
        Some(request)
    }

    /// The time, and how long an operation may take by the policy of the client.
    pub(crate) fn now_and_deadline(&self) -> (Timestamp, Duration) {
        (self.now(), self.retry.deadline)
    }

    /// The time, by the client's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time, by the service's clock where it is known.
    pub(crate) fn service_now(&self) -> Timestamp {
        self.service_time.at(self.now())
    }

    /// Looks at the dates of responses from now on.
    pub(crate) fn watch_service_time(&self) {
        self.service_time.watch();
    }

    /// Returns true if a response has shown the time of the service.
    pub(crate) fn knows_service_time(&self) -> bool {
        self.service_time.is_known()
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

    /// The request that carries out changes together.
    pub(crate) fn encode_batch<'c>(
        &self,
        changes: impl IntoIterator<Item = &'c Change, IntoIter: Clone>,
    ) -> Request<Bytes> {
        batch::encode_changes(changes, &self.endpoint, random_guid(), self.merge_method())
    }

    /// Returns true if the name of a table consists of letters and digits, and is compared without
    /// regard to case.
    pub(crate) const fn has_plain_table_names(&self) -> bool {
        matches!(self.options.backend, Backend::Storage)
    }

    /// Returns true if a shared access signature may have a range of keys.
    pub(crate) const fn has_sas_keys(&self) -> bool {
        matches!(self.options.backend, Backend::Storage)
    }

    /// Returns true if the entities of several partitions are in the order of their keys.
    pub(crate) const fn orders_partitions(&self) -> bool {
        matches!(self.options.backend, Backend::Storage)
    }

    /// The function that reads the refusal of a batch.
    pub(crate) fn refusal_reader(&self) -> fn(&Response<Bytes>) -> Refusal {
        match self.options.backend {
            Backend::Cosmos => Refusal::read_from_cosmos_db,
            Backend::Storage => Refusal::read,
        }
    }

    /// The size of the largest batch that the backend accepts.
    pub(crate) const fn batch_bytes_max(&self) -> usize {
        match self.options.backend {
            Backend::Cosmos => COSMOS_DB_BATCH_BYTES_MAX,
            Backend::Storage => REQUEST_BODY_BYTES_MAX,
        }
    }

    /// The method of a merge that the backend knows.
    const fn merge_method(&self) -> MergeMethod {
        match self.options.backend {
            Backend::Cosmos => MergeMethod::Post,
            Backend::Storage => MergeMethod::Patch,
        }
    }

    /// Adds what every attempt has, and signs it: after this, nothing may change.
    fn prepare(
        &self,
        request: &Request<Bytes>,
        client_request_id: &str,
        auth: &RequestAuth,
    ) -> Request<Bytes> {
        let mut request = with_room(request);
        if self.merge_method() == MergeMethod::Post {
            merge_by_post(&mut request);
        }
        let date = self.date.at(self.now());
        let headers = request.headers_mut();
        // An operation that older versions do not know has a version of its own.
        headers
            .entry(name::X_MS_VERSION)
            .or_insert_with(|| HeaderValue::from_static(auth.service_version()));
        headers.insert(header::USER_AGENT, self.user_agent.clone());
        headers.insert(name::X_MS_DATE, date);
        headers.insert(name::X_MS_CLIENT_REQUEST_ID, ascii(client_request_id));
        auth.sign(&mut request);
        request
    }
}

/// The date of requests as a header, printed once for all requests of a second.
#[derive(Debug, Default)]
struct DateHeader(Mutex<Option<(i64, HeaderValue)>>);

impl DateHeader {
    fn at(&self, now: Timestamp) -> HeaderValue {
        let second = now.unix_ticks().div_euclid(TICKS_PER_SECOND);
        let mut printed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*printed {
            Some((of, date)) if *of == second => date.clone(),
            _ => {
                let date = ascii(&now.to_http_date());
                *printed = Some((second, date.clone()));
                date
            }
        }
    }
}

/// A copy with room for the headers that every request has.
fn with_room(request: &Request<Bytes>) -> Request<Bytes> {
    let mut copy = Request::new(request.body().clone());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    let mut headers = HeaderMap::with_capacity(HEADERS);
    headers.extend(
        request
            .headers()
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    *copy.headers_mut() = headers;
    copy
}

fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("dates and GUIDs are visible ASCII")
}

/// The `User-Agent` of the requests of an application.
pub(crate) fn user_agent(application_id: Option<&str>) -> Result<HeaderValue, Error> {
    let Some(id) = application_id else {
        return Ok(HeaderValue::from_static(USER_AGENT));
    };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-./^_`|~".contains(&byte);
    let refused = || {
        Error::configuration_message(format!(
            "an application id has 1 to {APPLICATION_ID_MAX} characters: letters, digits and any of !#$%&'*+-./^_`|~"
        ))
    };
    if !(1..=APPLICATION_ID_MAX).contains(&id.len()) || !id.bytes().all(is_allowed) {
        return Err(refused());
    }
    HeaderValue::try_from(format!("{id} {USER_AGENT}")).map_err(|_| refused())
}

const TICKS_PER_SECOND: i64 = 10_000_000;
/// As many headers as most requests have, with those that an HTTP stack adds.
const HEADERS: usize = 12;
const USER_AGENT: &str = concat!("tablesdk/", env!("CARGO_PKG_VERSION"));
/// As the guidelines for Azure SDKs have it.
const APPLICATION_ID_MAX: usize = 24;
/// The size of the largest batch of Cosmos DB.
const COSMOS_DB_BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;
