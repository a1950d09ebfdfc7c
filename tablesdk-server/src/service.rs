//! A request's way through the server, in its order: who asks, for what, and the answer.
//!
//! Speaks HTTP messages, but knows no sockets and no runtime: with a socket or without, everything passes through
//! [`Service::call`]. Nothing a request holds makes it panic.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::operation::{QueryOptions, ReceivedRequest};
use tablesdk_protocol::{Clock, CorsRule, ErrorCode, ResourcePath, ServiceError, TableName};

use crate::access::{self, Tokens};
use crate::address::Address;
use crate::builder::Options;
use crate::context::{Context, RequestIds};
use crate::cors::{self, Cors};
use crate::engine::Engine;
use crate::handler;
use crate::stamp::Stamp;
use crate::storage::MemoryStorage;
use crate::time_limit::within;

/// The table service of some accounts.
#[derive(Debug)]
pub(crate) struct Service {
    /// The keys of each account.
    accounts: HashMap<String, Vec<SharedKey>>,
    clock: Arc<dyn Clock>,
    engine: Engine,
    request_ids: RequestIds,
    tokens: Tokens,
}

impl Service {
    /// A service without tables. An account that is given twice has two keys.
    pub(crate) fn new(options: Options) -> Self {
        let mut accounts: HashMap<String, Vec<SharedKey>> = HashMap::new();
        for key in options.accounts {
            let keys = accounts.entry(key.account().to_owned()).or_default();
            keys.push(key);
        }
        let stamp = Stamp::new(Arc::clone(&options.clock));
        Self {
            accounts,
            clock: options.clock,
            engine: Engine::new(Box::new(MemoryStorage::default()), stamp)
                .with_name_hold(options.table_name_hold),
            request_ids: RequestIds::new(),
            tokens: options.tokens,
        }
    }

    /// Answers a request, whose URL is the one on the wire.
    pub(crate) async fn call(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        let context = self.context(&head);
        match self.answer(&context, head, body).await {
            Ok(response) => context.finish(response),
            Err(Refusal::Access(error)) => context.access_refusal(&error),
            Err(Refusal::Operation(error)) => context.refusal(&error),
        }
    }

    /// The answer to a request that was refused before it was read to its end.
    pub(crate) fn refuse(&self, head: &Parts, code: ErrorCode) -> Response<Bytes> {
        self.context(head).refusal(&code.into())
    }

    async fn answer(
        &self,
        context: &Context,
        head: Parts,
        body: Bytes,
    ) -> Result<Response<Bytes>, Refusal> {
        context.check_version(&head.headers)?;
        let Some(keys) = self.accounts.get(context.account()) else {
            return Err(Refusal::Operation(ErrorCode::ResourceNotFound.into()));
        };
        if cors::is_preflight(&head) {
            let rules = self.cors_rules(context.account())?;
            return Ok(cors::preflight(&head.headers, &rules)?);
        }
        let policies = |table: &TableName| {
            let view = self.engine.read();
            let table = view.table(context.account(), table)?;
            let policies = table.map(|table| view.table_acl(table.id)).transpose()?;
            Ok(policies)
        };
        let principal = access::authenticate(keys, &self.tokens, context, &head, policies);
        let principal = principal.map_err(Refusal::Access)?;
        // Only now: what a URL means is no business of somebody unknown.
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
        let handled = handler::handle(&self.engine, context, &principal, request);
        Ok(within(context.timeout(), handled).await?)
    }

    fn context(&self, head: &Parts) -> Context {
        let address = Address::of(head, |account| self.accounts.contains_key(account));
        let context = Context::new(head, address, self.request_ids.next(), self.clock.now());
        if !Cors::concerns(head) || cors::is_preflight(head) {
            return context;
        }
        // Where the rules cannot be read, the browser is told nothing, and the operation will say what is wrong.
        let rules = self.cors_rules(context.account()).unwrap_or_default();
        context.with_cors(Cors::of(head, &rules))
    }

    fn cors_rules(&self, account: &str) -> Result<Vec<CorsRule>, ServiceError> {
        let properties = self.engine.read().service_properties(account)?;
        Ok(properties.cors.unwrap_or_default())
    }
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
