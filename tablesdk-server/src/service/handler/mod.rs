//! The operations, one file each, with the names that they have in the protocol: from the decoded
//! request through the engine to the response.
//!
//! This module knows neither sockets nor signatures nor the storage format. `context.rs` adds the
//! headers common to all responses.

mod batch;
mod create_table;
mod delete_entity;
mod delete_table;
mod get_entity;
mod get_metadata;
mod get_table;
mod insert_entity;
mod query_entities;
mod query_tables;
mod service_properties;
mod service_stats;
mod table_acl;
mod update_entity;
mod user_delegation_key;

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use tablesdk_protocol::operation::batch::Received;
use tablesdk_protocol::operation::{EntityBody, EntityInput, Operation};
use tablesdk_protocol::wire::json::{EntityFormat, MetadataLevel, StoredKeys, StoredReader};
use tablesdk_protocol::{EntityKey, ErrorCode, ServiceError, TableName, ValueRef};

use super::error::OperationError;
use super::{query_budget, table_case};
use crate::engine::{Command, Engine, Failure, Outcome, Properties, View, entity_bytes};
use crate::flavor::Flavor;
use crate::request::address::Location;
use crate::request::auth::Principal;
use crate::request::context::Context;
use crate::storage::StorageError;

/// The response of an operation, without the headers that every response has.
pub(super) type Handled = Result<Response<Bytes>, OperationError>;

/// Carries out an operation.
pub(crate) async fn handle(
    engine: &Arc<Engine>,
    context: &Context,
    principal: &Principal,
    operation: &Operation,
) -> Handled {
    if context.location() == Location::Secondary && !is_read(operation) {
        let message = "Write operations are not allowed.";
        let code = ErrorCode::InsufficientAccountPermissions;
        return Err(ServiceError::new(code, message).into());
    }
    principal.authorize_operation(context.flavor, operation)?;
    table_case::require(engine, context, operation).await?;
    match operation {
        Operation::DeleteEntity(request) => delete_entity::handle(engine, context, request).await,
        Operation::GetEntity(request) => get_entity::handle(engine, context, request).await,
        Operation::InsertEntity(request) => {
            insert_entity::handle(engine, context, principal, request).await
        }
        Operation::UpdateEntity(request) => update_entity::handle(engine, context, request).await,
        // The futures of these are large. In memory of their own, they are not copied with the
        // small ones.
        _ => Box::pin(handle_large(engine, context, principal, operation)).await,
    }
}

/// Carries out an operation that is not on one entity.
async fn handle_large(
    engine: &Arc<Engine>,
    context: &Context,
    principal: &Principal,
    operation: &Operation,
) -> Handled {
    match operation {
        Operation::Batch(request) => batch::handle(engine, context, principal, request).await,
        Operation::CreateTable(request) => create_table::handle(engine, context, request).await,
        Operation::DeleteTable(request) => delete_table::handle(engine, context, request).await,
        Operation::GetMetadata(_) => Ok(get_metadata::handle(context)),
        Operation::GetServiceProperties(_) => service_properties::get(engine, context).await,
        Operation::GetServiceStats(_) => service_stats::handle(context),
        Operation::GetTable(request) => get_table::handle(engine, context, request).await,
        Operation::GetTableAcl(request) => table_acl::get(engine, context, request).await,
        Operation::GetUserDelegationKey(request) => {
            user_delegation_key::handle(context, principal, request)
        }
        Operation::Misplaced(table, error) => {
            engine.require_table(context.account(), table).await?;
            Err(error.clone().into())
        }
        Operation::QueryEntities(request) => {
            query_entities::handle(engine, context, principal, request).await
        }
        Operation::QueryTables(request) => query_tables::handle(engine, context, request).await,
        Operation::SetServiceProperties(request) => {
            service_properties::set(engine, context, request).await
        }
        Operation::SetTableAcl(request) => table_acl::set(engine, context, request).await,
        _ => Err(ErrorCode::NotImplemented.into()),
    }
}

/// Carries out the command of a request.
async fn commit(
    engine: &Engine,
    context: &Context,
    command: &Command<'_>,
) -> Result<Outcome, Failure> {
    query_budget::commit(engine, context.peer.is_some(), context.account(), command).await
}

/// Reads what a request asks for, as [`Engine::read`].
async fn read<T, E: From<StorageError>>(
    engine: &Engine,
    context: &Context,
    mut read: impl FnMut(&View) -> Result<T, E>,
) -> Result<T, E> {
    // What is read may be large, and is copied by each future that it passes. Nothing is waited for
    // in a local storage.
    if let Ok(view) = engine.local_view() {
        return read(&view);
    }
    let (read, _) = Box::pin(open(engine, context, read)).await?;
    Ok(read)
}

/// The same as [`Engine::open`], and reads the CORS rules in the same round trip, where they are
/// not known yet.
async fn open<T, E: From<StorageError>>(
    engine: &Engine,
    context: &Context,
    mut read: impl FnMut(&View) -> Result<T, E>,
) -> Result<(T, View), E> {
    if !context.cors.is_deferred() {
        return engine.open(read).await;
    }
    let mut rules = None;
    let opened = engine.open(|view| {
        rules = view.cors_rules(context.account()).ok();
        read(view)
    });
    let opened = opened.await;
    if let Some(rules) = rules {
        // A read that waits for memory reads them once more.
        let _ = context.cors_rules.set(rules);
    }
    opened
}

/// Returns what was read of an entity in the body of a request. If it is an error, a missing table
/// is reported instead.
// SERVICE: a malformed body is reported first, a missing table second, and then the values in the
// body.
async fn or_missing_table<T>(
    engine: &Engine,
    context: &Context,
    table: &TableName,
    read: Result<T, OperationError>,
) -> Result<T, OperationError> {
    if read.is_err() {
        Box::pin(engine.require_table(context.account(), table)).await?;
    }
    // The command of the operation finds out whether the table exists.
    read
}

/// The form in which a response contains entities of a table.
fn entity_format<'a>(
    context: &'a Context,
    level: MetadataLevel,
    table: &'a TableName,
    select: Option<&'a [String]>,
) -> EntityFormat<'a> {
    EntityFormat {
        level,
        endpoint: context.endpoint(),
        account: context.account(),
        table: table.as_str(),
        select,
        select_text: context.select_text(),
        style: context.flavor.entity_style(),
    }
}

/// The keys and the properties of a request's body as [`stored`] returns them, if the entity is one
/// that is read in one pass. Otherwise, nothing is known about it.
fn read_stored<'b>(
    reader: &mut StoredReader<'b>,
    body: &'b EntityBody,
    flavor: Flavor,
    is_insert: bool,
) -> Option<(StoredKeys<'b>, Properties)> {
    // Keys among the properties, other limits.
    if flavor.stores_keys() {
        return None;
    }
    if is_insert || !flavor.sorts_written_properties() {
        Properties::read(reader, body.as_bytes())
    } else {
        Properties::read_sorted(reader, body.as_bytes())
    }
}

/// The properties of a request's body in the form in which they are stored, which is about as long:
/// in the order of the body, or sorted by their names.
pub(super) fn stored(
    input: EntityInput<'_>,
    body: &EntityBody,
    key: &EntityKey,
    flavor: Flavor,
    is_insert: bool,
) -> Result<Properties, ServiceError> {
    if flavor.refuses_empty_keys()
        && (key.partition_key().as_str().is_empty() || key.row_key().as_str().is_empty())
    {
        return Err(ErrorCode::PropertiesNeedValue.into());
    }
    let properties = input.into_properties();
    let mut properties = properties.map_err(|error| match error.code() {
        // SERVICE: the limit of an entity is checked before that of a value.
        ErrorCode::PropertyValueTooLarge if is_too_large(key, body, flavor) => {
            ErrorCode::EntityTooLarge.into()
        }
        _ => error,
    })?;
    if !is_insert && flavor.sorts_written_properties() {
        properties.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    }
    let mut stored = Properties::with_capacity(body.as_bytes().len());
    if flavor.stores_keys() {
        push_with_key(&mut stored, key, &properties);
    } else {
        for (name, value) in &properties {
            stored.push(name, value);
        }
    }
    Ok(stored)
}

/// Adds properties and the keys, each in its place, or in front.
fn push_with_key(
    stored: &mut Properties,
    key: &EntityKey,
    properties: &[(Cow<'_, str>, ValueRef<'_>)],
) {
    let keys = [
        ("PartitionKey", key.partition_key().as_str()),
        ("RowKey", key.row_key().as_str()),
    ]
    .map(|(name, key)| (name, ValueRef::String(key.into())));
    for (name, value) in &keys {
        if !properties.iter().any(|(given, _)| given == name) {
            stored.push(name, value);
        }
    }
    for (name, value) in properties {
        let mut keys = keys.iter();
        let key = keys.find(|(key, _)| key == name);
        stored.push(name, key.map_or(value, |(_, key)| key));
    }
}

/// Returns true if the entity in a body exceeds the limit, with values that exceed theirs.
fn is_too_large(key: &EntityKey, body: &EntityBody, flavor: Flavor) -> bool {
    let Ok(input) = body.read_as(flavor.entity_style()) else {
        return false;
    };
    let properties = input.properties().iter();
    let properties = properties.filter(|(name, _)| !flavor.stores_key(name));
    let properties = properties.map(|(name, value)| Ok((name.as_ref(), value.clone())));
    let bytes: Result<_, Infallible> = entity_bytes(key, properties);
    bytes.is_ok_and(|bytes| bytes > flavor.entity_bytes_max())
}

/// The response with tables, or with a list of entities, in the order of its members that the
/// flavor has.
fn ordered(context: &Context, response: Response<Bytes>) -> Response<Bytes> {
    if context.flavor.has_metadata_last() {
        response.map(|body| with_metadata_last(&body).unwrap_or(body))
    } else {
        response
    }
}

/// An object whose first member is the metadata, with that as the last one; `None` for any other
/// object.
fn with_metadata_last(object: &[u8]) -> Option<Bytes> {
    let members = object.strip_prefix(b"{")?.strip_suffix(b"}")?;
    let start = b"\"odata.metadata\":\"";
    // The metadata is a URL, in which quotes are encoded.
    let url = members.strip_prefix(start)?;
    let end = url.iter().position(|byte| *byte == b'"')?;
    let (metadata, rest) = members.split_at_checked(start.len() + end + 1)?;
    let rest = rest.strip_prefix(b",")?;
    Some([b"{", rest, b",", metadata, b"}"].concat().into())
}

/// Returns true if an operation changes nothing, so that a secondary carries it out.
pub(super) const fn is_read(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Batch(Received::Query(_))
            | Operation::GetEntity(_)
            | Operation::GetMetadata(_)
            | Operation::GetServiceProperties(_)
            | Operation::GetServiceStats(_)
            | Operation::GetTable(_)
            | Operation::GetTableAcl(_)
            | Operation::GetUserDelegationKey(_)
            | Operation::Misplaced(..)
            | Operation::QueryEntities(_)
            | Operation::QueryTables(_)
    )
}

#[cfg(test)]
mod tests;
