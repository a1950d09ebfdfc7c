//! Entries of a unique index in other partitions than their entities. At any time, at most one
//! stored entity has the value of an entry, and that entity has its entry.
//!
//! 1. A write that gains an entry inserts a [ticket](super::ticket) in the partition of the entity.
//! 2. The entry is inserted with the id of the ticket: it is reserved. If it exists, and its entity
//!    does not have it, the entry is taken: the ticket in it is deleted, so that its entity cannot
//!    gain it any more; the entity is read again; and the entry is replaced in the version that was
//!    read.
//! 3. The transaction that writes the entity deletes the ticket.
//! 4. The entry is written without the id: it is confirmed.
//!
//! An entry that is kept or lost is read before the entity is written, and replaced or deleted
//! afterwards in that version. An entity that gains the entry meanwhile has given it another one.
//! No time is compared: a client that stops between two steps leaves a ticket and an entry that
//! every other client can take.

use tablesdk_protocol::{ETag, EntityKey, Guid, TableName};

use super::across_partitions::{AGAIN, Before, Pending, ROUNDS, insert, replace};
use super::entries::has_entry;
use super::entry::Owner;
use super::event;
use super::read::{DatedEntity, read};
use super::taken::TakenEntry;
use super::ticket::{reserved, stop, ticket_in};
use crate::error::Error;
use crate::pipeline::OperationRun;

/// The state of an entry that an entity is to gain.
enum Claim {
    /// This write has reserved it.
    Own(ETag),
    /// The entity has it already.
    Held(ETag),
    /// Another entity has it, or it is no entry of the index.
    Taken(EntityKey),
    /// Another write has reserved it, and may be about to write its entity.
    Pending,
    /// No entity has it, and no write can gain it in this version.
    Free(ETag),
}

impl Pending {
    /// Reads the entry that an entity keeps or loses.
    pub(super) async fn find(
        &mut self,
        run: &mut OperationRun<'_>,
        table: &TableName,
    ) -> Result<(), Error> {
        self.before = Before::Missing;
        if self.is_gained && !self.is_kept {
            return Ok(());
        }
        self.is_gained = false;
        let is_kept = self.body.is_some();
        let Some(found) = read(run, table, &self.key).await? else {
            // A program that does not know the index has deleted it.
            self.is_gained = is_kept;
            return Ok(());
        };
        match self.index.owner_of(&found.content) {
            Owner::Entity(owner) if owner == self.entity => {
                self.stop_writer(run, &owner, &found).await?;
                self.before = Before::Present(found.etag);
            }
            Owner::Entity(owner) if is_kept => {
                match has_entry(run, &self.entities, self.index, owner, &self.key).await? {
                    Some(_) => event::entry_of_other(run, self.index.name()),
                    None => self.is_gained = true,
                }
            }
            // It is written anew by the entity that has it, and no other.
            Owner::Damaged if is_kept => self.before = Before::Present(found.etag),
            Owner::NoEntry if is_kept => event::entry_of_other(run, self.index.name()),
            Owner::Entity(_) | Owner::Damaged | Owner::NoEntry => {}
        }
        Ok(())
    }

    /// Reserves the entry with the last of the tickets.
    pub(super) async fn reserve(
        &mut self,
        run: &mut OperationRun<'_>,
        table: &TableName,
        tickets: &[Guid],
    ) -> Result<(), Error> {
        let (Some(ticket), Some(body), true) = (tickets.last(), &self.body, self.is_gained) else {
            return Ok(());
        };
        let body = reserved(run, &self.key, body, ticket)?;
        self.before = Before::Tried;
        let mut round = 0;
        loop {
            round += 1;
            let error = match insert(run, table, &self.key, body.clone()).await {
                Ok(etag) => {
                    self.before = Before::Reserved(etag);
                    return Ok(());
                }
                Err(error) if error.is_conflict() || error.is_outcome_unknown() => error,
                Err(error) => return Err(error),
            };
            let claim = match read(run, table, &self.key).await? {
                Some(found) => self.claim(run, tickets, found, round).await?,
                None => Claim::Pending,
            };
            match claim {
                Claim::Own(etag) => {
                    self.before = Before::Reserved(etag);
                    return Ok(());
                }
                Claim::Held(etag) => {
                    self.before = if self.is_kept {
                        Before::Present(etag)
                    } else {
                        Before::Held
                    };
                    return Ok(());
                }
                Claim::Taken(_) if self.is_kept => {
                    event::entry_of_other(run, self.index.name());
                    self.before = Before::Missing;
                    return Ok(());
                }
                // Without a response of the service, the insert is repeated for one.
                Claim::Taken(owner) if error.is_conflict() => {
                    self.before = Before::Missing;
                    return Err(error.with_details(TakenEntry {
                        noun: self.index.noun(),
                        index: self.index.name(),
                        row_key: self.key.row_key().as_str().to_owned(),
                        owner,
                    }));
                }
                Claim::Taken(_) | Claim::Pending => {}
                Claim::Free(etag) => match replace(run, table, &self.key, &etag, &body).await {
                    Ok(etag) => {
                        self.before = Before::Reserved(etag);
                        return Ok(());
                    }
                    Err(error) if error.is_out_of_date() || error.is_outcome_unknown() => {}
                    Err(error) => return Err(error),
                },
            }
            if round == ROUNDS || !run.pause_before_round(round).await {
                // Not the error of the entry: its status would be taken for that of the entity.
                return Err(run.annotate(Error::timeout(AGAIN.to_owned())));
            }
        }
    }

    /// Determines who has an entry that was read, and makes sure that no write gains it in this
    /// version.
    async fn claim(
        &self,
        run: &mut OperationRun<'_>,
        tickets: &[Guid],
        found: DatedEntity,
        round: u32,
    ) -> Result<Claim, Error> {
        let ticket = ticket_in(&found.content);
        if ticket.is_some() && ticket.as_ref() == tickets.last() {
            return Ok(Claim::Own(found.etag));
        }
        let Owner::Entity(owner) = self.index.owner_of(&found.content) else {
            return Ok(Claim::Taken(self.key.clone()));
        };
        for is_stopped in [false, true] {
            let has = has_entry(run, &self.entities, self.index, owner.clone(), &self.key).await?;
            if has.is_some() && owner == self.entity {
                self.stop_writer(run, &owner, &found).await?;
                return Ok(Claim::Held(found.etag));
            }
            if let Some(owner) = has {
                return Ok(Claim::Taken(owner));
            }
            match ticket {
                Some(ticket) if !is_stopped => {
                    // It would be stopped, and begin anew. A ticket of this write is used up.
                    if round <= PATIENCE && !tickets.contains(&ticket) {
                        return Ok(Claim::Pending);
                    }
                    stop(run, &self.entities, owner.partition_key(), &ticket).await?;
                }
                _ => break,
            }
        }
        Ok(Claim::Free(found.etag))
    }

    /// Stops the write that has reserved an entry and has not confirmed it.
    async fn stop_writer(
        &self,
        run: &mut OperationRun<'_>,
        owner: &EntityKey,
        found: &DatedEntity,
    ) -> Result<(), Error> {
        match ticket_in(&found.content) {
            Some(ticket) => stop(run, &self.entities, owner.partition_key(), &ticket).await,
            None => Ok(()),
        }
    }

    /// Returns true if another write determines what becomes of an entry that was read.
    pub(super) fn is_left_to_other(&self, found: &DatedEntity, tickets: &[Guid]) -> bool {
        let is_of_other = |ticket| !tickets.contains(&ticket);
        ticket_in(&found.content).is_some_and(is_of_other)
            || !matches!(self.index.owner_of(&found.content), Owner::Entity(owner) if owner == self.entity)
    }
}

/// How often a client waits for a write that has reserved the entry.
const PATIENCE: u32 = 3;
