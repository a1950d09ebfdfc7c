//! Entries in other partitions than their entities. No transaction writes both, so they are written
//! in an order that keeps them right:
//!
//! 1. An entry that the entity gains is inserted. If it exists, it is written without a change.
//! 2. The entity is written.
//! 3. An entry that the entity no longer has is deleted, and one with other properties is replaced.
//!    Both are conditional on the version of the entry that step 1 wrote or read.
//! 4. Entries that were inserted for an inserted entity are written once more, without a change,
//!    under the same condition. Other clients may have inserted and deleted the same entity between
//!    steps 1 and 2, with these entries; no version of the entity shows that.
//!
//! Where the network delivers each request twice and returns the second response, a write under an
//! ETag is refused because of its own copy. That the entry has the right properties then does not
//! show who wrote it, or when. So after a write that was refused, or got no response, the next one
//! has an id, which is stored with the entry until its properties are written again.
//!
//! So a stored entity has its entries. A client that stops between two steps leaves an entry that
//! no entity has, or one with properties of an earlier version: those who follow entries do not see
//! it, and a repair mends it.
//!
//! An entry that no entity has may be that of a write between steps 1 and 2. So a repair deletes it
//! only when it is older than `GRACE`, and step 2 is not begun later than half of that time after
//! step 1. A write that gains the entry later writes it again, under another ETag.

use std::mem;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tablesdk_protocol::operation::batch::Change;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, Guid, IfMatch, TableName, Timestamp, Value};

use super::entry::{AnyIndex, Entry, EntryOf, Owner};
use super::event;
use super::read::{CONCURRENCY, DatedEntity, GRACE, WRITE_ID, handle_of, read};
use super::rider::entries_of;
use super::taken::TakenEntry;
use super::ticket::Ticket;
use crate::action::extend::count::RequestCount;
use crate::action::refusal::refused;
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::encoded::EncodedEntity;
use crate::action::write::response::malformed_success;
use crate::entity::write_values;
use crate::error::Error;
use crate::pipeline::OperationRun;
use crate::random::random_guid;

/// Deletes an entity in that version. Returns false if it was written or deleted since.
pub(super) async fn delete_version(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
    etag: &ETag,
) -> Result<bool, Error> {
    let kind = ChangeKind::Delete(IfMatch::ETag(etag.clone()));
    let change = EntityChange::of(table.clone(), kind, EncodedEntity::of_key(key.clone()));
    match change.write(run, None).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() || error.is_precondition_failed() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The entries in other partitions that changes are about.
pub(super) struct Elsewhere {
    /// The table of the entities.
    table: TableName,
    began: Timestamp,
    entries: Vec<Pending>,
    /// The tickets of this write, the last one of which is still needed.
    tickets: Vec<Ticket>,
}

/// An entry, and what remains to be done with it.
pub(super) struct Pending {
    pub(super) index: &'static dyn AnyIndex,
    /// The table of the entry.
    table: TableName,
    pub(super) key: EntityKey,
    /// The entity that has or had it, its table, and the position of its change.
    pub(super) entity: EntityKey,
    pub(super) entities: TableName,
    position: usize,
    /// The content that the entry must have; `None` where the entity no longer has the entry.
    pub(super) body: Option<Bytes>,
    pub(super) is_gained: bool,
    /// True if the stored entity has the entry, and keeps it.
    pub(super) is_kept: bool,
    /// True if the change inserts the entity.
    is_of_insert: bool,
    pub(super) before: Before,
}

/// The entry before the entity is written.
pub(super) enum Before {
    Unread,
    /// It is not there, and need not be; or an entity of another type has its key.
    Missing,
    /// It was inserted for this change.
    Inserted(ETag),
    /// It exists, in this version.
    Present(ETag),
    /// It was reserved with a ticket.
    Reserved(ETag),
    /// It may have been reserved.
    Tried,
    /// The stored entity has it already, so that the service refuses the change.
    Held,
}

/// The work on each entry, before or after the entities are written.
#[derive(Clone, Copy)]
enum Step {
    Prepare,
    Reserve,
    Complete,
    Withdraw,
    Settle,
}

impl Elsewhere {
    /// `entities` is the table of the entities that are changed.
    pub(super) fn of(
        run: &OperationRun<'_>,
        entities: &TableName,
        changes: &[EntityChange],
    ) -> Result<Self, Error> {
        let mut entries = Vec::new();
        for (position, change) in changes.iter().enumerate() {
            let elsewhere = entries_of(change).filter(|entry| entry.index.is_elsewhere());
            for entry in elsewhere {
                let table = entry.index.table_of(entities);
                let table = table.map_err(|error| run.annotate(error))?;
                let before = entry.before.as_ref();
                let after = entry.after.as_ref();
                let pending = |key: &EntityKey, body: Option<&Bytes>, is_gained| Pending {
                    index: entry.index,
                    table: table.clone(),
                    key: key.clone(),
                    entity: change.key.clone(),
                    entities: entities.clone(),
                    position,
                    body: body.cloned(),
                    is_gained,
                    is_kept: body.is_some() && !is_gained,
                    is_of_insert: matches!(change.change, Change::Insert(_)),
                    before: Before::Unread,
                };
                if let Some(Entry { key, body, .. }) = after {
                    entries.push(pending(key, Some(body), before != Some(key)));
                }
                let lost = before.filter(|key| after.is_none_or(|after| after.key != **key));
                entries.extend(lost.map(|key| pending(key, None, false)));
            }
        }
        Ok(Self {
            table: entities.clone(),
            began: run.pipeline().now(),
            entries,
            tickets: Vec::new(),
        })
    }

    /// Refuses two entities that would have one entry.
    pub(super) fn check(&self) -> Result<(), (usize, &Pending)> {
        for (position, entry) in self.entries.iter().enumerate() {
            let mut before = self.entries.iter().take(position);
            let is_same = |it: &Pending| it.key == entry.key && it.table == entry.table;
            if entry.body.is_some() && before.any(|it| it.body.is_some() && is_same(it)) {
                return Err((entry.position, entry));
            }
        }
        Ok(())
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns true if one of the entries is reserved, unless a read shows otherwise.
    pub(super) fn needs_ticket(&self) -> bool {
        let mut unique = self.entries.iter().filter(|entry| entry.is_unique());
        unique.any(|entry| entry.is_gained)
    }

    /// The delete of the ticket, which goes along with the changes.
    pub(super) fn ticket(&self) -> Option<EntityChange> {
        let ticket = self.tickets.last().filter(|_| self.needs_ticket());
        ticket.map(|ticket| ticket.used(&self.table))
    }

    /// Writes the entries that must exist before the entities are written. After an error, none of
    /// these writes remains where the service accepts that. May be called again after another
    /// client has stopped the changes.
    pub(super) async fn prepare(&mut self, run: &mut OperationRun<'_>) -> Result<(), Error> {
        // A commit may be sent again until the deadline.
        let is_compared = !self.entries.iter().all(Pending::is_unique);
        if is_compared && run.pipeline().time_limit() > GRACE / 2 {
            return Err(refused(run.operation(), DEADLINE));
        }
        let mut prepared = self.each(run, Step::Prepare).await;
        if prepared.is_ok() && self.needs_ticket() {
            prepared = self.reserve(run).await;
        }
        if prepared.is_ok() && is_compared && self.has_waited(run) {
            prepared = Err(run.annotate(Error::timeout(WAITED.to_owned())));
        }
        if prepared.is_err() {
            self.withdraw(run).await;
        }
        // The entities were not written, whatever became of an entry.
        prepared.map_err(Error::into_not_done)
    }

    /// Reserves the entries that are gained in unique indexes.
    async fn reserve(&mut self, run: &mut OperationRun<'_>) -> Result<(), Error> {
        let mut gained = self.entries.iter().filter(|entry| entry.is_unique());
        let gained = gained.find(|entry| entry.is_gained);
        let Some(partition) = gained.map(|entry| entry.entity.partition_key().clone()) else {
            return Ok(());
        };
        let ticket = Ticket::insert(run, &self.table, &partition).await?;
        self.tickets.push(ticket);
        self.each(run, Step::Reserve).await?;
        // The changes are sent for the error of the service, and must not be carried out.
        let mut entries = self.entries.iter();
        if entries.any(|entry| matches!(entry.before, Before::Held)) {
            self.withdraw_ticket(run).await?;
        }
        Ok(())
    }

    /// Returns true if the changes were not carried out, and cannot be any more.
    async fn withdraw_ticket(&mut self, run: &mut OperationRun<'_>) -> Result<bool, Error> {
        match self.tickets.last_mut() {
            Some(ticket) => ticket.withdraw(run, &self.table).await,
            None => Ok(false),
        }
    }

    /// Returns true if it is too late to write the entities. The time that a computer sleeps does
    /// not count for a deadline.
    fn has_waited(&self, run: &OperationRun<'_>) -> bool {
        run.pipeline().now().abs_diff(self.began) > GRACE / 2
    }

    /// Completes the entries after the entities were written. An error here does not change the
    /// result of the writes.
    pub(super) async fn complete(&mut self, run: &OperationRun<'_>) {
        // After a longer pause, a repair may have deleted what was inserted.
        let is_compared = !self.entries.iter().all(Pending::is_unique);
        let step = if is_compared && self.has_waited(run) {
            Step::Settle
        } else {
            Step::Complete
        };
        drop(self.each(run, step).await);
    }

    /// Deletes what was inserted for entities that were not written. They are read: the refusal may
    /// be that of a duplicate.
    pub(super) async fn withdraw(&mut self, run: &mut OperationRun<'_>) {
        self.stop(run).await;
        drop(self.each(run, Step::Withdraw).await);
    }

    /// Makes the entries what they have to be, where it is not known whether the entities were
    /// written. What no entity has stays: these entities may be written late, and another write may
    /// have begun with the version that was read.
    ///
    /// Returns true if they were not, and cannot be any more.
    pub(super) async fn settle(&mut self, run: &mut OperationRun<'_>) -> bool {
        let is_stopped = self.stop(run).await;
        drop(self.each(run, Step::Settle).await);
        is_stopped
    }

    /// Makes sure that the changes are not carried out later. If that fails, reserved entries are
    /// left as they are. Returns true if the changes were not carried out either.
    async fn stop(&mut self, run: &mut OperationRun<'_>) -> bool {
        let error = match self.withdraw_ticket(run).await {
            Ok(is_stopped) => return is_stopped,
            Err(error) => error,
        };
        for entry in self.entries.iter_mut().filter(|entry| entry.is_unique()) {
            event::entry_left(run, entry.index.name(), &error);
            entry.before = Before::Missing;
        }
        false
    }

    /// Takes a step with each entry, several at a time, and with all of them to its end: it has to
    /// be known what was inserted.
    async fn each(&mut self, run: &OperationRun<'_>, step: Step) -> Result<(), Error> {
        let entries = mem::take(&mut self.entries);
        let tickets: Arc<[Guid]> = self.tickets.iter().map(|ticket| ticket.id).collect();
        let done = stream::iter(entries).map(|mut entry| {
            let (handle, table) = (handle_of(run, &entry.table), entry.table.clone());
            let tickets = Arc::clone(&tickets);
            async move {
                let mut run = handle.begin(OPERATION);
                let done = entry.take(step, &mut run, &table, &tickets).await;
                let is_before = matches!(step, Step::Prepare | Step::Reserve);
                if let (Err(error), false) = (&done, is_before) {
                    event::entry_left(&run, entry.index.name(), error);
                }
                (run.end(done), entry)
            }
        });
        let mut done = pin!(done.buffered(CONCURRENCY));
        let mut result = Ok(());
        while let Some((done, entry)) = done.next().await {
            let done = done.map_err(|error| error.with_batch_index(entry.position));
            result = result.and(done);
            self.entries.push(entry);
        }
        result
    }
}

impl Pending {
    async fn take(
        &mut self,
        step: Step,
        run: &mut OperationRun<'_>,
        table: &TableName,
        tickets: &[Guid],
    ) -> Result<(), Error> {
        match (step, &self.before) {
            (Step::Prepare, _) if self.is_unique() => self.find(run, table).await,
            (Step::Prepare, Before::Unread) => self.prepare(run, table).await,
            (Step::Reserve, _) if self.is_unique() => self.reserve(run, table, tickets).await,
            (Step::Complete, _) => self.complete(run, table, tickets).await,
            (Step::Withdraw, Before::Inserted(etag)) => {
                self.reconcile(run, table, tickets, Some(etag)).await
            }
            (Step::Withdraw | Step::Settle, Before::Reserved(_) | Before::Tried)
            | (Step::Settle, Before::Inserted(_) | Before::Present(_)) => {
                self.reconcile(run, table, tickets, None).await
            }
            (Step::Prepare | Step::Reserve | Step::Withdraw | Step::Settle, _) => Ok(()),
        }
    }

    /// Returns true if the entry is reserved before its entity is written.
    fn is_unique(&self) -> bool {
        self.index.is_reserved()
    }

    async fn prepare(
        &mut self,
        run: &mut OperationRun<'_>,
        table: &TableName,
    ) -> Result<(), Error> {
        self.before = if self.is_gained {
            self.gain(run, table).await?
        } else {
            match read(run, table, &self.key).await? {
                Some(found) if self.is_of_other_type(&found) => {
                    if self.body.is_some() {
                        event::entry_of_other(run, self.index.name());
                    }
                    Before::Missing
                }
                // It is replaced even if it has these properties: a write that came before, and is
                // slower, must not succeed.
                Some(found) => Before::Present(found.etag),
                None if self.body.is_none() => Before::Missing,
                // A program that does not know the index has deleted it.
                None => self.gain(run, table).await?,
            }
        };
        Ok(())
    }

    async fn gain(&self, run: &mut OperationRun<'_>, table: &TableName) -> Result<Before, Error> {
        let id = random_guid();
        let mut round = 0;
        loop {
            round += 1;
            let body = self.body.clone().unwrap_or_default();
            let error = match insert(run, table, &self.key, body).await {
                Ok(etag) => return Ok(Before::Inserted(etag)),
                Err(error) if error.is_conflict() || error.is_outcome_unknown() => error,
                Err(error) => return Err(error),
            };
            // Its properties are those of a stored entity, or of a write that comes first. It is
            // written under the version that was read: without one, a write of unknown outcome
            // would count as done, since the entry has the properties of it anyway.
            if let Some(found) = read(run, table, &self.key).await? {
                if self.is_of_other_type(&found) {
                    let (noun, name) = (self.index.noun(), self.index.name());
                    return Err(error.with_details(TakenEntry {
                        noun,
                        index: name,
                        row_key: self.key.row_key().as_str().to_owned(),
                        owner: self.key.clone(),
                    }));
                }
                if found.was_written_by(&id) {
                    return Ok(Before::Present(found.etag));
                }
                match self.touch(run, table, found.etag, id_in(round, id)).await {
                    Ok(etag) => return Ok(Before::Present(etag)),
                    Err(error) if error.is_out_of_date() || error.is_outcome_unknown() => {}
                    Err(error) => return Err(error),
                }
            }
            if round == ROUNDS || !run.pause_before_round(round).await {
                // Not the error of the entry: its status would be taken for that of the entity.
                return Err(run.annotate(Error::timeout(AGAIN.to_owned())));
            }
        }
    }

    /// Returns true if another program stores something else under the key. It is left as it is.
    fn is_of_other_type(&self, found: &DatedEntity) -> bool {
        matches!(self.index.owner_of(&found.content), Owner::NoEntry)
    }

    /// Writes the entry without a change: it gets another ETag. With an id, the entry shows
    /// afterwards that this write was carried out.
    async fn touch(
        &self,
        run: &mut OperationRun<'_>,
        table: &TableName,
        etag: ETag,
        id: Option<Guid>,
    ) -> Result<ETag, Error> {
        let id = id.map(|id| (WRITE_ID.to_owned(), Value::Guid(id)));
        let body = write_values(&self.key, id.as_slice());
        let body = body.map_err(|error| run.annotate(Error::input(error)))?;
        let touch = ChangeKind::Update(Mode::Merge, Some(IfMatch::ETag(etag)));
        let etag = write(run, table, touch, &self.key, body).await?;
        etag.ok_or_else(|| run.annotate(malformed_success(NO_ETAG)))
    }

    async fn complete(
        &self,
        run: &mut OperationRun<'_>,
        table: &TableName,
        tickets: &[Guid],
    ) -> Result<(), Error> {
        let done = match (&self.before, &self.body) {
            (Before::Inserted(etag), _) if self.is_of_insert => {
                let touched = self.touch(run, table, etag.clone(), None).await;
                touched.map(drop)
            }
            (Before::Present(etag) | Before::Reserved(etag), Some(body)) => {
                let replaced = replace(run, table, &self.key, etag, body).await;
                replaced.map(drop)
            }
            (Before::Present(etag), None) => delete(run, table, &self.key, etag).await,
            _ => return Ok(()),
        };
        match done {
            // Another write was faster. What it left is compared with the entity.
            Err(error) if error.is_out_of_date() => self.reconcile(run, table, tickets, None).await,
            done => done,
        }
    }

    /// Reads the entry, then its entity, and makes the entry what it has to be, under the version
    /// that was read. `known` is a version that no later write of the entity relies on.
    async fn reconcile(
        &self,
        run: &mut OperationRun<'_>,
        table: &TableName,
        tickets: &[Guid],
        known: Option<&ETag>,
    ) -> Result<(), Error> {
        let id = random_guid();
        let mut round = 0;
        loop {
            round += 1;
            let entry = read(run, table, &self.key).await?;
            let is_left = |it: &DatedEntity| self.is_of_other_type(it) || it.was_written_by(&id);
            if entry.as_ref().is_some_and(is_left) {
                return Ok(());
            }
            let is_of_other = |it: &DatedEntity| self.is_left_to_other(it, tickets);
            if self.is_unique() && entry.as_ref().is_some_and(is_of_other) {
                return Ok(());
            }
            let entity = read(run, &self.entities, &self.entity).await?;
            let wanted = entity.map_or(EntryOf::None, |entity| {
                self.index.entry_of(&entity.content, &self.key)
            });
            let done = match (entry, wanted) {
                (_, EntryOf::Unknown) | (None, EntryOf::None) => return Ok(()),
                (Some(entry), EntryOf::Entry(body)) if entry.equals(&body) => {
                    // Against a delete under way that has seen this version.
                    let id = id_in(round, id);
                    let touched = self.touch(run, table, entry.etag, id).await;
                    touched.map(drop)
                }
                (Some(entry), EntryOf::Entry(body)) => {
                    let replaced = replace(run, table, &self.key, &entry.etag, &body).await;
                    replaced.map(drop)
                }
                (None, EntryOf::Entry(body)) => insert(run, table, &self.key, body).await.map(drop),
                (Some(entry), EntryOf::None) => {
                    let is_certain = self.is_unique() || known == Some(&entry.etag);
                    if !is_certain && !entry.is_old() {
                        return Ok(());
                    }
                    delete(run, table, &self.key, &entry.etag).await
                }
            };
            match done {
                Err(error) if error.is_out_of_date() && round < ROUNDS => {
                    if !run.pause_before_round(round).await {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }
}

/// Counts the requests of entries in other partitions: one before the entity is written and one
/// after it for each, and those of one ticket.
pub(super) fn count_elsewhere(changes: &[EntityChange], count: &mut RequestCount) {
    let mut needs_ticket = false;
    for change in changes {
        let is_insert = matches!(change.change, Change::Insert(_));
        for entry in entries_of(change).filter(|entry| entry.index.is_elsewhere()) {
            let before = entry.before.as_ref();
            let after = entry.after.as_ref().map(|after| &after.key);
            let is_gained = after.is_some() && before != after;
            needs_ticket |= is_gained && entry.index.is_reserved();
            // A gained entry is written once more only if it is confirmed, or of an insert.
            let is_completed = !is_gained || is_insert || entry.index.is_reserved();
            count.requests += usize::from(after.is_some()) * (1 + usize::from(is_completed));
            let is_lost = before.is_some() && before != after;
            count.requests += usize::from(is_lost) * 2;
        }
    }
    if needs_ticket {
        count.requests += 1;
        count.changes += 1;
    }
}

/// The id of a write of an entry in a round: few entries need one.
fn id_in(round: u32, id: Guid) -> Option<Guid> {
    (round > 1).then_some(id)
}

async fn write(
    run: &mut OperationRun<'_>,
    table: &TableName,
    kind: ChangeKind,
    key: &EntityKey,
    body: Bytes,
) -> Result<Option<ETag>, Error> {
    let entity = EncodedEntity::alone(key.clone(), body);
    let change = EntityChange::of(table.clone(), kind, entity);
    change.write(run, None).await
}

pub(super) async fn insert(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
    body: Bytes,
) -> Result<ETag, Error> {
    let etag = write(run, table, ChangeKind::Insert, key, body).await?;
    etag.ok_or_else(|| run.annotate(malformed_success(NO_ETAG)))
}

pub(super) async fn replace(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
    etag: &ETag,
    body: &Bytes,
) -> Result<ETag, Error> {
    let kind = ChangeKind::Update(Mode::Replace, Some(IfMatch::ETag(etag.clone())));
    let etag = write(run, table, kind, key, body.clone()).await?;
    etag.ok_or_else(|| run.annotate(malformed_success(NO_ETAG)))
}

async fn delete(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
    etag: &ETag,
) -> Result<(), Error> {
    let kind = ChangeKind::Delete(IfMatch::ETag(etag.clone()));
    write(run, table, kind, key, Bytes::new()).await.map(drop)
}

pub(super) const ROUNDS: u32 = 16;
const OPERATION: &str = "write entry of an index";
const NO_ETAG: &str = "the response has no ETag";
pub(super) const AGAIN: &str =
    "the entry of an index was written again and again, or its writes failed";
const DEADLINE: &str =
    "the deadline of a write with entries in other partitions is at most half an hour";
const WAITED: &str =
    "the entries were written more than half an hour ago, before this client paused";
