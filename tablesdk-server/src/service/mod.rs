//! The steps of a request in the server, in order: authentication, decoding of the operation, and the response.
//!
//! This module handles HTTP messages, but knows no sockets and no runtime. With a socket or without, the head of a request passes
//! through [`Service::admit`], then its body through [`Service::answer`]; the body need not be read before the head is admitted.
//! No content of a request makes the service panic.

mod clean_up;
mod handler;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, header};
use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::operation::{Operation, QueryOptions, ReceivedRequest};
use tablesdk_protocol::{Clock, CorsRule, ErrorCode, ResourcePath, ServiceError, TableName};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::builder::Options;
use crate::engine::Engine;
use crate::request::address::Address;
use crate::request::auth::{self, Principal, Tokens};
use crate::request::context::{Context, RequestIds};
use crate::request::cors::{self, Cors};
use crate::request::log::{self, Entry};
use crate::request::memory::SMALL_BYTES_MAX;
use crate::request::metrics::Metrics;
use crate::storage::{Closed, Storage, StorageError};
use crate::time::time_limit::{Timer, within};

/// The table service of some accounts.
#[derive(Debug)]
pub(crate) struct Service {
    /// The keys of each account.
    accounts: HashMap<String, Vec<SharedKey>>,
    clock: Arc<dyn Clock>,
    engine: Arc<Engine>,
    metrics: Metrics,
    request_ids: RequestIds,
    timer: Timer,
    tokens: Tokens,
}

impl Service {
    /// A service with the tables of its storage. An account that is given twice has two keys.
    ///
    /// # Errors
    ///
    /// When the storage cannot be opened.
    pub(crate) fn new(mut options: Options) -> io::Result<Self> {
        let storage = std::mem::take(&mut options.storage).open()?;
        Self::with_storage(options, storage)
    }

    /// A service of what is in a storage.
    ///
    /// # Errors
    ///
    /// When the storage holds something else.
    pub(crate) fn with_storage(options: Options, storage: Box<dyn Storage>) -> io::Result<Self> {
        let mut accounts: HashMap<String, Vec<SharedKey>> = HashMap::new();
        for key in options.accounts {
            let keys = accounts.entry(key.account().to_owned()).or_default();
            keys.push(key);
        }
        let engine = Engine::new(storage, Arc::clone(&options.clock), options.paging);
        let engine = engine.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let engine = Arc::new(engine.with_name_hold(options.table_name_hold));
        Ok(Self {
            accounts,
            clock: options.clock,
            engine,
            metrics: Metrics::default(),
            request_ids: RequestIds::new(),
            timer: Timer::Unknown,
            tokens: options.tokens,
        })
    }

    /// Goes on with what an earlier process left to do. A timer ends operations that wait for too long.
    #[must_use]
    pub(crate) fn resumed(self, timer: Timer) -> Self {
        clean_up::resume(&self.engine, timer);
        Self { timer, ..self }
    }

    /// What its tables are in.
    #[cfg(feature = "durable")]
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// What it has counted.
    pub(crate) const fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Why nothing can be written any more, if that is so.
    pub(crate) fn is_writable(&self) -> Result<(), StorageError> {
        self.engine.is_writable()
    }

    /// Tells when the storage is closed, once the service is gone.
    pub(crate) fn closed(&self) -> Closed {
        self.engine.closed()
    }

    /// Answers a request, whose URL is the one on the wire.
    #[cfg(test)]
    pub(crate) async fn call(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        match self.admit(head) {
            Ok(admitted) => self.answer(admitted, body).await,
            Err(response) => *response,
        }
    }

    /// Finds out who sends a request. Its body is worth reading only if this succeeds.
    pub(crate) fn admit(&self, head: Parts) -> Result<Admitted, Box<Response<Bytes>>> {
        let context = self.context(&head);
        let entry = Entry::new(&head, &context);
        if cors::is_preflight(&head) {
            let answered = entry.span().in_scope(|| self.preflight(&context, &head));
            let response = match answered {
                Ok(response) => context.finish(response),
                Err(refusal) => return Err(Box::new(refusal.answer(&context, entry))),
            };
            entry.answered(&response, None);
            return Err(Box::new(response));
        }
        let authenticated = entry.span().in_scope(|| {
            let principal = self.authenticate(&context, &head)?;
            authorize_head(&principal, &context, &head)?;
            Ok::<_, Refusal>(principal)
        });
        match authenticated {
            Ok(principal) => {
                context.is_authenticated();
                Ok(Admitted {
                    context,
                    entry,
                    head,
                    principal,
                })
            }
            Err(refusal) => {
                let response = refusal.answer(&context, entry);
                let status = response.status().as_u16();
                self.metrics.answered("", status, Duration::ZERO);
                Err(Box::new(response))
            }
        }
    }

    /// Does what a request asks for.
    pub(crate) async fn answer(&self, admitted: Admitted, body: Bytes) -> Response<Bytes> {
        let Admitted {
            context,
            mut entry,
            head,
            principal,
        } = admitted;
        entry.received(&body);
        let began = Instant::now();
        let span = entry.span();
        let handled = self.handle(&context, &principal, head, body, &mut entry);
        let handled = handled.instrument(span).await;
        let operation = entry.operation();
        let response = match handled {
            Ok(response) => {
                let response = context.finish(response);
                entry.answered(&response, None);
                response
            }
            Err(error) => Refusal::Operation(error).answer(&context, entry),
        };
        let status = response.status().as_u16();
        self.metrics.answered(operation, status, began.elapsed());
        response
    }

    /// The answer to a request whose body was not read to its end.
    #[expect(clippy::unused_self, reason = "it is the service that answers")]
    pub(crate) fn refuse(&self, admitted: Admitted, error: &ServiceError) -> Response<Bytes> {
        let Admitted { context, entry, .. } = admitted;
        Refusal::Operation(error.clone()).answer(&context, entry)
    }

    /// The answer to a request whose head is not good enough to ask who sends it.
    pub(crate) fn refuse_head(&self, head: &Parts, error: &ServiceError) -> Response<Bytes> {
        let context = self.context(head);
        let entry = Entry::new(head, &context);
        Refusal::Operation(error.clone()).answer(&context, entry)
    }

    /// The answer to what has no head that could be read.
    pub(crate) fn refuse_unread(&self, error: &ServiceError) -> Response<Bytes> {
        let (head, ()) = Request::new(()).into_parts();
        let context = self.context(&head);
        log::unread(context.request_id(), error);
        context.refusal(error)
    }

    /// Responds to a CORS preflight. No authentication is required.
    fn preflight(&self, context: &Context, head: &Parts) -> Result<Response<Bytes>, Refusal> {
        self.keys(context, head)?;
        let rules = self.cors_rules(context.account())?;
        Ok(cors::preflight(&head.headers, &rules)?)
    }

    fn authenticate(&self, context: &Context, head: &Parts) -> Result<Principal, Refusal> {
        let keys = self.keys(context, head)?;
        let policies = |table: &TableName| {
            let view = self.engine.read();
            let table = view.table(context.account(), table)?;
            let policies = table.map(|table| view.table_acl(table.id)).transpose()?;
            Ok(policies)
        };
        auth::authenticate(keys, &self.tokens, context, head, policies).map_err(Refusal::Access)
    }

    /// The keys of the account that is asked.
    fn keys(&self, context: &Context, head: &Parts) -> Result<&[SharedKey], ServiceError> {
        context.check_version(&head.headers)?;
        let keys = self.accounts.get(context.account());
        Ok(keys.ok_or(ErrorCode::ResourceNotFound)?)
    }

    async fn handle(
        &self,
        context: &Context,
        principal: &Principal,
        head: Parts,
        body: Bytes,
        entry: &mut Entry,
    ) -> Result<Response<Bytes>, ServiceError> {
        // Only after authentication: the meaning of a URL is not revealed to unauthenticated clients.
        let request = ReceivedRequest {
            account: context.account().to_owned(),
            resource: ResourcePath::parse(context.resource())?,
            options: QueryOptions::parse(head.uri.query().unwrap_or_default())?,
            method: head.method,
            headers: head.headers,
            body,
        };
        // What it comes to is known already; here it is refused where it is malformed.
        request.options.timeout()?;
        let operation = Operation::decode(request)?;
        entry.names(handler::name(&operation));
        let handled = handler::handle(&self.engine, context, principal, operation);
        within(context.timeout(), self.timer, handled).await
    }

    fn context(&self, head: &Parts) -> Context {
        let address = Address::of(head, |account| self.accounts.contains_key(account));
        let context = Context::new(head, address, self.request_ids.next(), self.clock.now())
            .with_timer(self.timer);
        if !Cors::concerns(head) || cors::is_preflight(head) {
            return context;
        }
        // The request is not authenticated yet: made-up account names must not cause lookups.
        if !self.accounts.contains_key(context.account()) {
            return context;
        }
        // If the rules cannot be read, the response has no CORS headers, and the operation reports the error.
        let rules = log::span(&context).in_scope(|| self.cors_rules(context.account()));
        let rules = rules.unwrap_or_default();
        context.with_cors(Cors::of(head, &rules))
    }

    fn cors_rules(&self, account: &str) -> Result<Vec<CorsRule>, ServiceError> {
        let properties = self.engine.read().service_properties(account)?;
        Ok(properties.cors.unwrap_or_default())
    }
}

/// Refuses a large body that the credential is not good for, before it is read. A small one is read in any case, so that the
/// connection can go on.
fn authorize_head(
    principal: &Principal,
    context: &Context,
    head: &Parts,
) -> Result<(), ServiceError> {
    let length = head.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    if length.unwrap_or(0) <= SMALL_BYTES_MAX
        && !head.headers.contains_key(header::TRANSFER_ENCODING)
    {
        return Ok(());
    }
    let resource = ResourcePath::parse(context.resource())?;
    let options = QueryOptions::parse(head.uri.query().unwrap_or_default())?;
    principal.authorize_head(head, &resource, &options)
}

/// A request whose sender is known, and whose body is yet to come.
#[derive(Debug)]
pub(crate) struct Admitted {
    context: Context,
    entry: Entry,
    head: Parts,
    principal: Principal,
}

/// Why a request gets no other answer: the two kinds look different on the wire.
enum Refusal {
    /// It is not known who asks.
    Access(ServiceError),
    /// What is asked for cannot be done.
    Operation(ServiceError),
}

impl From<ServiceError> for Refusal {
    fn from(error: ServiceError) -> Self {
        Self::Operation(error)
    }
}

impl Refusal {
    fn answer(&self, context: &Context, entry: Entry) -> Response<Bytes> {
        let (response, error) = match self {
            Self::Access(error) => (context.access_refusal(error), error),
            Self::Operation(error) => (context.refusal(error), error),
        };
        entry.answered(&response, Some(error));
        response
    }
}
