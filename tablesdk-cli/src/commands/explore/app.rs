//! [`App`]: what all requests of the page share.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use tablesdk::{Error, RetryPolicy, TableServiceClient};

use super::gate::Gate;
use super::in_turn::InTurn;
use super::kit::Kit;
use super::settings::Settings;
use super::staged::{Keeper, Staged};
use super::tables::Tables;
use crate::error::AnyError;

/// The state that all requests of the page share.
pub(super) struct App {
    pub(super) service: TableServiceClient,
    pub(super) rights: Rights,
    pub(super) gate: Gate,
    pub(super) tables: Tables,
    /// Their methods that change or read the file are jobs.
    pub(super) settings: InTurn<Settings>,
    pub(super) keeper: Keeper,
    staged: Mutex<Staged>,
    /// That of the server for tests whose tables are shown.
    pub(super) kit: Option<Arc<Kit>>,
}

impl App {
    pub(super) fn new(
        service: TableServiceClient,
        rights: Rights,
        kit: Option<Kit>,
        port: u16,
    ) -> Result<Self, AnyError> {
        Ok(Self {
            tables: Tables::new(&service),
            settings: InTurn::new(Settings::of_account(service.endpoint().as_str()))?,
            service,
            rights,
            kit: kit.map(Arc::new),
            gate: Gate::new(port)?,
            keeper: Keeper::default(),
            staged: Mutex::default(),
        })
    }

    /// The host of the account, and its port if it is not the usual one.
    pub(super) fn host(&self) -> &str {
        let host = self.service.endpoint().as_str().split('/').nth(2);
        host.unwrap_or_default()
    }

    /// The kind of the service, as far as its host name shows it.
    pub(super) fn kind(&self) -> &'static str {
        match self.host() {
            host if host.contains(".table.cosmos.") => "Cosmos DB",
            host if host.contains(".table.core.") => "Azure Storage",
            _ => "emulator",
        }
    }

    /// The staged changes, for a moment.
    pub(super) fn staged(&self) -> MutexGuard<'_, Staged> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of the tables, read once for all parts of a page.
    pub(super) fn names(self: &Arc<Self>) -> Names {
        let app = Arc::clone(self);
        let names = async move { app.tables.names().await.map_err(Arc::new) };
        names.boxed().shared()
    }

    /// The name of the account, as people call it.
    pub(super) fn account(&self) -> &str {
        let endpoint = self.service.endpoint();
        endpoint.account().unwrap_or_else(|| endpoint.host())
    }
}

/// The names of the tables, once the service has answered.
pub(super) type Names = Shared<BoxFuture<'static, Result<Vec<String>, Arc<Error>>>>;

/// The retries of a read: a person sees soon that the service refuses, and for how long.
pub(super) fn read_retries() -> RetryPolicy {
    RetryPolicy::exponential().attempts(2)
}

/// Returns true if a host is an address of this machine. An IPv6 address may have its brackets.
pub(super) fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    address.is_ok_and(|address| address.is_loopback())
}

/// The rights of the page: it can change tables, or only read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    Write,
    /// Started with `--read-only`.
    ReadOnly,
    /// The account is not on this machine, and `--write` is missing.
    Remote,
}

impl Rights {
    pub(super) fn new(service: &TableServiceClient, read_only: bool, write: bool) -> Self {
        let host = service.endpoint().host();
        let is_here = host.eq_ignore_ascii_case("localhost") || is_loopback(host);
        match () {
            () if read_only => Self::ReadOnly,
            () if write || is_here => Self::Write,
            () => Self::Remote,
        }
    }

    /// Why nothing is changed; `None` if changes are allowed.
    pub(super) const fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Write => None,
            Self::ReadOnly => Some("the page was started with --read-only"),
            Self::Remote => Some("the account is not on this machine: --write allows changes"),
        }
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.refusal() {
            None => f.write_str("changes are allowed"),
            Some(reason) => write!(f, "read only, since {reason}"),
        }
    }
}
