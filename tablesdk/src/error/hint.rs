//! Hints for callers about a failure that has one usual cause: the end of the message. They never
//! contain a key or a signature.

use std::error::Error as StdError;
use std::io;

use tablesdk_protocol::{Endpoint, ErrorCode, ServiceError};

use super::{Error, ErrorKind, Inner, Source, find_cause};

impl Error {
    /// Adds the account whose key has signed the request, if the service did not accept the
    /// signature.
    pub(crate) fn with_account(mut self, account: &str) -> Self {
        if self.code() == Some(&ErrorCode::AuthenticationFailed) {
            self.0.account = Some(account.to_owned());
        }
        self
    }

    /// The hint about the failure, if it has one usual cause.
    pub(super) fn hint(&self) -> Option<String> {
        let Inner {
            kind,
            operation,
            endpoint,
            account,
            source,
            ..
        } = &*self.0;
        match source {
            Source::Service(error) if *kind == ErrorKind::Service => {
                let hint = operation.and_then(|operation| of_cosmos_db(error, operation));
                hint.or_else(|| of_response(error, account.as_deref()))
            }
            Source::Transport(error) if is_refused(error) => no_server(endpoint.as_ref()?),
            _ => None,
        }
    }
}

fn of_response(error: &ServiceError, account: Option<&str>) -> Option<String> {
    match (error.code(), account) {
        (ErrorCode::AuthenticationFailed, Some(account)) => Some(format!(
            "does the key belong to the account {account:?}, and is the clock of this machine right?"
        )),
        (ErrorCode::TableNotFound, _) => {
            Some("`create_table().if_missing()` creates it".to_owned())
        }
        _ => None,
    }
}

/// The hint for an error that only Azure Cosmos DB sends.
fn of_cosmos_db(error: &ServiceError, operation: &str) -> Option<String> {
    let is_setting = || {
        let mut settings = ["properties", "stats", "policy"].iter();
        settings.any(|setting| operation.contains(setting))
    };
    match (error.code(), error.message()) {
        (ErrorCode::InvalidInput, "One of the input values is invalid.")
            if operation.contains("merge") => Some(
            "Azure Cosmos DB has no `PATCH`: has the client `backend(Backend::Cosmos)`, if the host does not say what it is?".to_owned(),
        ),
        (ErrorCode::NotImplemented, "The requested operation is not supported.")
            if is_setting() => Some(
            "Azure Cosmos DB has no service properties, statistics or stored access policies".to_owned(),
        ),
        _ => None,
    }
}

/// Returns true if the peer refused the connection.
fn is_refused(error: &(dyn StdError + 'static)) -> bool {
    let cause: Option<&io::Error> = find_cause(error);
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

fn no_server(endpoint: &Endpoint) -> Option<String> {
    let url = endpoint.as_str();
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    authority.ends_with(EMULATOR_PORT).then(|| {
        "no server runs on the port of the emulator: start `tablesdk-server` or Azurite".to_owned()
    })
}

const EMULATOR_PORT: &str = ":10002";
