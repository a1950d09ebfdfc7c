//! Tickets: what makes the write of an entity depend on the entries that it has reserved.
//!
//! A ticket is an entity in the partition of the entity. It is inserted before an entry is
//! reserved, the reserved entry has its id, and the transaction that writes the entity deletes it,
//! in the version that was inserted. So a client that deletes the ticket first has stopped that
//! write for ever: neither a retry nor a copy of it can succeed, and a ticket that a late copy
//! inserts again has another version.

use bytes::Bytes;
use tablesdk_protocol::wire::json::read_entity;
use tablesdk_protocol::{ETag, EntityKey, Guid, IfMatch, PartitionKey, TableName, Value};

use super::across_partitions::delete_version;
use super::part::values_in;
use super::read::read;
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::encoded::EncodedEntity;
use crate::entity::write_values;
use crate::error::Error;
use crate::pipeline::OperationRun;
use crate::random::random_guid;

/// A ticket that this client has inserted.
pub(super) struct Ticket {
    pub(super) id: Guid,
    key: EntityKey,
    etag: ETag,
    is_withdrawn: bool,
}

impl Ticket {
    /// Inserts a ticket, and knows its version before it returns.
    pub(super) async fn insert(
        run: &mut OperationRun<'_>,
        table: &TableName,
        partition: &PartitionKey,
    ) -> Result<Self, Error> {
        let id = random_guid();
        let key = key_of(run, partition, &id)?;
        let body = write_values(&key, &[]).map_err(|error| run.annotate(Error::input(error)))?;
        let mut round = 0;
        let etag = loop {
            round += 1;
            let entity = EncodedEntity::alone(key.clone(), body.clone());
            let insert = EntityChange::of(table.clone(), ChangeKind::Insert, entity);
            let error = match insert.write_entity(run, None).await {
                Ok(etag) => break etag,
                Err(error) if error.is_conflict() || error.is_outcome_unknown() => error,
                Err(error) => return Err(error),
            };
            // No other client has its id.
            if let Some(found) = read(run, table, &key).await? {
                break found.etag;
            }
            if round == ROUNDS || !run.pause_before_round(round).await {
                return Err(error);
            }
        };
        Ok(Self {
            id,
            key,
            etag,
            is_withdrawn: false,
        })
    }

    /// The change that goes along with the write of the entity.
    pub(super) fn used(&self, table: &TableName) -> EntityChange {
        let kind = ChangeKind::Delete(IfMatch::ETag(self.etag.clone()));
        EntityChange::of(table.clone(), kind, EncodedEntity::of_key(self.key.clone()))
    }

    /// Deletes the ticket, if it is still there. Returns true if it was: the write of the entity
    /// was not carried out, and cannot be any more.
    pub(super) async fn withdraw(
        &mut self,
        run: &mut OperationRun<'_>,
        table: &TableName,
    ) -> Result<bool, Error> {
        if self.is_withdrawn {
            return Ok(false);
        }
        let deleted = delete_version(run, table, &self.key, &self.etag).await?;
        self.is_withdrawn = true;
        Ok(deleted)
    }
}

/// Stops the write of an entity in that partition which has reserved an entry with the ticket.
pub(super) async fn stop(
    run: &mut OperationRun<'_>,
    table: &TableName,
    partition: &PartitionKey,
    id: &Guid,
) -> Result<(), Error> {
    let entity = EncodedEntity::of_key(key_of(run, partition, id)?);
    let delete = EntityChange::of(table.clone(), ChangeKind::Delete(IfMatch::Any), entity);
    match delete.write(run, None).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

fn key_of(run: &OperationRun<'_>, partition: &PartitionKey, id: &Guid) -> Result<EntityKey, Error> {
    let key = EntityKey::new(partition.as_str(), format!("{PREFIX}{id}"));
    key.map_err(|error| run.annotate(Error::input(error)))
}

/// The content of an entry that is reserved with a ticket.
pub(super) fn reserved(
    run: &OperationRun<'_>,
    key: &EntityKey,
    content: &Bytes,
    ticket: &Guid,
) -> Result<Bytes, Error> {
    let with_ticket = values_in(content)
        .map_err(Error::input)
        .and_then(|mut values| {
            values.push((TICKET.to_owned(), Value::Guid(*ticket)));
            write_values(key, &values).map_err(Error::input)
        });
    with_ticket.map_err(|error| run.annotate(error))
}

/// The ticket of an entry that is not confirmed.
pub(super) fn ticket_in(entry: &Bytes) -> Option<Guid> {
    let entry = read_entity(entry).ok()?;
    match entry.property(TICKET)?.to_value().ok()?? {
        Value::Guid(ticket) => Some(ticket),
        _ => None,
    }
}

/// The filter for tickets.
pub(super) fn all_tickets() -> String {
    format!("RowKey ge '{PREFIX}' and RowKey lt '{PREFIX_END}'")
}

/// The beginning of the row keys of tickets, and the end of their range.
const PREFIX: &str = "~tablesdk.ticket.";
const PREFIX_END: &str = "~tablesdk.ticket.~";
/// The property of a reserved entry with the id of the ticket.
const TICKET: &str = "TablesdkTicket";
const ROUNDS: u32 = 16;
