//! Entity group transaction: changes that are applied together, or one query.
//!
//! Each change is decoded, and its response written, as in the handler of its operation. The engine
//! decides which changes may be combined. See
//! <https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions>.

use bytes::Bytes;
use http::{HeaderValue, Response as HttpResponse};
use tablesdk_protocol::header::{CONTENT_ID, PREFERENCE_APPLIED};
use tablesdk_protocol::operation::batch::{
    self, Change, ChangeResponses, Query, Received, Refusal,
};
use tablesdk_protocol::operation::delete_entity;
use tablesdk_protocol::wire::json::StoredReader;
use tablesdk_protocol::{ETag, EntityKey, ErrorCode, ServiceError};
use tokio::task::yield_now;

use super::{Handled, OperationError, commit};
use super::{get_entity, insert_entity, query_entities, update_entity};
use crate::engine::{self, Action, Command, Engine, Failure, Outcome, Properties};
use crate::request::auth::{Principal, Write};
use crate::request::context::Context;
use crate::request::log::RefusedPart;
use crate::service::table_case;
use crate::storage::StorageError;

pub(super) async fn handle(
    engine: &Engine,
    context: &Context,
    principal: &Principal,
    request: &Received,
) -> Handled {
    match request {
        Received::Query(query) => {
            // SERVICE: a client without the permission is refused the whole request, not one of its
            // parts.
            if let Ok(query) = query {
                principal.authorize_read(query.table())?;
            }
            let read = match query {
                Ok(query) => read(engine, context, principal, query).await,
                Err(error) => Err(error.clone().into()),
            };
            Ok(match read {
                Ok(response) => query_response(context, response),
                Err(error) => {
                    let error = error.unmapped(context);
                    let refusal = Refusal { index: 0, error };
                    let refused = context.part_refusal(&part_error(context, &refusal, false));
                    let response = query_response(context, refused);
                    with_refused_part(context, response, refusal)
                }
            })
        }
        Received::Changes {
            changes,
            content_ids,
            refusal,
            surplus,
        } => {
            let is_readable = refusal.is_none();
            let carried_out =
                carry_out(engine, context, principal, changes, refusal.clone()).await?;
            if context.flavor.has_gateway() {
                return gateway_response(context, carried_out);
            }
            let content_ids = if context.flavor.echoes_content_ids() {
                content_ids
            } else {
                &[][..]
            };
            let refused = || context.part_refusal(&ErrorCode::InvalidInput.into());
            let more = std::iter::repeat_with(refused).take(*surplus).collect();
            Ok(match carried_out {
                Ok(applied) => applied.responses(context, content_ids)?.into_response(more),
                Err(refusal) => {
                    let is_only = changes.len() == 1 && is_readable;
                    let refused = refused_change(context, changes, content_ids, &refusal, is_only);
                    let response = batch::refusal_response(context.request_id, refused, more);
                    with_refused_part(context, response, refusal)
                }
            })
        }
    }
}

/// The response to changes by way of a gateway.
// SERVICE: what Cosmos DB says to another set of changes is not known, and such a set is ignored.
fn gateway_response(context: &Context, carried_out: Result<Applied<'_>, Refusal>) -> Handled {
    let id = context.request_id;
    match carried_out {
        Ok(applied) => Ok(batch::cosmos_changes_response(id, applied.parts(context)?)),
        Err(refusal) if *refusal.error.code() == ErrorCode::InvalidDuplicateRow => {
            Err(refusal.to_error().into())
        }
        Err(refusal) => {
            let refused = context.part_refusal(&part_error(context, &refusal, false));
            let response = batch::cosmos_changes_response(id, [context.finish(refused)]);
            Ok(with_refused_part(context, response, refusal))
        }
    }
}

async fn read(engine: &Engine, context: &Context, principal: &Principal, query: &Query) -> Handled {
    table_case::require_table(engine, context, query.table()).await?;
    match query {
        Query::Entities(request) => {
            query_entities::handle(engine, context, principal, request).await
        }
        Query::Entity(request) => {
            principal.authorize_get(request)?;
            get_entity::handle(engine, context, request).await
        }
    }
}

fn refused_change(
    context: &Context,
    changes: &[Change],
    content_ids: &[Option<Bytes>],
    refusal: &Refusal,
    is_only: bool,
) -> HttpResponse<Bytes> {
    let error = part_error(context, refusal, is_only);
    let mut response = context.part_refusal(&error);
    let headers = response.headers_mut();
    if let Some(Some(id)) = content_ids.get(refusal.index)
        && let Ok(id) = HeaderValue::from_bytes(id)
    {
        headers.insert(CONTENT_ID, id);
    }
    // SERVICE: the header is present, although a refusal never has the content, but for that of a
    // missing table.
    if let Some(Change::Insert(request)) = changes.get(refusal.index)
        && *error.code() != ErrorCode::TableNotFound
        && let Some(prefer) = request.prefer.as_str()
    {
        headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static(prefer));
    }
    response
}

/// The response to a query.
fn query_response(context: &Context, part: HttpResponse<Bytes>) -> HttpResponse<Bytes> {
    if context.flavor.has_gateway() {
        let part = context.finish(part);
        batch::cosmos_query_response(context.request_id, part)
    } else {
        batch::query_response(context.request_id, part)
    }
}

/// The error of a refused operation, with its index in front of the message.
fn part_error(context: &Context, refusal: &Refusal, is_only: bool) -> ServiceError {
    if is_only && is_unindexed(context, &refusal.error) {
        return refusal.error.clone();
    }
    if !context.flavor.has_gateway() {
        return refusal.to_error();
    }
    let error = context.flavor.error(refusal.error.clone());
    // SERVICE: recorded for a missing table, which is not an operation's own.
    if *refusal.error.code() == ErrorCode::TableNotFound {
        return error;
    }
    let error = Refusal { error, ..*refusal }.to_error();
    let message = format!("{}\n", error.message());
    ServiceError::new(error.code().clone(), message).with_status(error.status())
}

/// Returns true if the error of the only operation of a batch has no index in front of its message.
// SERVICE: recorded for the entity that is missing and for its version; that an existing one keeps
// the index is assumed.
fn is_unindexed(context: &Context, error: &ServiceError) -> bool {
    let is_about_entity = matches!(
        error.code(),
        ErrorCode::ResourceNotFound
            | ErrorCode::UpdateConditionNotSatisfied
            | ErrorCode::ConditionNotMet
    );
    is_about_entity && context.flavor.omits_index_of_only_operation()
}

/// Carries out the changes, unless a change after them is refused already. Returns their responses,
/// or the refusal of one.
async fn carry_out<'r>(
    engine: &Engine,
    context: &Context,
    principal: &Principal,
    changes: &'r [Change],
    mut refusal: Option<Refusal>,
) -> Result<Result<Applied<'r>, Refusal>, OperationError> {
    let Some(table) = changes.first().map(Change::table) else {
        let nothing = Applied {
            changes: Vec::new(),
            outcome: Outcome {
                timestamp: context.now,
            },
        };
        return Ok(refusal.map_or(Ok(nothing), Err));
    };
    // SERVICE: as for a query.
    for change in changes {
        principal.authorize(&Write::of_change(context.flavor, change, None))?;
    }
    if let Err(error) = table_case::require_table(engine, context, table).await {
        let error = error.unmapped(context);
        return Ok(Err(Refusal { index: 0, error }));
    }
    let mut ready = Vec::with_capacity(changes.len());
    let mut reader = StoredReader::default();
    let mut read_bytes = 0;
    for (index, change) in changes.iter().enumerate() {
        read_bytes += body_bytes(change);
        if read_bytes > SLICE_BYTES {
            // Other tasks of the thread do not wait for the whole of a large batch.
            read_bytes = 0;
            yield_now().await;
        }
        let read = if change.table() == table {
            Ready::read(engine, context, change, &mut reader).await
        } else {
            // SERVICE: the code is assumed.
            Err(ErrorCode::CommandsInBatchActOnDifferentPartitions.into())
        };
        let authorized = match read {
            Ok(change) => {
                // The key of an insert is known only now.
                let write = Write::of_change(context.flavor, change.change, Some(&change.key));
                if let Err(denied) = principal.authorize(&write) {
                    match engine.require_table(context.account(), table).await {
                        Ok(()) => return Err(denied.into()),
                        Err(missing) => Err(missing.into()),
                    }
                } else {
                    Ok(change)
                }
            }
            Err(error) => Err(error),
        };
        match authorized {
            Ok(change) => ready.push(change),
            Err(error) => {
                let error = error.unmapped(context);
                refusal = Some(Refusal { index, error });
                break;
            }
        }
    }
    let commands: Vec<_> = ready.iter().map(Ready::command).collect();
    let command = Command::Batch(table, &commands);
    let failure = match refusal {
        None => match commit(engine, context, &command).await {
            Ok(outcome) => {
                return Ok(Ok(Applied {
                    changes: ready,
                    outcome,
                }));
            }
            Err(failure) => failure,
        },
        // SERVICE: the error is that of the first change that fails, whether it is malformed or
        // cannot be applied.
        Some(refusal) => match engine
            .dry_run(context.account(), &command, context.now)
            .await
        {
            Ok(()) => return Ok(Err(refusal)),
            Err(failure) => failure,
        },
    };
    match failure {
        Failure::RejectedChange(index, rejection) => Ok(Err(Refusal {
            index,
            error: OperationError::from(rejection).unmapped(context),
        })),
        failure => Err(failure.into()),
    }
}

/// The changes that a batch applied.
struct Applied<'a> {
    changes: Vec<Ready<'a>>,
    outcome: Outcome,
}

impl Applied<'_> {
    fn responses(
        &self,
        context: &Context,
        content_ids: &[Option<Bytes>],
    ) -> Result<ChangeResponses, StorageError> {
        let mut responses = ChangeResponses::new(context.request_id, self.changes.len());
        let etag = ETag::from_timestamp(self.outcome.timestamp);
        for (index, change) in self.changes.iter().enumerate() {
            responses.name_next(content_ids.get(index).cloned().flatten());
            change.respond(&mut responses, context, self.outcome, &etag)?;
        }
        Ok(responses)
    }

    /// The responses as those to requests of their own, each with a name of the server.
    fn parts(&self, context: &Context) -> Result<Vec<HttpResponse<Bytes>>, StorageError> {
        let changes = self.changes.iter().enumerate();
        let parts = changes.map(|(index, change)| {
            let mut part = context.finish(change.response(context, self.outcome)?);
            part.headers_mut()
                .insert(CONTENT_ID, HeaderValue::from(index + 1));
            Ok(part)
        });
        parts.collect()
    }
}

/// The response with what was refused, for the log.
fn with_refused_part(
    context: &Context,
    mut response: HttpResponse<Bytes>,
    refusal: Refusal,
) -> HttpResponse<Bytes> {
    let (index, error) = (refusal.index, context.flavor.error(refusal.error));
    response
        .extensions_mut()
        .insert(RefusedPart { index, error });
    response
}

/// The length of the entity in the body of a change.
const fn body_bytes(change: &Change) -> usize {
    match change {
        Change::Delete(_) => 0,
        Change::Insert(request) => request.entity.as_bytes().len(),
        Change::Update(request) => request.entity.as_bytes().len(),
    }
}

/// A change whose body was read.
struct Ready<'a> {
    change: &'a Change,
    key: EntityKey,
    properties: Properties,
}

impl<'a> Ready<'a> {
    async fn read(
        engine: &Engine,
        context: &Context,
        change: &'a Change,
        reader: &mut StoredReader<'a>,
    ) -> Result<Self, OperationError> {
        let (key, properties) = match change {
            Change::Delete(request) => (request.key.clone(), Properties::NONE),
            Change::Insert(request) => {
                insert_entity::read(engine, context, request, reader).await?
            }
            Change::Update(request) => {
                let properties = update_entity::read(engine, context, request, reader).await?;
                (request.key.clone(), properties)
            }
        };
        Ok(Self {
            change,
            key,
            properties,
        })
    }

    fn command(&self) -> engine::Change<'_> {
        let action = match self.change {
            Change::Delete(request) => Action::Delete(&request.if_match),
            Change::Insert(_) => Action::Insert(&self.properties),
            Change::Update(request) => Action::Update {
                mode: request.mode,
                if_match: request.if_match.as_ref(),
                properties: &self.properties,
            },
        };
        let key = &self.key;
        engine::Change { key, action }
    }

    fn response(
        &self,
        context: &Context,
        outcome: Outcome,
    ) -> Result<HttpResponse<Bytes>, StorageError> {
        match self.change {
            Change::Delete(_) => Ok(delete_entity::Response.encode()),
            Change::Insert(request) => {
                insert_entity::response(context, request, &self.key, &self.properties, outcome)
            }
            Change::Update(request) => Ok(update_entity::response(context, request, outcome)),
        }
    }

    fn respond(
        &self,
        responses: &mut ChangeResponses,
        context: &Context,
        outcome: Outcome,
        etag: &ETag,
    ) -> Result<(), StorageError> {
        match self.change {
            Change::Delete(_) => responses.deleted(),
            Change::Update(_) => responses.updated(etag),
            Change::Insert(request) => {
                let echo =
                    insert_entity::echo(context, request, &self.key, &self.properties, outcome)?;
                let echo = echo.as_deref().map(|echo| (request.level, echo));
                let entity = (&request.table, &self.key);
                responses.inserted(context.endpoint(), entity, etag, request.prefer, echo);
            }
        }
        Ok(())
    }
}

/// How many bytes of bodies are read before other tasks get the thread: more than usual batches
/// have.
const SLICE_BYTES: usize = 128 * 1024;
