//! Reads the pages of a query, one at a time.

use bytes::Bytes;
use http::Response as HttpResponse;
use tablesdk_protocol::EntityKey;
use tablesdk_protocol::continuation::EntityContinuation;
use tablesdk_protocol::operation::{get_entity, query_entities};
use tablesdk_protocol::wire::json::{JsonEntity, JsonError, read_entity, read_page};

use super::request::{OPERATION, QueryRequest};
use crate::action::write::exactly_once::is_marker;
use crate::entity::TableEntity;
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun, PagedOperation, Table};
use crate::query::{Continuations, Selection, SelectionError};

/// A query that is read page by page.
pub(in crate::action) struct PagedQuery<S> {
    table: Table,
    request: QueryRequest,
    point: Option<EntityKey>,
    selection: S,
    /// The operation that all pages belong to, for its report and its span.
    operation: PagedOperation,
    continuations: Continuations<EntityContinuation>,
}

/// The items of a page, and where the next one starts.
type Fetched<T> = (Vec<T>, Option<EntityContinuation>);

impl<S> PagedQuery<S> {
    pub(in crate::action) fn new(table: Table, request: QueryRequest, selection: S) -> Self {
        Self {
            table,
            point: request.point(),
            request,
            selection,
            operation: PagedOperation::default(),
            continuations: Continuations::new(),
        }
    }

    pub(in crate::action) const fn request(&self) -> &QueryRequest {
        &self.request
    }

    /// Ends the operation and reports it.
    pub(in crate::action) fn end(&self) {
        self.operation.end(None);
    }

    /// Ends the operation with an error about its responses as a whole.
    pub(in crate::action) fn fail(&self, error: Error) -> Error {
        let error = self.operation.annotate(error);
        self.operation.end(Some(&error));
        self.table.pipeline.locate(error.with_operation(OPERATION))
    }

    /// Reads a page of at most `top` items.
    pub(in crate::action) async fn page<E: TableEntity>(
        &self,
        top: Option<usize>,
        continuation: Option<EntityContinuation>,
    ) -> Result<Fetched<S::Item>, Error>
    where
        S: Selection<E>,
    {
        let endpoint = self.table.endpoint();
        let point = self.point.as_ref().filter(|_| continuation.is_none());
        let request = match point {
            Some(key) => self.request.for_entity(key, endpoint),
            None => self.request.for_page(top, continuation.clone(), endpoint)?,
        };
        let mut run = self.table.resume(OPERATION, &self.operation);
        run.report().access = Some(self.request.access());
        let response = run.send(Effect::Read, &request).await;
        let page = match (point, response) {
            (Some(key), response) => {
                let items = self.read_entity::<E>(&mut run, response);
                items.map_err(|error| error.with_key(key))
            }
            (None, Ok(response)) => self.read_page::<E>(&mut run, continuation.as_ref(), response),
            (None, Err(error)) => Err(error),
        };
        run.pause(&self.operation, page)
    }

    fn read_entity<E: TableEntity>(
        &self,
        run: &mut OperationRun<'_>,
        response: Result<HttpResponse<Bytes>, Error>,
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
        let entity = read_entity(&content).map_err(|error| run.annotate(Error::response(error)))?;
        let item = self.selection.read(&entity);
        let item = item.map_err(|error| run.annotate(unselected(error)))?;
        run.report().pages += 1;
        Ok((vec![item], None))
    }

    fn read_page<E: TableEntity>(
        &self,
        run: &mut OperationRun<'_>,
        sent: Option<&EntityContinuation>,
        response: HttpResponse<Bytes>,
    ) -> Result<Fetched<S::Item>, Error>
    where
        S: Selection<E>,
    {
        let query_entities::Response {
            content,
            continuation,
        } = query_entities::Response::decode(response);
        let mut items = Vec::new();
        let read = read_page(&content, |entity| {
            // Markers are skipped in the client. A filter against them would cost every query something, and a type that cannot be
            // read from a marker would fail for as long as the marker exists.
            let row_key = entity.text("RowKey");
            if row_key.is_ok_and(|key| key.is_some_and(is_marker)) {
                return Ok(());
            }
            items.push(self.selection.read(entity).map_err(|error| Unreadable {
                error: unselected(error),
                key: entity_key(entity),
            })?);
            Ok(())
        });
        read.map_err(|Unreadable { error, key }| {
            let error = run.annotate(error);
            match key {
                Some(key) => error.with_key(&key),
                None => error,
            }
        })?;
        run.report().pages += 1;
        run.report().entities += items.len();
        let advanced = self.continuations.advance(sent, continuation.as_ref());
        advanced.map_err(|error| run.annotate(Error::response(error)))?;
        Ok((items, continuation))
    }
}

/// The closure of the caller failed, or the entity does not fit the type.
fn unselected(error: SelectionError) -> Error {
    match error {
        SelectionError::CalledOff(error) => Error::called_off(error),
        SelectionError::Entity(error) => Error::entity(error),
        error @ SelectionError::Rows { .. } => Error::input(error),
    }
}

/// The key of an entity that could not be read, if the response contains it.
fn entity_key(entity: &JsonEntity<'_>) -> Option<EntityKey> {
    let text = |name| entity.text(name).ok().flatten();
    EntityKey::new(text("PartitionKey")?, text("RowKey")?).ok()
}

/// The error of a page, and the key of the entity that it is about.
struct Unreadable {
    error: Error,
    key: Option<EntityKey>,
}

impl From<JsonError> for Unreadable {
    fn from(error: JsonError) -> Self {
        Self {
            error: Error::response(error),
            key: None,
        }
    }
}
