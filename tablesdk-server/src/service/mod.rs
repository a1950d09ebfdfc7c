//! The steps of a request in the server, in order: authentication, decoding of the operation, and
//! the response.
//!
//! This module handles HTTP messages, but knows no sockets and no runtime. With a socket or
//! without, the head of a request passes through [`Service::admit`], then its body through
//! [`Service::respond`]; the body need not be read before the head is admitted. No content of a
//! request makes the service panic.

mod clean_up;
mod contents;
mod error;
mod faulty;
mod front_page;
mod handler;
mod query_budget;
mod table_case;
mod unknown_outcome;

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, header};
use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::operation::{Operation, QueryOptions, ReceivedRequest};
use tablesdk_protocol::{
    Clock, CorsRule, ErrorCode, ResourcePath, ServiceError, SignedIdentifier, TableName,
};
use tokio::time::Instant;
use tracing::Instrument as _;

use self::error::OperationError;
use crate::engine::{Engine, Failure, Paging, View};
use crate::flavor::Flavor;
use crate::request::address::Address;
use crate::request::auth::{self, Principal, Tokens};
use crate::request::connection::Connection;
use crate::request::context::{Context, RequestIds};
use crate::request::cors::{self, Cors};
use crate::request::handler::Handler;
use crate::request::log::{self, RequestRecord};
use crate::request::memory::SMALL_BYTES_MAX;
use crate::request::metrics::Metrics;
use crate::storage::{AnyStorage, Checkpoint, Closed, StorageError, StorageOptions};
use crate::testing::{Op, TestKit};
use crate::time::time_limit::{Timer, within};

/// The options of the layers below the sockets.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// At least one.
    pub(crate) accounts: Vec<SharedKey>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The clock of clients, if it may differ from that of the server: the date of a request may be
    /// of either.
    pub(crate) client_clock: Option<Arc<dyn Clock>>,
    /// The clock by which the socket dates responses that have no date; `None` without a socket.
    pub(crate) socket_clock: Option<Arc<dyn Clock>>,
    pub(crate) flavor: Flavor,
    /// True if the log contains the keys of entities.
    pub(crate) logs_entity_keys: bool,
    /// True if each request is logged at the level INFO, and not at DEBUG.
    pub(crate) logs_requests_at_info: bool,
    pub(crate) paging: Paging,
    pub(crate) storage: StorageOptions,
    /// How long the name of a deleted table stays reserved.
    pub(crate) table_name_hold: Duration,
    pub(crate) tokens: Tokens,
}

/// The table service of some accounts.
pub(crate) struct Service {
    /// The keys of each account, in the order of the names. A server has few accounts, often one.
    accounts: Vec<(Arc<str>, Vec<SharedKey>)>,
    clock: Arc<dyn Clock>,
    client_clock: Option<Arc<dyn Clock>>,
    socket_clock: Option<Arc<dyn Clock>>,
    engine: Arc<Engine>,
    flavor: Flavor,
    kit: Arc<TestKit>,
    logs_entity_keys: bool,
    logs_requests_at_info: bool,
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

    /// A service with the tables of this storage.
    ///
    /// # Errors
    ///
    /// When the storage has other contents.
    pub(crate) fn with_storage(
        options: Options,
        storage: impl Into<AnyStorage>,
    ) -> io::Result<Self> {
        let mut accounts: BTreeMap<Arc<str>, Vec<SharedKey>> = BTreeMap::new();
        for key in options.accounts {
            let keys = accounts.entry(key.account().into()).or_default();
            keys.push(key);
        }
        let engine = Engine::new(storage, Arc::clone(&options.clock), options.paging);
        let engine = engine.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let engine = engine.with_name_hold(options.table_name_hold);
        let engine = Arc::new(engine.with_flavor(options.flavor));
        Ok(Self {
            accounts: accounts.into_iter().collect(),
            clock: options.clock,
            client_clock: options.client_clock,
            socket_clock: options.socket_clock,
            engine,
            flavor: options.flavor,
            kit: Arc::default(),
            logs_entity_keys: options.logs_entity_keys,
            logs_requests_at_info: options.logs_requests_at_info,
            metrics: Metrics::default(),
            request_ids: RequestIds::new(),
            timer: Timer::Unknown,
            tokens: options.tokens,
        })
    }

    /// Continues the work that an earlier process left. A timer ends operations that wait for too
    /// long.
    #[must_use]
    pub(crate) fn resumed(self, timer: Timer) -> Self {
        clean_up::resume(&self.engine, timer);
        Self { timer, ..self }
    }

    pub(crate) const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Replaces all tables by those of a checkpoint, and continues the clean-up that it needs.
    /// Returns false, without an effect, if the storage cannot.
    pub(crate) fn restore(&self, checkpoint: &Checkpoint) -> bool {
        let is_restored = self.engine.restore(checkpoint);
        clean_up::resume(&self.engine, self.timer);
        is_restored
    }

    /// Deletes all tables, drops the requests that faults hold back, and lets timestamps begin
    /// again. Returns false, without an effect, if the storage cannot.
    pub(crate) fn reset(&self) -> bool {
        if self.is_persistent() {
            return false;
        }
        self.kit.drop_held();
        self.kit.faults().clear_partitions();
        let is_reset = self.engine.reset();
        clean_up::resume(&self.engine, self.timer);
        is_reset
    }

    /// All tables of an account as text.
    pub(crate) fn dump(&self, account: &str) -> Result<String, StorageError> {
        contents::dump(&self.engine, account)
    }

    /// All tables of an account as lines of JSON.
    pub(crate) fn save(&self, account: &str) -> Result<Vec<u8>, StorageError> {
        contents::save(&self.engine, account)
    }

    /// Adds the tables and entities of lines of JSON to those of an account.
    pub(crate) async fn load(&self, account: &str, lines: &[u8]) -> io::Result<()> {
        contents::load(&self.engine, account, lines).await
    }

    pub(crate) const fn kit(&self) -> &Arc<TestKit> {
        &self.kit
    }

    pub(crate) const fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Connects to a storage that other servers share.
    pub(crate) async fn reach_storage(&self) -> Result<(), StorageError> {
        if self.engine.is_shared() {
            self.engine.is_writable().await?;
        }
        Ok(())
    }

    /// Returns the reason if writes are not possible any more.
    pub(crate) async fn is_writable(&self) -> Result<(), StorageError> {
        self.engine.is_writable().await
    }

    /// The service that the server behaves like.
    pub(crate) const fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// Returns true if the tables are in a data directory.
    pub(crate) fn is_persistent(&self) -> bool {
        self.engine.is_persistent()
    }

    /// Resolves when the storage is closed, which is after the service is dropped.
    pub(crate) fn closed(&self) -> Closed {
        self.engine.closed()
    }

    /// Responds to a request with the URL that it has on the wire, from the connection in its
    /// extensions.
    #[cfg(test)]
    pub(crate) async fn call(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        let connection = head.extensions.get::<Connection>().cloned();
        match self.admit(head, &connection.unwrap_or_default()).await {
            Ok(admitted) => self.respond(admitted, body).await,
            Err(response) => *response,
        }
    }
}

impl Handler for Service {
    type Admitted = Box<Admitted>;

    /// Authenticates a request.
    async fn admit(
        &self,
        head: Parts,
        connection: &Connection,
    ) -> Result<Box<Admitted>, Box<Response<Bytes>>> {
        let (mut context, mut record, options) = self.begin(&head, connection);
        let serves = |account: &str| self.account(account).is_some();
        if let Some(page) = front_page::respond(&head, &context, serves) {
            let response = context.finish(page);
            record.responded(&response, None);
            return Err(Box::new(response));
        }
        let evaluated = self.evaluate_cors(&mut context, &head, &record).await;
        if let (Err(error), true) = (evaluated, self.engine.is_shared()) {
            // Nothing is written whose response the page could not see.
            return Err(Box::new(refuse(&context, &mut record, &error)));
        }
        if cors::is_preflight(&head) {
            let preflight = self.preflight(&context, &head);
            let preflight = preflight.instrument(record.span().clone()).await;
            return Err(Box::new(match preflight {
                Ok(response) => {
                    let response = context.finish(response);
                    record.responded(&response, None);
                    response
                }
                Err(error) => refuse(&context, &mut record, &error),
            }));
        }
        let mut policies = Policies::default();
        let authenticated = loop {
            let authenticated = record.span().in_scope(|| {
                let principal = self.authenticate(&context, &head, &options, &mut policies)?;
                authorize_head(&principal, &context, &head, &options)?;
                Ok::<_, Refusal>(principal)
            });
            match policies.fetch_missing().await {
                Ok(true) => {}
                Ok(false) => break authenticated,
                Err(error) => {
                    let report = || OperationError::from(error).report(&context);
                    break Err(Refusal::Unauthenticated(record.span().in_scope(report)));
                }
            }
        };
        let response = match authenticated {
            Ok(principal) => {
                context.is_authenticated();
                return Ok(Box::new(Admitted {
                    context,
                    record,
                    head,
                    options,
                    principal,
                }));
            }
            Err(Refusal::Unauthenticated(error)) => {
                let response = context.unauthenticated(&error);
                record.responded(&response, Some(&error));
                response
            }
            Err(Refusal::Rejected(error)) => refuse(&context, &mut record, &error),
        };
        let status = response.status().as_u16();
        self.metrics.responded("", status, Duration::ZERO);
        self.kit.refused(&context, &response);
        Err(Box::new(response))
    }

    async fn respond(&self, mut admitted: Box<Admitted>, body: Bytes) -> Response<Bytes> {
        // They stay where they are: a future is copied with all that it holds.
        let Admitted {
            context,
            record,
            head,
            options,
            principal,
        } = &mut *admitted;
        record.received(&body);
        let body_bytes = body.len();
        let began = Instant::now();
        let operation = record
            .span()
            .in_scope(|| decode(context, head, options, body));
        let mut observed = match &operation {
            Ok(operation) => self.kit.request(context, operation, body_bytes),
            Err(_) => None,
        };
        if let Ok(Operation::GetUserDelegationKey(_)) = &operation {
            let keys = self.account(context.account()).map(|(_, keys)| keys);
            context.account_key = keys.and_then(|keys| keys.first()).cloned().map(Box::new);
        }
        let handled = match (&operation, &mut observed) {
            (Ok(operation), None) => {
                record.names(op_name(operation));
                let handled = handler::handle(&self.engine, context, principal, operation);
                let handled = pin!(handled.instrument(record.span().clone()));
                within(context.timeout, self.timer, began, handled).await
            }
            (Ok(operation), Some(observed)) => {
                record.names(op_name(operation));
                let handled = faulty::carry_out(self, context, principal, operation, observed);
                Box::pin(handled.instrument(record.span().clone())).await
            }
            (Err(error), _) => Err(error.clone().into()),
        };
        if context.cors.is_deferred() {
            let rules = match (context.cors_rules.take(), &handled) {
                (Some(rules), _) => rules,
                // No cache keeps it, and the database may be what failed.
                (None, Err(error)) if error.is_server_error() => Arc::default(),
                _ => self.cors_rules(context).await.unwrap_or_default(),
            };
            context.cors = Cors::without_origin(&rules);
        }
        let mut response = match handled {
            Ok(response) => {
                let response = context.finish(response);
                record.responded(&response, None);
                response
            }
            Err(error) => {
                let error = record.span().in_scope(|| error.report(context));
                if let Some(observed) = &mut observed {
                    observed.failed(&error);
                }
                let mut response = refuse(context, record, &error);
                if self.engine.is_shared() {
                    unknown_outcome::finish(&mut response, &error, operation.as_ref().ok());
                }
                response
            }
        };
        let status = response.status().as_u16();
        self.metrics
            .responded(record.operation(), status, began.elapsed());
        if let Some(observed) = observed {
            observed.responded(&mut response, self.clock.now());
        }
        response
    }

    fn refuse(&self, mut admitted: Box<Admitted>, error: &ServiceError) -> Response<Bytes> {
        refuse(&admitted.context, &mut admitted.record, error)
    }

    async fn refuse_head(
        &self,
        head: &Parts,
        connection: &Connection,
        error: &ServiceError,
    ) -> Response<Bytes> {
        let (mut context, mut record, _) = self.begin(head, connection);
        // Without its rules, the response has no CORS headers.
        let _ = self.evaluate_cors(&mut context, head, &record).await;
        refuse(&context, &mut record, error)
    }

    fn refuse_unread(&self, error: &ServiceError) -> Response<Bytes> {
        let (head, ()) = Request::new(()).into_parts();
        let (context, _) = self.context(&head, &Connection::default());
        log::unread(context.request_id, error);
        context.refusal(error)
    }
}

impl Service {
    /// Responds to a CORS preflight. No authentication is required.
    async fn preflight(
        &self,
        context: &Context,
        head: &Parts,
    ) -> Result<Response<Bytes>, ServiceError> {
        self.keys(context, head)?;
        let rules = self.cors_rules(context).await?;
        cors::preflight(&head.headers, &rules)
    }

    fn authenticate(
        &self,
        context: &Context,
        head: &Parts,
        options: &Result<QueryOptions, ServiceError>,
        policies: &mut Policies,
    ) -> Result<Principal, Refusal> {
        let keys = self.keys(context, head)?;
        let policies = |table: &TableName| {
            let policies = policies.of(&self.engine, context.account(), table);
            policies.map_err(|error| OperationError::from(error).report(context))
        };
        let options = options.as_ref().ok();
        auth::authenticate(keys, &self.tokens, context, head, options, policies)
            .map_err(|error| Refusal::Unauthenticated(self.flavor.authentication_error(error)))
    }

    /// The keys of the account that the URL names.
    fn keys(&self, context: &Context, head: &Parts) -> Result<&[SharedKey], ServiceError> {
        context.check_version(&head.headers)?;
        let account = self.account(context.account());
        let (_, keys) = account.ok_or(ErrorCode::ResourceNotFound)?;
        Ok(keys)
    }

    fn account(&self, name: &str) -> Option<&(Arc<str>, Vec<SharedKey>)> {
        let place = self
            .accounts
            .binary_search_by(|(account, _)| (**account).cmp(name));
        self.accounts.get(place.ok()?)
    }

    /// The facts of a request without its CORS headers, its record in the log, and the options of
    /// its query string.
    fn begin(
        &self,
        head: &Parts,
        connection: &Connection,
    ) -> (Context, RequestRecord, Result<QueryOptions, ServiceError>) {
        let (context, options) = self.context(head, connection);
        let record = RequestRecord::new(head, &context);
        (context, record, options)
    }

    /// Adds the CORS headers of a request, or none if the rules cannot be read.
    ///
    /// Before authentication: a browser hides even a refusal from the page unless it has these
    /// headers. They reveal no more than a preflight of the same page, which needs no
    /// authentication.
    async fn evaluate_cors(
        &self,
        context: &mut Context,
        head: &Parts,
        record: &RequestRecord,
    ) -> Result<(), ServiceError> {
        // The request is not authenticated yet: made-up account names must not cause lookups.
        let may_have_rules = Cors::concerns(head)
            && !cors::is_preflight(head)
            && self.account(context.account()).is_some();
        if !may_have_rules {
            return Ok(());
        }
        if self.engine.is_shared() && !head.headers.contains_key(header::ORIGIN) {
            // No page sees the response, so the rules matter to caches alone, and are not worth a
            // round trip of their own.
            context.cors = Cors::deferred();
            return Ok(());
        }
        let rules = match self.engine.cached_cors_rules(context.account()) {
            Some(rules) => rules,
            None => {
                let rules = self.cors_rules(context);
                rules.instrument(record.span().clone()).await?
            }
        };
        context.cors = Cors::of(head, &rules);
        Ok(())
    }

    /// The facts of a request, and the options of its query string, which is parsed only here.
    fn context(
        &self,
        head: &Parts,
        connection: &Connection,
    ) -> (Context, Result<QueryOptions, ServiceError>) {
        let options = QueryOptions::parse(head.uri.query().unwrap_or_default());
        let address = Address::of(head, connection.is_encrypted, |account| {
            let known = self.account(account);
            known.map(|(account, _)| Arc::clone(account))
        });
        let mut context = Context::new(
            head,
            options.as_ref().ok(),
            connection,
            address,
            self.request_ids.next(),
            self.clock.now(),
        );
        context.client_time = self.client_clock.as_deref().map(Clock::now);
        let socket_time = self.socket_clock.as_deref().map(Clock::now);
        context.is_dated = socket_time.is_some_and(|time| context.now.abs_diff(time) >= DATE_STEP);
        context.flavor = self.flavor;
        context.timer = self.timer;
        context.logs_entity_keys = self.logs_entity_keys;
        context.logs_requests_at_info = self.logs_requests_at_info;
        context.names_retry_after = self.engine.is_shared();
        (context, options)
    }

    async fn cors_rules(&self, context: &Context) -> Result<Arc<[CorsRule]>, ServiceError> {
        let rules = self.engine.cors_rules(context.account()).await;
        rules.map_err(|error| OperationError::from(error).report(context))
    }
}

/// Dates of responses have no fractions of a second.
const DATE_STEP: Duration = Duration::from_secs(1);

/// Decodes a request, whose headers and options it takes. This follows authentication, so
/// unauthenticated clients do not learn the meaning of a URL.
fn decode(
    context: &Context,
    head: &mut Parts,
    options: &mut Result<QueryOptions, ServiceError>,
    body: Bytes,
) -> Result<Operation, ServiceError> {
    let resource = ResourcePath::parse(context.resource())?;
    let options = std::mem::replace(options, Ok(QueryOptions::default()))?;
    check_flavor(context.flavor, &resource, &options, body.len())?;
    let request = ReceivedRequest {
        account: Arc::clone(context.shared_account()),
        resource,
        options,
        method: std::mem::take(&mut head.method),
        headers: std::mem::take(&mut head.headers),
        body,
        rules: context.flavor.request_rules(),
    };
    // The context has the value already; a malformed one is refused here.
    request.options.timeout()?;
    Operation::decode(request)
}

/// Refuses what a flavor does not have.
fn check_flavor(
    flavor: Flavor,
    resource: &ResourcePath,
    options: &QueryOptions,
    body_bytes: usize,
) -> Result<(), ServiceError> {
    let is_setting = || matches!(options.get("comp"), Some("acl" | "properties" | "stats"));
    if !flavor.has_settings() && is_setting() {
        return Err(ErrorCode::NotImplemented.into());
    }
    // SERVICE: neither of the others was seen to have it.
    if !flavor.has_user_delegation() && options.get("comp") == Some("userdelegationkey") {
        return Err(ErrorCode::NotImplemented.into());
    }
    match resource {
        ResourcePath::Batch if body_bytes > flavor.batch_bytes_max() => {
            Err(ErrorCode::RequestBodyTooLarge.into())
        }
        ResourcePath::Misplaced(..) if !flavor.routes_misplaced() => {
            let message = "Request url is invalid.";
            Err(ServiceError::new(ErrorCode::InvalidInput, message))
        }
        _ => Ok(()),
    }
}

/// Refuses a large body that the credential does not permit, before it is read. A small body is
/// read in any case, so that the connection can be used again.
fn authorize_head(
    principal: &Principal,
    context: &Context,
    head: &Parts,
    options: &Result<QueryOptions, ServiceError>,
) -> Result<(), ServiceError> {
    let length = head.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    if length.unwrap_or(0) <= SMALL_BYTES_MAX
        && !head.headers.contains_key(header::TRANSFER_ENCODING)
    {
        return Ok(());
    }
    let resource = ResourcePath::parse(context.resource())?;
    let options = options.as_ref().map_err(Clone::clone)?;
    principal.authorize_head(context.flavor, head, &resource, options)
}

/// The name of an operation in the log and the metrics.
fn op_name(operation: &Operation) -> &'static str {
    Op::of(operation).map_or("unnamed", Op::as_str)
}

/// Logs and returns the response to a rejected request.
fn refuse(context: &Context, record: &mut RequestRecord, error: &ServiceError) -> Response<Bytes> {
    let error = context.flavor.error(error.clone());
    let response = context.refusal(&error);
    record.responded(&response, Some(&error));
    response
}

/// An authenticated request whose body is not read yet.
#[derive(Debug)]
pub(crate) struct Admitted {
    context: Context,
    record: RequestRecord,
    head: Parts,
    options: Result<QueryOptions, ServiceError>,
    principal: Principal,
}

/// The stored access policies that a signature names. Few requests need them, so the view is made
/// when they are.
#[derive(Default)]
struct Policies(Option<View>);

impl Policies {
    /// The policies of a table; `None` if it does not exist.
    fn of(
        &mut self,
        engine: &Engine,
        account: &str,
        table: &TableName,
    ) -> Result<Option<Arc<[SignedIdentifier]>>, StorageError> {
        let view = self.0.get_or_insert_with(|| engine.view());
        let policies = match view.require_table(account, table) {
            Ok(table) => view.policies(table).map(Some),
            Err(Failure::Storage(error)) => Err(error),
            Err(_) => Ok(None),
        };
        match policies {
            // They are fetched, and then the request is authenticated again.
            Err(StorageError::NotFetched) => Ok(None),
            policies => policies,
        }
    }

    /// Returns true if policies had to be fetched. Then the request must be authenticated again.
    async fn fetch_missing(&self) -> Result<bool, StorageError> {
        match &self.0 {
            Some(view) => view.fetch_missing().await,
            None => Ok(false),
        }
    }
}

/// Why the head of a request is refused: the two kinds of responses have different headers.
enum Refusal {
    Unauthenticated(ServiceError),
    Rejected(ServiceError),
}

impl From<ServiceError> for Refusal {
    fn from(error: ServiceError) -> Self {
        Self::Rejected(error)
    }
}
