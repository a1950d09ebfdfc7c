//! Reads the pages of a query, one at a time.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::Response as HttpResponse;
use tablesdk_protocol::continuation::EntityContinuation;
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;
use tablesdk_protocol::operation::{get_entity, query_entities};
use tablesdk_protocol::wire::json::{
    EntityCursor, JsonEntity, JsonError, read_entity, read_entity_by, read_page_by,
};
use tablesdk_protocol::{EntityKey, KeyKind};

use super::request::{OPERATION, QueryRequest};
use crate::action::extend::extension::{Extensions, Open, Opened};
use crate::action::get_entity::send_for;
use crate::action::refusal::refused;
use crate::entity::encrypted::without_secrets;
use crate::entity::key::is_reserved;
use crate::entity::{EntityError, EntityProblem, TableEntity};
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun, PagedOperation, Table};
use crate::query::{Continuations, Selection, SelectionError, list};

/// A query that is read page by page.
pub(crate) struct PagedQuery<S> {
    table: Table,
    request: QueryRequest,
    extensions: Extensions,
    point: Option<EntityKey>,
    selection: S,
    skip: Option<Skip>,
    /// The operation that all pages belong to, for its report and its span.
    operation: PagedOperation,
    continuations: Continuations<EntityContinuation>,
}

/// Gets the error of each entity that is left out.
pub(crate) type Skip = Arc<dyn Fn(Error) + Send + Sync>;

/// The items of a page, or the errors of the entities in their places, and where the next page
/// starts.
type Fetched<T> = (Vec<Result<T, Error>>, Option<EntityContinuation>);

impl<S> PagedQuery<S> {
    pub(crate) fn new(
        table: Table,
        request: QueryRequest,
        extensions: Extensions,
        selection: S,
        skip: Option<Skip>,
    ) -> Self {
        Self {
            skip,
            table,
            point: request.point().filter(|_| !extensions.can_hide()),
            request,
            extensions,
            selection,
            operation: PagedOperation::default(),
            continuations: Continuations::new(),
        }
    }

    /// The fingerprints of the query, by which its page tokens are recognized; the first one is
    /// that of new tokens.
    pub(crate) fn fingerprints(&self) -> Result<Vec<u64>, Error> {
        let prints = self.request.fingerprints(&self.table, &self.extensions);
        prints.map_err(|error| self.locate(error.with_operation(OPERATION)))
    }

    /// The error of input that does not fit the query.
    pub(crate) fn refuse(
        &self,
        problem: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        self.locate(refused(OPERATION, problem))
    }

    /// Adds to an error which table it is about.
    pub(crate) fn locate(&self, error: Error) -> Error {
        self.table.pipeline.locate(error)
    }

    /// Ends the operation and reports it.
    pub(crate) fn end(&self) {
        self.operation.end(None);
    }

    /// Ends the operation with an error about its responses as a whole.
    pub(crate) fn fail(&self, error: Error) -> Error {
        let error = self.operation.annotate(error);
        self.operation.end(Some(&error));
        self.table.pipeline.locate(error.with_operation(OPERATION))
    }

    /// Reads a page of at most `top` items.
    pub(crate) async fn page<E: TableEntity>(
        &self,
        top: Option<usize>,
        continuation: Option<EntityContinuation>,
    ) -> Result<Fetched<S::Item>, Error>
    where
        S: Selection<E>,
    {
        let endpoint = self.table.endpoint();
        let point = self.point.as_ref().filter(|_| continuation.is_none());
        let query = match self.shaped().await {
            Ok(query) => query,
            Err(error) => return Err(self.fail(error)),
        };
        let request = match point {
            Some(key) => query.for_entity(key, endpoint),
            None => {
                let pipeline = &self.table.pipeline;
                query.for_page(top, continuation.clone(), pipeline)?
            }
        };
        let mut run = self.table.pipeline.resume(OPERATION, &self.operation);
        run.report().access = Some(self.request.access());
        let response = match point {
            Some(key) => send_for(&mut run, Effect::Read, key, &request).await,
            None => run.send(Effect::Read, &request).await,
        };
        let opens = match &response {
            Ok(response) => self.opens(response.body()).await,
            Err(_) => Ok(Vec::new()),
        };
        let opens = match opens {
            Ok(opens) => opens,
            Err(error) => {
                let error = run.annotate(error);
                return run.pause(&self.operation, Err(error));
            }
        };
        let page = match (point, response) {
            (Some(key), response) => {
                let items = self.read_entity::<E>(&mut run, response, &opens);
                items.map_err(|error| error.with_key(key))
            }
            (None, Ok(response)) => {
                let sent = continuation.as_ref();
                self.read_page::<E>(&mut run, sent, response, &opens)
            }
            (None, Err(error)) => Err(error),
        };
        run.pause(&self.operation, page)
    }

    fn read_entity<E: TableEntity>(
        &self,
        run: &mut OperationRun<'_>,
        response: Result<HttpResponse<Bytes>, Error>,
        opens: &[Box<dyn Open>],
    ) -> Result<Fetched<S::Item>, Error>
    where
        S: Selection<E>,
    {
        let response = match response {
            Ok(response) => response,
            // A missing table is an error, a missing entity is not.
            Err(error) if error.is_not_found() => {
                run.note_expected_error(&error);
                return Ok((Vec::new(), None));
            }
            Err(error) => return Err(error),
        };
        run.report().entities = 1;
        let content = get_entity::Response::decode(response).content;
        let item = if S::LISTS || !opens.is_empty() {
            let entity = read_entity(&content);
            entity.map(|entity| self.read_item::<E>(EntityCursor::new(&entity), opens))
        } else {
            read_entity_by(&content, |entity| self.read_item::<E>(entity, &[]))
        };
        let item = item.map_err(|error| run.annotate(Error::response(error)))?;
        let mut items = Vec::new();
        let accepted = self.accept(run, &mut items, item);
        accepted.map_err(|PageError(error)| error)?;
        run.report().pages += 1;
        Ok((items, None))
    }

    fn read_page<E: TableEntity>(
        &self,
        run: &mut OperationRun<'_>,
        sent: Option<&EntityContinuation>,
        response: HttpResponse<Bytes>,
        opens: &[Box<dyn Open>],
    ) -> Result<Fetched<S::Item>, Error>
    where
        S: Selection<E>,
    {
        let query_entities::Response {
            content,
            continuation,
        } = query_entities::Response::decode(response);
        // Growing would copy the items several times.
        let expected = (content.len() / ENTITY_BYTES).min(PAGE_ITEMS_MAX);
        let (mut items, mut entities) = (Vec::with_capacity(expected), 0);
        let read = read_page_by(
            &content,
            S::LISTS || !opens.is_empty(),
            |entity| {
                // Markers and the outbox are skipped in the client. A filter against them would
                // cost every query something, and a type that cannot be read from one would fail
                // for as long as one exists.
                let is_entity =
                    E::IS_VERBATIM || !key_text(&entity, KeyKind::RowKey).is_some_and(is_reserved);
                is_entity.then(|| self.read_item::<E>(entity, opens))
            },
            |item| match item {
                Some(item) => {
                    entities += 1;
                    self.accept(run, &mut items, item)
                }
                None => Ok(()),
            },
        );
        read.map_err(|PageError(error)| run.annotate(error))?;
        run.report().pages += 1;
        run.report().entities += entities;
        let advanced = self.continuations.advance(sent, continuation.as_ref());
        advanced.map_err(|error| run.annotate(Error::response(error)))?;
        Ok((items, continuation))
    }

    /// The query as it is sent now.
    async fn shaped(&self) -> Result<Cow<'_, QueryRequest>, Error>
    where
        S: Sync,
    {
        if !self.extensions.is_empty() {
            let filter = self.request.filter.as_ref();
            Box::pin(self.extensions.load(&self.table, filter)).await?;
        }
        self.request.shaped(&self.table, &self.extensions)
    }

    /// The readers of the entities of a response.
    async fn opens(&self, content: &Bytes) -> Result<Vec<Box<dyn Open>>, Error>
    where
        S: Sync,
    {
        if self.extensions.is_empty() {
            return Ok(Vec::new());
        }
        let response = Opened {
            content,
            is_page: self.point.is_none(),
            select: self.request.select.as_deref(),
        };
        Box::pin(self.extensions.open(&self.table, response)).await
    }

    fn read_item<E: TableEntity>(
        &self,
        mut entity: EntityCursor<'_, '_>,
        opens: &[Box<dyn Open>],
    ) -> Read<S::Item>
    where
        S: Selection<E>,
    {
        let item = if opens.is_empty() {
            self.selection.read(&mut entity)
        } else {
            list(&entity).and_then(|stored| self.read_opened::<E>(stored, opens))
        };
        item.map_err(|error| {
            let key = self.key_of(&entity);
            Box::new(Unread { error, key })
        })
    }

    fn read_opened<E: TableEntity>(
        &self,
        stored: &JsonEntity<'_>,
        opens: &[Box<dyn Open>],
    ) -> Result<S::Item, SelectionError>
    where
        S: Selection<E>,
    {
        let mut opened: Option<Bytes> = None;
        for open in opens {
            let open =
                |entity: &_| open.open(entity, self.point.as_ref(), self.request.partition());
            let next = match &opened {
                None => open(stored)?,
                Some(content) => open(&parsed(content)?)?,
            };
            opened = Some(next);
        }
        let content = opened.unwrap_or_default();
        let opened = parsed(&content)?;
        let item = self.selection.read(&mut EntityCursor::new(&opened));
        item.map_err(|error| match error {
            SelectionError::Entity(error) => without_secrets::<E>(error).into(),
            error => error,
        })
    }

    /// The key of an entity that cannot be read, if the response contains it.
    fn key_of(&self, entity: &EntityCursor<'_, '_>) -> Option<EntityKey> {
        let partition = key_text(entity, KeyKind::PartitionKey);
        let partition = partition.or_else(|| self.request.partition())?;
        EntityKey::new(partition, key_text(entity, KeyKind::RowKey)?).ok()
    }

    /// Adds an item: `Err`, with the key, where one entity is the fault, and nothing where such an
    /// entity is left out.
    fn accept<T>(
        &self,
        run: &mut OperationRun<'_>,
        items: &mut Vec<Result<T, Error>>,
        item: Read<T>,
    ) -> Result<(), PageError> {
        let Unread { error, key } = match item {
            Ok(item) => {
                items.push(Ok(item));
                return Ok(());
            }
            Err(unread) => *unread,
        };
        let error = run.annotate(unselected(error));
        let error = match key {
            Some(key) => error.with_key(&key),
            None => error,
        };
        if !error.is_about_one_entity() {
            return Err(PageError(error));
        }
        match &self.skip {
            Some(skip) => skip(error),
            None => {
                run.note_failure(&error);
                items.push(Err(error));
            }
        }
        Ok(())
    }
}

/// An item, or why there is none.
type Read<T> = Result<T, Box<Unread>>;

/// An entity that cannot be read.
struct Unread {
    error: SelectionError,
    key: Option<EntityKey>,
}

/// The text of a key, if it is one.
fn key_text<'e>(entity: &EntityCursor<'e, '_>, part: KeyKind) -> Option<&'e str> {
    entity.find(part.property()).ok().flatten()
}

fn parsed(content: &Bytes) -> Result<JsonEntity<'_>, EntityError> {
    read_entity(content).map_err(|error| unreadable(&error))
}

fn unreadable(error: &JsonError) -> EntityError {
    let reason = error.to_string();
    EntityProblem::Unreadable { reason }.into()
}

/// The closure of the caller failed, or the entity does not fit the type.
fn unselected(error: SelectionError) -> Error {
    match error {
        SelectionError::Aborted(error) => Error::aborted(error),
        SelectionError::Entity(error) => Error::entity(error),
        error @ (SelectionError::NotListed
        | SelectionError::Rows { .. }
        | SelectionError::Slot { .. }) => Error::input(error),
    }
}

/// The bytes of a small entity in a page.
const ENTITY_BYTES: usize = 256;

/// The error of a page as a whole.
struct PageError(Error);

impl From<JsonError> for PageError {
    fn from(error: JsonError) -> Self {
        Self(Error::response(error))
    }
}

impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}
