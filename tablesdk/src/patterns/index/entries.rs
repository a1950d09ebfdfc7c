//! The entries of indexes, which are written in one transaction with their entities.
//!
//! The ETag of an entity protects its entries: a transaction that writes an entry also writes the
//! entity, under the version that was read, or inserts it. So the entries that are no longer right
//! follow from what was read, and no other client changes them meanwhile.
//!
//! An entry of a unique index may belong to another entity: it is read before it is changed, and
//! changed under its own ETag. The row key of any other entry contains the whole key of its entity,
//! so it has one owner.

use std::collections::BTreeMap;

use bytes::Bytes;
use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, TableName};

use super::across_partitions::{Elsewhere, count_elsewhere, delete_version};
use super::entry::{AnyIndex, Entry, EntryOf, Owner};
use super::event;
use super::part::{NoEntityError, is_merged, joined, replaced};
use super::read::{DatedEntity, read, read_all};
use super::rider::{EntryChange, EntryRider, entries_of};
use super::taken::TakenEntry;
use super::ticket::{stop, ticket_in};
use crate::action::extend::count::RequestCount;
use crate::action::extend::ride::{Commit, ETags, Layer, Next};
use crate::action::refusal::refused;
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::encoded::EncodedEntity;
use crate::error::Error;
use crate::patterns::order;
use crate::pipeline::OperationRun;

/// The state of the entry of a stored entity.
pub(crate) enum EntryState {
    Right,
    Missing,
    /// Its properties are not those of the entity.
    Stale,
    /// Another entity has it.
    Taken {
        owner: EntityKey,
    },
    /// It is a part of an entity that does not exist.
    NoEntity(NoEntityError),
}

impl EntryChange {
    /// The name of the index, the key of the entry, and its state; `None` where the entity has no
    /// entry.
    pub(crate) async fn state(
        &self,
        run: &mut OperationRun<'_>,
        table: &TableName,
        entity: &EntityKey,
    ) -> Result<Option<(&'static str, &EntityKey, EntryState)>, Error> {
        let Some(entry @ Entry { key, body, .. }) = &self.after else {
            return Ok(None);
        };
        let name = self.index.name();
        let entries = self.index.table_of(table);
        let entries = entries.map_err(|error| run.annotate(error))?;
        let state = match read(run, &entries, key).await? {
            None if self.index.is_part() => EntryState::NoEntity(NoEntityError::new(name, entry)),
            None => EntryState::Missing,
            Some(found) if self.index.is_part() => {
                if is_merged(&found.content, entry) {
                    EntryState::Right
                } else {
                    EntryState::Stale
                }
            }
            Some(found) => {
                let of_other = match self.index.owner_of(&found.content) {
                    Owner::Entity(owner) if owner != *entity => {
                        has_entry(run, table, self.index, owner, key).await?
                    }
                    Owner::Entity(_) | Owner::Damaged => None,
                    Owner::NoEntry => Some(key.clone()),
                };
                match of_other {
                    Some(owner) => EntryState::Taken { owner },
                    None if found.equals(body) => EntryState::Right,
                    None => EntryState::Stale,
                }
            }
        };
        Ok(Some((name, key, state)))
    }
}

/// The entity, if it exists and has the entry.
pub(super) async fn has_entry(
    run: &mut OperationRun<'_>,
    table: &TableName,
    index: &dyn AnyIndex,
    entity: EntityKey,
    entry: &EntityKey,
) -> Result<Option<EntityKey>, Error> {
    let found = read(run, table, &entity).await?;
    // An entity that cannot be read may have it.
    let has_entry =
        found.is_some_and(|found| !matches!(index.entry_of(&found.content, entry), EntryOf::None));
    Ok(has_entry.then_some(entity))
}

/// The result of comparing an entry with its entity.
pub(crate) enum Compared {
    Right,
    /// Its entity does not exist, or does not have it.
    Orphan,
    /// Its entity does not have it, and may be written in a moment.
    Recent,
    /// It is no entry of the index, or damaged.
    Unreadable,
}

/// Deletes an entry whose entity does not exist, or does not have it. If `is_dry`, nothing is
/// deleted. `table` is that of the entities.
pub(crate) async fn remove_orphan(
    run: &mut OperationRun<'_>,
    table: &TableName,
    index: &'static dyn AnyIndex,
    entry: &EntityKey,
    is_dry: bool,
) -> Result<Compared, Error> {
    // The entry first: an entity that gains it afterwards writes it, and then it has another ETag.
    let entries = index.table_of(table);
    let entries = entries.map_err(|error| run.annotate(error))?;
    let Some(found) = read(run, &entries, entry).await? else {
        return Ok(Compared::Right);
    };
    let Owner::Entity(owner) = index.owner_of(&found.content) else {
        return Ok(Compared::Unreadable);
    };
    let has = has_entry(run, table, index, owner.clone(), entry).await?;
    if has.is_some() {
        return Ok(Compared::Right);
    }
    let is_reserved = index.is_reserved();
    if index.is_elsewhere() && !is_reserved && !found.is_old() {
        return Ok(Compared::Recent);
    }
    if is_dry {
        return Ok(Compared::Orphan);
    }
    if let (Some(ticket), true) = (ticket_in(&found.content), is_reserved) {
        // The entity may be written until then.
        stop(run, table, owner.partition_key(), &ticket).await?;
        if has_entry(run, table, index, owner, entry).await?.is_some() {
            return Ok(Compared::Right);
        }
    }
    let is_deleted = delete_version(run, &entries, entry, &found.etag).await?;
    Ok(if is_deleted {
        Compared::Orphan
    } else {
        Compared::Right
    })
}

/// Writes the entries of the entities together with them.
pub(super) static LAYER: Layer = Layer {
    order: order::INDEX,
    commit: |run, commit, next| Box::pin(commit_with_entries(run, commit, next)),
    count: count_entries,
};

/// Counts the requests of the entries, if the stored ones are those of the entities.
fn count_entries(commit: Commit<'_>, count: &mut RequestCount) {
    // What is refused here is refused again when it is sent.
    let slots = slots_of(commit.changes).unwrap_or_default();
    count.changes += slots.len();
    count.requests += slots.iter().filter(|slot| slot.is_read_first()).count();
    count_elsewhere(commit.changes, count);
}

/// Carries out changes together with the entries of their entities, and returns the new ETags of
/// the entities. An error is that of the entity whose entry it is about. An
/// [ambiguous](Error::is_ambiguous) error is not resolved yet.
async fn commit_with_entries(
    run: &mut OperationRun<'_>,
    commit: Commit<'_>,
    next: Next<'_>,
) -> Result<ETags, Error> {
    let slots = slots_of(commit.changes)?;
    // Before anything is sent. An entry that is lost may already be missing, which only a read
    // shows.
    let certain = |slot: &&Slot| slot.after.is_some() || !slot.is_read_first();
    let certain = slots.iter().filter(certain).count();
    let count = commit.changes.len();
    let mut elsewhere = Elsewhere::of(run, commit.table, commit.changes)?;
    if let Err((position, entry)) = elsewhere.check() {
        let label = entry.index.label();
        let row_key = entry.key.row_key().as_str().to_owned();
        let error = run.annotate(Error::input(EntryProblem::Twice { label, row_key }));
        return Err(error.with_batch_index(position));
    }
    let tickets = usize::from(elsewhere.needs_ticket());
    check_count(run, commit, tickets, certain)?;
    if elsewhere.is_empty() {
        return together(run, commit, None, slots, next).await;
    }
    let mut round = 0;
    loop {
        round += 1;
        elsewhere.prepare(run).await?;
        let slots = slots_of(commit.changes)?;
        let ticket = elsewhere.ticket();
        let has_ticket = ticket.is_some();
        let error = match together(run, commit, ticket, slots, next).await {
            Ok(etags) => {
                elsewhere.complete(run).await;
                return Ok(etags);
            }
            Err(error) => error,
        };
        if error.is_ambiguous() {
            let is_stopped = elsewhere.settle(run).await;
            return Err(if is_stopped {
                error.into_not_done()
            } else {
                error
            });
        }
        let is_of_ticket = has_ticket && error.batch_index() == Some(count);
        if !is_of_ticket || !error.is_out_of_date() {
            elsewhere.withdraw(run).await;
            return Err(if is_of_ticket {
                error.without_batch_index()
            } else {
                error
            });
        }
        // Another client has taken a reserved entry, and stopped these changes.
        if round == ROUNDS || !run.pause_before_round(round).await {
            elsewhere.withdraw(run).await;
            let error = Error::timeout(STOPPED.to_owned());
            return Err(run.annotate(error));
        }
    }
}

/// Writes the entities and their entries in the same partition, in one transaction with the delete
/// of the ticket. The index in an error of the ticket is that after the entities.
async fn together(
    run: &mut OperationRun<'_>,
    commit: Commit<'_>,
    ticket: Option<EntityChange>,
    mut slots: Vec<Slot>,
    next: Next<'_>,
) -> Result<ETags, Error> {
    let Commit { table, changes, .. } = commit;
    let tickets = usize::from(ticket.is_some());
    let read_first = slots.iter_mut().filter(|slot| slot.is_read_first());
    let read_first: Vec<&mut Slot> = read_first.collect();
    let keys = read_first.iter().map(|slot| slot.key.clone()).collect();
    let found = read_all(run, table, keys).await?;
    for (slot, found) in read_first.into_iter().zip(found) {
        if slot.judge(run, table, changes, found).await?.is_some() {
            // The service refuses it.
            slot.stored = StoredEntry::Missing;
        }
    }
    let mut round = 0;
    loop {
        round += 1;
        let mut all = changes.to_vec();
        all.extend(ticket.clone());
        let mut written = Vec::new();
        for (position, slot) in slots.iter().enumerate() {
            if let Some(change) = slot.change(table) {
                written.push(position);
                all.push(change);
            }
        }
        check_count(run, commit, tickets, written.len())?;
        let with_entries = Commit {
            changes: &all,
            ..commit
        };
        let error = match next.commit(run, with_entries).await {
            Ok(mut etags) => {
                etags.truncate(changes.len());
                return Ok(etags);
            }
            Err(error) => error,
        };
        let of_entry = error.batch_index().and_then(|index| {
            let first = changes.len() + tickets;
            let position = written.get(index.checked_sub(first)?)?;
            slots.get_mut(*position)
        });
        let Some(slot) = of_entry else {
            return Err(error);
        };
        let error = error.with_batch_index(slot.owner);
        if error.is_ambiguous() || !error.is_out_of_date() {
            return Err(error);
        }
        // The entry is not as expected: it was changed by another client, or by a program that does
        // not know the index.
        let found = read(run, table, &slot.key).await?;
        if let Some(owner) = slot.judge(run, table, changes, found).await? {
            let (noun, name) = (slot.index.noun(), slot.index.name());
            return Err(error.with_details(TakenEntry {
                noun,
                index: name,
                row_key: slot.key.row_key().as_str().to_owned(),
                owner,
            }));
        }
        if round == ROUNDS || !run.pause_before_round(round).await {
            // Not the error of the entry: its status would be taken for that of the entity.
            let (label, row_key) = (slot.index.label(), slot.key.row_key().as_str());
            let message = format!("the {label} at {row_key:?} was written again and again");
            return Err(run
                .annotate(Error::timeout(message))
                .with_batch_index(slot.owner));
        }
    }
}

/// Refuses more changes than a transaction has.
fn check_count(
    run: &OperationRun<'_>,
    commit: Commit<'_>,
    tickets: usize,
    entries: usize,
) -> Result<(), Error> {
    let changes = commit.changes.len();
    let max = BATCH_CHANGES_MAX - usize::from(commit.exactly_once.is_some());
    let with_entries = changes + entries + tickets;
    if with_entries <= max {
        return Ok(());
    }
    let with = if tickets == 0 {
        "the entries of their indexes and their copies"
    } else {
        "the entries of their indexes, their copies, and the ticket of a unique index in other partitions"
    };
    let problem = EntryProblem::Count {
        changes,
        with_entries,
        with,
        max,
    };
    Err(run.annotate(Error::input(problem)))
}

/// A key of an index, and what the changes together do to the entry under it.
struct Slot {
    index: &'static dyn AnyIndex,
    key: EntityKey,
    /// The change that an error of the entry belongs to: the one that writes it, if any does.
    owner: usize,
    before: Option<usize>,
    after: Option<(usize, Entry)>,
    stored: StoredEntry,
}

/// The stored entry under a key, as far as it is known.
enum StoredEntry {
    Unread,
    Missing,
    /// The entry belongs to another entity than the one that gives it up or keeps it.
    Foreign,
    Present(ETag),
    /// The entity that a part goes into has to be replaced by this content.
    Reduced(ETag, Bytes),
}

/// The keys that the changes are about, each once. Refuses two entities that would have one entry.
fn slots_of(changes: &[EntityChange]) -> Result<Vec<Slot>, Error> {
    let mut slots = BTreeMap::new();
    for (position, change) in changes.iter().enumerate() {
        let here = entries_of(change).filter(|entry| !entry.index.is_elsewhere());
        for entry in here {
            let new = |key: &EntityKey| Slot {
                index: entry.index,
                key: key.clone(),
                owner: position,
                before: None,
                after: None,
                stored: StoredEntry::Unread,
            };
            if let Some(key) = &entry.before {
                let slot = slots.entry(key.clone()).or_insert_with(|| new(key));
                slot.before = Some(position);
            }
            if let Some(after @ Entry { key, .. }) = &entry.after {
                let (label, row_key) = (entry.index.label(), key.row_key().as_str().to_owned());
                let failed = |problem| {
                    let error = refused(change.operation, problem).with_key(&change.key);
                    error.with_batch_index(position)
                };
                if changes.iter().any(|change| change.key == *key) {
                    return Err(failed(EntryProblem::Changed { label, row_key }));
                }
                let slot = slots.entry(key.clone()).or_insert_with(|| new(key));
                let mut after = after.clone();
                if let Some((owner, known)) = &slot.after {
                    let are_parts = slot.index.is_part() && entry.index.is_part();
                    let joined = are_parts.then(|| joined(known, &after)).transpose();
                    let joined = joined
                        .map_err(|error| refused(change.operation, error).with_key(&change.key))?;
                    if let Some(joined) = joined.flatten() {
                        after = joined;
                    } else if *owner != position {
                        return Err(failed(EntryProblem::Twice { label, row_key }));
                    } else if slot.index.name() != entry.index.name() {
                        let other = slot.index.label();
                        return Err(failed(EntryProblem::Meet {
                            label,
                            other,
                            row_key,
                        }));
                    } else if known.body != after.body {
                        return Err(failed(EntryProblem::Different { label, row_key }));
                    }
                }
                slot.after = Some((position, after));
                slot.owner = position;
            }
        }
    }
    Ok(slots.into_values().collect())
}

impl Slot {
    /// Returns true if the entry may belong to another entity than expected, so that it is read
    /// first.
    fn is_read_first(&self) -> bool {
        let has_absent = |(_, after): &(usize, Entry)| !after.absent.is_empty();
        self.index.is_unique() && self.before.is_some()
            || self.after.as_ref().is_some_and(has_absent)
    }

    /// The change of the entry; `None` where it is left as it is.
    fn change(&self, table: &TableName) -> Option<EntityChange> {
        let mut body = self.after.as_ref().map(|(_, entry)| &entry.body);
        let kind = match (&self.stored, &self.after) {
            (StoredEntry::Unread, _) if self.index.is_part() => {
                ChangeKind::Update(Mode::Merge, Some(IfMatch::Any))
            }
            (StoredEntry::Present(etag), _) if self.index.is_part() => {
                ChangeKind::Update(Mode::Merge, Some(IfMatch::ETag(etag.clone())))
            }
            (StoredEntry::Reduced(etag, whole), _) => {
                body = Some(whole);
                ChangeKind::Update(Mode::Replace, Some(IfMatch::ETag(etag.clone())))
            }
            (StoredEntry::Foreign, _) | (StoredEntry::Missing, None) => return None,
            (StoredEntry::Missing, Some(_)) => ChangeKind::Insert,
            (StoredEntry::Present(etag), after) => {
                let if_match = IfMatch::ETag(etag.clone());
                match after {
                    Some(_) => ChangeKind::Update(Mode::Replace, Some(if_match)),
                    None => ChangeKind::Delete(if_match),
                }
            }
            (StoredEntry::Unread, None) => ChangeKind::Delete(IfMatch::Any),
            // A conflict shows that the entry exists.
            (StoredEntry::Unread, Some(_)) if self.before.is_none() => ChangeKind::Insert,
            // Writes a missing entry, too.
            (StoredEntry::Unread, Some(_)) => ChangeKind::Update(Mode::Replace, None),
        };
        let body = body.cloned().unwrap_or_default();
        let entity = EncodedEntity::alone(self.key.clone(), body);
        Some(EntityChange::of(table.clone(), kind, entity))
    }

    /// Determines whether these changes may write the entry that was read. Returns the other entity
    /// that has the entry, where one of these changes would gain it.
    ///
    /// An entry whose entity does not have it any more was left behind by a program that does not
    /// know the index.
    async fn judge(
        &mut self,
        run: &mut OperationRun<'_>,
        table: &TableName,
        changes: &[EntityChange],
        found: Option<DatedEntity>,
    ) -> Result<Option<EntityKey>, Error> {
        if let (true, Some((_, part))) = (self.index.is_part(), &self.after) {
            let Some(found) = found else {
                let problem = NoEntityError::new(self.index.name(), part);
                let error = run.annotate(Error::input(problem));
                return Err(error.with_batch_index(self.owner));
            };
            let reduced = replaced(&found.content, part).map_err(|error| run.annotate(error))?;
            self.stored = match reduced {
                Some(body) => StoredEntry::Reduced(found.etag, body),
                None => StoredEntry::Present(found.etag),
            };
            return Ok(None);
        }
        let Some(found) = found else {
            self.stored = StoredEntry::Missing;
            return Ok(None);
        };
        self.stored = StoredEntry::Present(found.etag);
        let after = self.after.as_ref().map(|(after, _)| *after);
        let is_kept = after.is_some() && after == self.before;
        let is_gained = after.is_some() && !is_kept;
        let other = match self.index.owner_of(&found.content) {
            // An entity whose entries these changes write loses or keeps its entry by them.
            Owner::Entity(owner) if is_changed(changes, &owner) => None,
            Owner::Entity(owner) if after.is_none() => Some(owner),
            Owner::Entity(owner) => has_entry(run, table, self.index, owner, &self.key).await?,
            // It is written anew by the entity that has it, and no other.
            Owner::Damaged => (!is_kept).then(|| self.key.clone()),
            Owner::NoEntry => Some(self.key.clone()),
        };
        if other.is_some() && !is_gained {
            if is_kept {
                event::entry_of_other(run, self.index.name());
            }
            self.stored = StoredEntry::Foreign;
            return Ok(None);
        }
        Ok(other)
    }
}

/// Returns true if the changes write the entries of an entity.
fn is_changed(changes: &[EntityChange], entity: &EntityKey) -> bool {
    let mut changes = changes.iter();
    changes.any(|change| change.key == *entity && change.riders.find::<EntryRider>().is_some())
}

#[derive(Clone, Debug, thiserror::Error)]
enum EntryProblem {
    #[error(
        "a batch has at most {max} changes, and these {changes} are {with_entries} with {with}"
    )]
    Count {
        changes: usize,
        with_entries: usize,
        with: &'static str,
        max: usize,
    },
    #[error(
        "the {label} at {row_key:?} is an entity that the batch changes, or that the transaction has read"
    )]
    Changed { label: String, row_key: String },
    #[error("two entities of the batch have one {label}, at {row_key:?}")]
    Twice { label: String, row_key: String },
    #[error("the {other} and the {label} have different values, at {row_key:?}")]
    Meet {
        label: String,
        other: String,
        row_key: String,
    },
    #[error("the entity has two different forms of the {label}, at {row_key:?}")]
    Different { label: String, row_key: String },
}

const ROUNDS: u32 = 16;
const STOPPED: &str = "other clients have taken an entry of a unique index again and again, which this write had reserved";
