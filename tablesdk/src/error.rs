//! The one error of this crate: what was tried, on which entity, and what came of it. Never holds a key or a signature.

use std::error::Error as StdError;
use std::fmt;

use http::StatusCode;
use tablesdk_protocol::{Delivery, EntityKey, ErrorCode, ServiceError, TransportError};

/// Why an operation failed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use tablesdk::{TableEntity, TableServiceClient};
/// # #[derive(Debug, TableEntity)]
/// # struct Employee { #[table(partition_key)] department: String, #[table(row_key)] id: String }
/// # let server = tablesdk_server::TableServer::start().await?;
/// let service = TableServiceClient::from_connection_string(&server.connection_string())?;
/// let table = service.table("Employees");
/// table.create().await?;
/// let employee = Employee { department: "Sales".into(), id: "1".into() };
/// table.insert(&employee).await?;
///
/// let error = table.insert(&employee).await.unwrap_err();
/// assert!(error.is_conflict());
/// assert_eq!(error.code().unwrap().as_str(), "EntityAlreadyExists");
/// # Ok(())
/// # }
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    operation: Option<&'static str>,
    key: Option<EntityKey>,
    request_id: Option<String>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Message(String),
    Service(ServiceError),
    Transport(TransportError),
    Other(Box<dyn StdError + Send + Sync>),
}

/// What kind of failure an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A connection string, endpoint or credential cannot be used.
    Configuration,
    /// A name, key, value or filter breaks a rule of the service. Nothing was sent.
    Input,
    /// The service's answer cannot be read, or an entity in it is not of the type it is read into.
    Response,
    /// The service answered with an error.
    Service,
    /// No answer came.
    Transport,
}

impl Error {
    pub(crate) fn configuration(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Configuration, Source::Other(source.into()))
    }

    pub(crate) fn configuration_message(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Configuration, Source::Message(message.into()))
    }

    pub(crate) fn input(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Input, Source::Other(source.into()))
    }

    pub(crate) fn response(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Response, Source::Other(source.into()))
    }

    pub(crate) fn service(error: ServiceError) -> Self {
        Self::new(ErrorKind::Service, Source::Service(error))
    }

    pub(crate) fn transport(error: TransportError) -> Self {
        Self::new(ErrorKind::Transport, Source::Transport(error))
    }

    pub(crate) fn with_operation(mut self, operation: &'static str) -> Self {
        self.0.operation.get_or_insert(operation);
        self
    }

    pub(crate) fn with_key(mut self, key: &EntityKey) -> Self {
        self.0.key.get_or_insert_with(|| key.clone());
        self
    }

    pub(crate) fn with_request_id(mut self, request_id: Option<String>) -> Self {
        self.0.request_id = request_id;
        self
    }

    fn new(kind: ErrorKind, source: Source) -> Self {
        Self(Box::new(Inner {
            kind,
            operation: None,
            key: None,
            request_id: None,
            source,
        }))
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed, such as `insert entity`.
    pub fn operation(&self) -> Option<&'static str> {
        self.0.operation
    }

    /// The entity that the operation was about, where it was about one.
    pub fn key(&self) -> Option<&EntityKey> {
        self.0.key.as_ref()
    }

    /// The service's code, when the service answered.
    pub fn code(&self) -> Option<&ErrorCode> {
        self.service_error().map(ServiceError::code)
    }

    /// The status of the service's answer, when it was an error.
    pub fn status(&self) -> Option<StatusCode> {
        self.service_error().map(ServiceError::status)
    }

    /// The service's name for the request: what its support asks for.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// The entity or table does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(StatusCode::NOT_FOUND)
    }

    /// The entity or table exists already, or the table is being deleted.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(StatusCode::CONFLICT)
    }

    /// The entity was changed since it was read: its ETag is another now.
    pub fn is_precondition_failed(&self) -> bool {
        self.status() == Some(StatusCode::PRECONDITION_FAILED)
    }

    /// The credential does not hold, or does not cover the operation.
    pub fn is_denied(&self) -> bool {
        matches!(
            self.status(),
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        )
    }

    /// The service asks for patience: 503 `ServerBusy`, or 429 on Cosmos DB.
    pub fn is_throttled(&self) -> bool {
        matches!(
            self.status(),
            Some(StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
        )
    }

    /// No answer came, but the service may have carried the operation out.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(&self.0.source, Source::Transport(error) if error.delivery() == Delivery::MaybeSent)
    }

    fn service_error(&self) -> Option<&ServiceError> {
        match &self.0.source {
            Source::Service(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            kind,
            operation,
            key,
            request_id,
            source,
        } = &*self.0;
        if let Some(operation) = operation {
            f.write_str(operation)?;
            if let Some(key) = key {
                write!(f, " {key}")?;
            }
            f.write_str(": ")?;
        }
        match source {
            Source::Message(message) => f.write_str(message)?,
            // The service's own words are the message; they have no further cause.
            Source::Service(error) => fmt::Display::fmt(error, f)?,
            Source::Transport(_) => f.write_str("no answer from the service")?,
            Source::Other(_) => f.write_str(match kind {
                ErrorKind::Configuration => "the client cannot be set up",
                ErrorKind::Response => "the answer cannot be read",
                _ => "refused before anything was sent",
            })?,
        }
        if let Some(id) = request_id {
            write!(f, " (request id {id})")?;
        }
        Ok(())
    }
}

/// The message with its causes: what `unwrap` and a failing test print.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut source = self.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.source {
            Source::Message(_) | Source::Service(_) => None,
            Source::Transport(error) => Some(error),
            Source::Other(error) => Some(error.as_ref()),
        }
    }
}
