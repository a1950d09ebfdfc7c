//! The only error type of this crate: the operation, the entity, and the outcome. It never holds a
//! key or a signature.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tablesdk_protocol::{Endpoint, EntityKey, ErrorCode, ServiceError, TransportError};

use crate::entity::EntityError;

mod availability;
mod current_state;
mod fake;
mod hint;
pub(crate) mod message;

pub use current_state::{CurrentEntity, CurrentState};
pub(crate) use message::{find_cause, push_causes};

/// The error of a closure that you give to [`modify`](crate::TableClient::modify) or
/// [`resolve`](crate::action::QueryEntities::resolve): any error.
pub type ClosureError = Box<dyn StdError + Send + Sync>;

/// Why an operation failed.
///
/// The message (`{}`) is one line: the verb that was called, the table, the account, the key, and
/// why it failed, with all causes. The [guide](crate::guide::error_messages) shows the messages of
/// real failures. `{:?}` is the same message.
///
/// [`source`](std::error::Error::source) returns the cause, if there is one, and
/// [`downcast_ref`](Error::downcast_ref) finds a cause by its type. The message contains those of
/// all causes: a program that prints an error need not append its sources.
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
/// table.create_table().await?;
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

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    operation: Option<&'static str>,
    endpoint: Option<Endpoint>,
    table: Option<Arc<str>>,
    key: Option<EntityKey>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    source: Source,
    attempts: u32,
    elapsed: Duration,
    ambiguous: bool,
    current: Option<CurrentState>,
    batch_index: Option<usize>,
    next_page: Option<String>,
    batch_size: Option<usize>,
    /// The error of a pattern about a rider of a change.
    details: Option<Arc<dyn StdError + Send + Sync>>,
    /// The account whose key was not accepted.
    account: Option<String>,
}

#[derive(Clone, Debug)]
enum Source {
    /// The error of a credential.
    Credential(Arc<dyn StdError + Send + Sync>),
    /// The status of a response that is not the service's.
    Foreign(StatusCode),
    Message(String),
    Service(ServiceError),
    Timeout(String),
    Transport(Arc<TransportError>),
    Other(Arc<dyn StdError + Send + Sync>),
}

/// The kind of failure of an [`Error`].
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use tablesdk::ErrorKind;
///
/// let error = table.insert(&Employee::new("Sales", "1", "Ada")).await.unwrap_err();
/// match error.kind() {
///     ErrorKind::Service => println!("refused: {}", error.code().expect("the service gave one")),
///     ErrorKind::OutcomeUnknown => println!("perhaps: {:?}", error.current()),
///     ErrorKind::Transport => println!("nothing happened: try again later"),
///     _ => return Err(error.into()),
/// }
/// # assert_eq!(error.kind(), ErrorKind::Service);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The closure that was given to the operation, such as that of
    /// [`modify`](crate::TableClient::modify), returned an error: [`Error::downcast_ref`] returns
    /// it. Nothing was written.
    Aborted,
    /// A connection string, endpoint or credential cannot be used.
    Configuration,
    /// The [credential](crate::credential::TokenCredential) gave no token, or the provider of a
    /// keyring gave no key: [`Error::downcast_ref`] returns its error. The request that needed it
    /// was not sent.
    Credential,
    /// An entity in a response does not fit the requested type, such as a struct with a field of
    /// another type. An operation that reads before it writes, such as `modify`, ended at the read.
    Data,
    /// A name, key, value or filter breaks a rule of the service. Nothing was sent.
    Input,
    /// The client no longer holds a [lease](crate::lease::Lease), or cannot be sure of it.
    LeaseLost,
    /// [`one`](crate::action::QueryEntities::one) found several entities.
    NotUnique,
    /// An object store failed, or does not have an object as it was put. [`Error::downcast_ref`]
    /// returns the `object_store::Error`, if there is one.
    #[cfg(feature = "object-store")]
    ObjectStore,
    /// A write was sent, and its outcome is ambiguous: no response arrived, or the response to a
    /// retry does not show whose write took effect, or a success response lacks what every response
    /// of the service has. The write may or may not have been carried out: [`Error::current`]
    /// returns the current state of the entity.
    OutcomeUnknown,
    /// The service's response cannot be read. A write that ends with this error was carried out;
    /// only its result cannot be returned. An operation that reads before it writes, such as
    /// `modify`, may have ended at the read.
    Response,
    /// The service responded with an error, or another component, such as a proxy, responded in its
    /// place. In the second case there is a [`status`](Error::status) and no [`code`](Error::code).
    Service,
    /// No response arrived, or none from the service, and nothing was changed: the operation only
    /// reads, was not sent, or is known not to have been carried out.
    Transport,
}

impl Error {
    pub(crate) fn configuration(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(
            ErrorKind::Configuration,
            Source::Other(Arc::from(source.into())),
        )
    }

    pub(crate) fn configuration_message(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Configuration, Source::Message(message.into()))
    }

    pub(crate) fn input(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Input, Source::Other(Arc::from(source.into())))
    }

    pub(crate) fn response(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Response, Source::Other(Arc::from(source.into())))
    }

    /// The error of an entity in a response. An entity without a key or a version is not an entity
    /// of the service.
    pub(crate) fn entity(error: EntityError) -> Self {
        let kind = if error.problem().is_of_response() {
            ErrorKind::Response
        } else {
            ErrorKind::Data
        };
        Self::new(kind, Source::Other(Arc::new(error)))
    }

    /// The error of an entity that a pattern of the client stores.
    pub(crate) fn data(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Data, Source::Other(Arc::from(source.into())))
    }

    pub(crate) fn lease_lost(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(
            ErrorKind::LeaseLost,
            Source::Other(Arc::from(source.into())),
        )
    }

    pub(crate) fn not_unique(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(
            ErrorKind::NotUnique,
            Source::Other(Arc::from(source.into())),
        )
    }

    /// The failure of an object store.
    #[cfg(feature = "object-store")]
    pub(crate) fn object_store(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(
            ErrorKind::ObjectStore,
            Source::Other(Arc::from(source.into())),
        )
    }

    /// The error that a closure of the caller returned.
    pub(crate) fn aborted(source: Box<dyn StdError + Send + Sync>) -> Self {
        Self::new(ErrorKind::Aborted, Source::Other(Arc::from(source)))
    }

    pub(crate) fn credential(source: impl Into<Arc<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Credential, Source::Credential(source.into()))
    }

    /// A response of the service.
    pub(crate) fn service_response(error: ServiceError) -> Self {
        Self::new(ErrorKind::Service, Source::Service(error))
    }

    /// A response that is not the service's.
    pub(crate) fn foreign(status: StatusCode) -> Self {
        Self::new(ErrorKind::Service, Source::Foreign(status))
    }

    pub(crate) fn transport(error: TransportError) -> Self {
        Self::new(ErrorKind::Transport, Source::Transport(Arc::new(error)))
    }

    pub(crate) fn timeout(message: String) -> Self {
        Self::new(ErrorKind::Transport, Source::Timeout(message))
    }

    pub(crate) fn with_attempts(mut self, attempts: u32, elapsed: Duration) -> Self {
        self.0.attempts = attempts;
        self.0.elapsed = elapsed;
        self
    }

    pub(crate) fn with_ambiguous(mut self, ambiguous: bool) -> Self {
        self.0.ambiguous = ambiguous;
        self
    }

    /// Returns true if an attempt may have been carried out.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.0.ambiguous
    }

    /// The error of a write that is known not to have been carried out.
    pub(crate) fn into_not_done(mut self) -> Self {
        self.0.ambiguous = false;
        match (self.0.kind, &self.0.source) {
            (ErrorKind::OutcomeUnknown, Source::Service(_)) => self.0.kind = ErrorKind::Service,
            (ErrorKind::OutcomeUnknown | ErrorKind::Response, _) => {
                self.0.kind = ErrorKind::Transport;
            }
            _ => return self,
        }
        // It is about a request of the library that came before the write.
        self.0.current = None;
        self
    }

    /// The error of a write whose outcome stays ambiguous.
    pub(crate) fn into_outcome_unknown(mut self, current: CurrentState) -> Self {
        self.0.kind = ErrorKind::OutcomeUnknown;
        self.0.current = Some(current);
        self
    }

    /// Adds what is there instead of what was to be written.
    pub(crate) fn with_current(mut self, current: CurrentState) -> Self {
        self.0.current = Some(current);
        self
    }

    pub(crate) fn with_batch_index(mut self, index: usize) -> Self {
        self.0.batch_index = Some(index);
        self
    }

    /// Adds the number of changes of the batch to the error of one of them.
    pub(crate) fn with_batch_size(mut self, size: usize) -> Self {
        self.0.batch_size = Some(size);
        self
    }

    /// The error of one change of a batch.
    pub(crate) fn for_change(mut self, operation: &'static str) -> Self {
        self.0.operation = Some(operation);
        self
    }

    pub(crate) fn with_operation(mut self, operation: &'static str) -> Self {
        self.0.operation.get_or_insert(operation);
        self
    }

    /// Adds where the operation took place, unless the error says so already.
    pub(crate) fn with_place(mut self, endpoint: &Endpoint, table: Option<&Arc<str>>) -> Self {
        if self.0.endpoint.is_none() {
            self.0.endpoint = Some(endpoint.clone());
            self.0.table = table.cloned();
        }
        self
    }

    pub(crate) fn with_key(mut self, key: &EntityKey) -> Self {
        self.0.key.get_or_insert_with(|| key.clone());
        self
    }

    /// Adds what a pattern says about what goes along with a change.
    pub(crate) fn with_details(mut self, details: impl StdError + Send + Sync + 'static) -> Self {
        self.0.details = Some(Arc::new(details));
        self
    }

    /// Returns true if the error is about a rider of the change, and not about the entity.
    pub(crate) fn has_details(&self) -> bool {
        self.0.details.is_some()
    }

    /// The error of a pattern about a rider of the change.
    pub(crate) fn details<D: StdError + 'static>(&self) -> Option<&D> {
        self.0.details.as_ref()?.downcast_ref()
    }

    pub(crate) fn with_next_page(mut self, token: Option<impl fmt::Display>) -> Self {
        self.0.next_page = token.map(|token| token.to_string());
        self
    }

    pub(crate) fn with_request_id(mut self, request_id: Option<String>) -> Self {
        self.0.request_id = request_id;
        self
    }

    /// The same failure, for another caller that waited for it.
    pub(crate) fn for_another_caller(&self) -> Self {
        Self(self.0.clone())
    }

    fn new(kind: ErrorKind, source: Source) -> Self {
        Self(Box::new(Inner {
            kind,
            operation: None,
            endpoint: None,
            table: None,
            key: None,
            request_id: None,
            retry_after: None,
            source,
            attempts: 0,
            elapsed: Duration::ZERO,
            ambiguous: false,
            current: None,
            batch_index: None,
            next_page: None,
            batch_size: None,
            details: None,
            account: None,
        }))
    }

    /// The kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The verb that was called, with its object, such as `insert entity` or
    /// `upsert_replace entity`; for a change of a batch, its own verb.
    pub fn operation(&self) -> Option<&'static str> {
        self.0.operation
    }

    /// The table that the operation was about, where it was about one.
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }

    /// The URL of the account that the operation was about, such as
    /// `https://acct.table.core.windows.net`. It is absent before there is a client, such as in the
    /// error of a connection string.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.0.endpoint.as_ref()
    }

    /// The entity that the operation was about, where it was about one.
    pub fn key(&self) -> Option<&EntityKey> {
        self.0.key.as_ref()
    }

    pub(crate) fn without_batch_index(mut self) -> Self {
        self.0.batch_index = None;
        self
    }

    /// The index of the change of a batch that the error is about, as in a slice: counted from 0.
    /// The message of the error counts from 1: `change 2 of 5` has the index 1.
    pub fn batch_index(&self) -> Option<usize> {
        self.0.batch_index
    }

    /// The token of the next page, when [`page`](crate::action::QueryEntities::page) returned an
    /// entity that cannot be read: for [`page_after`](crate::action::QueryEntities::page_after). It
    /// is absent after the last page.
    pub fn next_page(&self) -> Option<&str> {
        self.0.next_page.as_deref()
    }

    /// Returns true if the error is about one entity of a response, and says nothing about the
    /// others.
    pub(crate) fn is_about_one_entity(&self) -> bool {
        matches!(self.kind(), ErrorKind::Aborted | ErrorKind::Data)
    }

    /// How many requests were sent, retries included. For an operation of several requests, all of
    /// them count. For a query, only the requests for the page that failed count.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// The time from the first request on, waits included. For a query, only the time for the page
    /// that failed.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }

    /// The current state of the entity, after a write with an [unknown
    /// outcome](ErrorKind::OutcomeUnknown); and the entity that the target of a
    /// [move](crate::TableClient::move_to) has under the key, where the move is refused for it.
    pub fn current(&self) -> Option<&CurrentState> {
        self.0.current.as_ref()
    }

    /// The service's error code, when the service responded. When the outcome is unknown, it is the
    /// code of the last response, which may be about the operation's own first attempt.
    pub fn code(&self) -> Option<&ErrorCode> {
        self.service_error().map(ServiceError::code)
    }

    /// The status of the response, when the response was an error.
    pub fn status(&self) -> Option<StatusCode> {
        match self.0.source {
            Source::Foreign(status) => Some(status),
            _ => self.service_error().map(ServiceError::status),
        }
    }

    /// The service's id for the request, which Azure support asks for.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// The service responded that the entity does not exist. For a missing table,
    /// [`is_table_not_found`](Self::is_table_not_found) is true, and not this. A proxy's 404 does
    /// not count.
    pub fn is_not_found(&self) -> bool {
        self.is_missing()
            && matches!(
                self.code(),
                Some(ErrorCode::ResourceNotFound | ErrorCode::EntityNotFound)
            )
    }

    /// The service responded that the table does not exist. A proxy's 404 does not count.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// let misspelled = service.table("Employes");
    /// let error = misspelled.get::<Employee>(Employee::key("Sales", "1")).await.unwrap_err();
    /// assert!(error.is_table_not_found() && !error.is_not_found());
    /// assert_eq!(error.table(), Some("Employes"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_table_not_found(&self) -> bool {
        self.is_missing() && self.code() == Some(&ErrorCode::TableNotFound)
    }

    /// The service responded that something does not exist: the entity, its table, or a table that
    /// was to be deleted.
    pub(crate) fn is_missing(&self) -> bool {
        self.is_service_response(StatusCode::NOT_FOUND)
    }

    /// The entity or table exists already, or the table is being deleted.
    pub fn is_conflict(&self) -> bool {
        self.is_service_response(StatusCode::CONFLICT)
    }

    /// The entity has changed since it was read: its ETag is different now.
    pub fn is_precondition_failed(&self) -> bool {
        self.is_service_response(StatusCode::PRECONDITION_FAILED)
    }

    /// The entity is not as the write expected it: it exists, does not exist, or has another
    /// version.
    pub(crate) fn is_out_of_date(&self) -> bool {
        self.is_conflict() || self.is_not_found() || self.is_precondition_failed()
    }

    /// The credential is not valid, or does not cover the operation.
    pub fn is_denied(&self) -> bool {
        self.has_status(StatusCode::UNAUTHORIZED) || self.has_status(StatusCode::FORBIDDEN)
    }

    /// The first cause that is a `T`, such as the error that the closure of
    /// [`modify`](crate::TableClient::modify) returned.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// #[derive(Debug, PartialEq)]
    /// struct Retired;
    /// # impl std::fmt::Display for Retired {
    /// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    /// #         f.write_str("the employee has retired")
    /// #     }
    /// # }
    /// impl std::error::Error for Retired {}
    ///
    /// let key = Employee::key("Sales", "1");
    /// let modify = table.modify(key, |e| if e.id == "1" { Err(Retired.into()) } else { Ok(()) });
    /// let error = modify.await.unwrap_err();
    /// assert_eq!(error.downcast_ref(), Some(&Retired));
    /// # Ok(())
    /// # }
    /// ```
    pub fn downcast_ref<T: StdError + 'static>(&self) -> Option<&T> {
        find_cause(self.source()?)
    }

    /// The service may or may not have carried out the write.
    pub fn is_outcome_unknown(&self) -> bool {
        self.kind() == ErrorKind::OutcomeUnknown
    }

    /// The error in one word, for metrics that count errors by type.
    pub(crate) fn type_name(&self) -> String {
        match &self.0.source {
            Source::Credential(_) => "credential",
            Source::Foreign(status) => status.as_str(),
            Source::Service(error) => error.code().as_str(),
            Source::Timeout(_) => "timeout",
            Source::Transport(_) => "transport",
            Source::Message(_) | Source::Other(_) => match self.kind() {
                ErrorKind::Aborted => "aborted",
                ErrorKind::Configuration => "configuration",
                ErrorKind::Data => "data",
                ErrorKind::Input => "input",
                ErrorKind::LeaseLost => "lease_lost",
                ErrorKind::NotUnique => "not_unique",
                #[cfg(feature = "object-store")]
                ErrorKind::ObjectStore => "object_store",
                ErrorKind::Credential
                | ErrorKind::OutcomeUnknown
                | ErrorKind::Response
                | ErrorKind::Service
                | ErrorKind::Transport => "response",
            },
        }
        .to_owned()
    }

    /// Why the service has not responded with a code of its own, for a log. Contains nothing of the
    /// entity, of the response or of the credential.
    #[cfg(feature = "tracing")]
    pub(crate) fn reason(&self) -> Option<String> {
        Some(match &self.0.source {
            Source::Service(_) => return None,
            Source::Foreign(_) => "the response is not from the table service".to_owned(),
            Source::Timeout(message) => message.clone(),
            Source::Transport(error) => {
                let mut causes = String::new();
                push_causes(&mut causes, error);
                causes
            }
            Source::Credential(_) => "the credential gave no token".to_owned(),
            Source::Message(_) | Source::Other(_) => "the response cannot be read".to_owned(),
        })
    }

    /// Returns true if the response with that status is the result of the operation. When the
    /// outcome is unknown, no response is the result.
    fn has_status(&self, status: StatusCode) -> bool {
        self.kind() == ErrorKind::Service && self.status() == Some(status)
    }

    /// Returns true if the service itself responded with that status.
    fn is_service_response(&self, status: StatusCode) -> bool {
        self.has_status(status) && self.service_error().is_some()
    }

    fn service_error(&self) -> Option<&ServiceError> {
        match &self.0.source {
            Source::Service(error) => Some(error),
            _ => None,
        }
    }
}
