//! A client of a unique index with entries in other partitions: a writer of an entity, or a repair.

use super::rules::Unique;
use super::{Key, Mutant, Row, Seen, VALUES, Verb, entity, entry};
use crate::explore::{Answer, Change, Client, Next, Rows};
use At::{
    ChangeEntry, Commit, End, Fence, InsertTicket, Judge, Look, ReadEntity, ReadEntry, ReadOld,
    ReadTicket, RemoveTicket, Reserve, Settle, SettleOwner, Take,
};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    ReadEntity,
    /// The entry of the value that the entity has.
    ReadOld,
    InsertTicket,
    ReadTicket,
    // The entry of the value that is gained.
    Reserve,
    ReadEntry,
    Judge(Seen, Round),
    Take(Seen),
    Commit,
    /// Stops the write with that ticket, and goes on with what follows.
    Fence(u8, Then),
    // After the commit, and for a repair: an entry whose state is to be determined.
    Settle(u8),
    SettleOwner(u8, Seen),
    ChangeEntry(u8, Action),
    Look,
    RemoveTicket(u8),
    End,
}

/// The owner of an entry is read before its ticket is deleted, and once more afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Round {
    First,
    Again,
}

/// The step after the delete of a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Then {
    JudgeAgain(Seen),
    Take(Seen),
    /// The entry of the old value was read: the next one is that of the new value.
    Gain,
    /// The entity has the value already: the service refuses the write.
    Commit,
    SettleAll,
    SettleOwner(u8, Seen),
}

/// The change of an entry after the commit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Action {
    /// It names its entity, without a ticket.
    Confirm(u8, u8),
    Delete(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Outcome {
    Written,
    Refused,
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Claim {
    verb: Verb,
    number: u8,
    attempt: u8,
    /// How often the entry was read that is gained.
    rounds: u8,
    at: At,
    base: u8,
    /// The entity as it was read: its ETag and its value.
    stored: Option<(u8, u8)>,
    /// The ETag of the own ticket.
    ticket: Option<u8>,
    /// The ETags of the entries that are gained, and lost or kept.
    gained: Option<u8>,
    old: Option<u8>,
    outcome: Option<Outcome>,
    mutant: Mutant,
}

impl Claim {
    pub const fn new(verb: Verb, number: u8, mutant: Mutant) -> Self {
        Self {
            verb,
            number,
            attempt: 0,
            rounds: 0,
            at: match verb {
                Verb::Last => Look,
                Verb::Repair(value) => Settle(value),
                Verb::Insert(..) => InsertTicket,
                Verb::Set(..) | Verb::Delete(_) => ReadEntity,
            },
            base: 0,
            stored: None,
            ticket: None,
            gained: None,
            old: None,
            outcome: None,
            mutant,
        }
    }

    fn end(&mut self) {
        *self = Self::new(self.verb, self.number, self.mutant);
        self.at = if self.verb == Verb::Last { Look } else { End };
    }

    fn entity(&self) -> u8 {
        match self.verb {
            Verb::Insert(entity, _) | Verb::Set(entity, _) | Verb::Delete(entity) => entity,
            Verb::Repair(_) | Verb::Last => unreachable!("a repair writes no entity"),
        }
    }

    /// The value that the entity is to have.
    fn wanted(&self) -> Option<u8> {
        match self.verb {
            Verb::Insert(_, value) | Verb::Set(_, value) => Some(value),
            Verb::Delete(_) | Verb::Repair(_) | Verb::Last => None,
        }
    }

    fn old_value(&self) -> Option<u8> {
        self.stored.map(|(_, value)| value)
    }

    fn ticket(&self) -> u8 {
        2 * self.number + self.attempt
    }

    const fn is_own(&self, ticket: u8) -> bool {
        ticket / 2 == self.number
    }

    /// The value whose entry is reserved.
    fn gains(&self) -> Option<u8> {
        let is_kept = self.wanted() == self.old_value() && self.old.is_some();
        self.wanted().filter(|_| !is_kept)
    }

    fn gained_value(&self) -> u8 {
        self.gains().expect("a value is gained")
    }

    /// Goes on after the entry of the old value was read.
    fn gain(&mut self) {
        self.at = match (self.gains(), self.mutant) {
            (None, _) => Commit,
            (Some(_), Mutant::CommitWithoutTicket | Mutant::TicketAfterReservation) => Reserve,
            (Some(_), _) => InsertTicket,
        };
    }

    fn reserved(&mut self, etag: u8) {
        self.gained = Some(etag);
        self.at = match self.mutant {
            Mutant::TicketAfterReservation => InsertTicket,
            _ => Commit,
        };
    }

    fn has_ticket(&mut self, etag: u8) {
        self.ticket = Some(etag);
        self.at = match self.mutant {
            Mutant::TicketAfterReservation => Commit,
            _ => Reserve,
        };
    }

    /// The values whose entries this client has read or written.
    fn values(&self) -> impl Iterator<Item = u8> {
        let (gained, old) = (self.gains(), self.old.and(self.old_value()));
        (1..=VALUES).filter(move |&value| gained == Some(value) || old == Some(value))
    }

    /// Goes on with the entry of the next value after the commit.
    fn after(&mut self, value: u8) {
        let next = self.values().find(|&it| it > value);
        let Some(next) = next.filter(|_| self.outcome.is_some()) else {
            return self.end();
        };
        let is_wanted = self.wanted() == Some(next);
        let known = if self.gains() == Some(next) {
            self.gained
        } else {
            self.old
        };
        self.at = match (self.outcome, known) {
            (Some(Outcome::Written), Some(_))
                if !is_wanted && self.mutant == Mutant::ReleasedAsReadAfterCommit =>
            {
                Settle(next)
            }
            (Some(Outcome::Written), Some(etag)) if is_wanted => {
                ChangeEntry(next, Action::Confirm(etag, self.entity()))
            }
            (Some(Outcome::Written), Some(etag)) => ChangeEntry(next, Action::Delete(etag)),
            _ => Settle(next),
        };
    }

    fn finish(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
        self.at = match (outcome, self.ticket) {
            (Outcome::Refused | Outcome::Unknown, Some(_))
                if self.mutant != Mutant::SettledWithoutFence =>
            {
                Fence(self.ticket(), Then::SettleAll)
            }
            _ => return self.after(0),
        };
    }

    /// The owner of the entry of the gained value was read.
    fn judge(&mut self, seen: Seen, round: Round, has_value: bool) {
        let (fence, mutant) = (seen.ticket, self.mutant);
        self.at = match (round, fence) {
            _ if has_value && seen.owner == self.entity() => Fence(self.ticket(), Then::Commit),
            _ if has_value || mutant == Mutant::EntryAloneIsConflict => {
                return self.finish(Outcome::Refused);
            }
            (Round::First, Some(ticket)) => match mutant {
                Mutant::TakenWithoutFence => Take(seen),
                Mutant::TakenWithoutSecondRead => Fence(ticket, Then::Take(seen)),
                Mutant::FencedAfterSecondRead => Judge(seen, Round::Again),
                _ => Fence(ticket, Then::JudgeAgain(seen)),
            },
            (Round::Again, Some(ticket)) if mutant == Mutant::FencedAfterSecondRead => {
                Fence(ticket, Then::Take(seen))
            }
            _ => Take(seen),
        };
    }

    /// An entry and its owner were read.
    fn settle(&mut self, value: u8, seen: Seen, has_value: bool) {
        self.at = match (has_value, seen.ticket) {
            (true, None) => return self.after(value),
            (true, Some(_)) => ChangeEntry(value, Action::Confirm(seen.etag, seen.owner)),
            (false, _) => ChangeEntry(value, Action::Delete(seen.etag)),
        };
    }

    fn look(&mut self, rows: &Rows<Key, Row>) {
        for value in 1..=VALUES {
            let Some(seen) = entry(rows, value) else {
                continue;
            };
            let has_value = entity(rows, seen.owner).is_some_and(|(_, it)| it == value);
            if !has_value || seen.ticket.is_some() {
                return self.settle(value, seen, has_value);
            }
        }
        let mut tickets = rows.iter().filter_map(|(key, _)| match key {
            Key::Ticket(ticket) => Some(ticket),
            Key::Entity(_) | Key::Entry(_) => None,
        });
        if let Some(ticket) = tickets.next() {
            self.at = RemoveTicket(ticket);
        }
    }

    fn commit(&self) -> Vec<Change<Key, Row>> {
        let key = Key::Entity(self.entity());
        let etag = self.stored.map(|(etag, _)| etag);
        let write = match (etag, self.wanted()) {
            (Some(etag), Some(value)) => Change::Replace(key, Row::Entity(value), etag),
            (None, Some(value)) => Change::Insert(key, Row::Entity(value)),
            (etag, None) => Change::Delete(key, etag),
        };
        let ticket = self.ticket.map(|etag| {
            let is_checked = self.mutant != Mutant::TicketUsedUnconditionally;
            Change::Delete(Key::Ticket(self.ticket()), is_checked.then_some(etag))
        });
        [write].into_iter().chain(ticket).collect()
    }

    /// The step after a ticket was deleted.
    fn then(&mut self, then: Then) {
        self.at = match then {
            Then::JudgeAgain(seen) => Judge(seen, Round::Again),
            Then::Take(seen) => Take(seen),
            Then::Commit => Commit,
            Then::SettleOwner(value, seen) => SettleOwner(value, seen),
            Then::Gain => return self.gain(),
            Then::SettleAll => return self.after(0),
        };
    }
}

/// How often a client begins anew because another one has deleted its ticket.
const ATTEMPTS: u8 = 2;
/// How often it takes an entry that another client has reserved.
const ROUNDS: u8 = 3;

impl Client for Claim {
    type Key = Key;
    type Row = Row;
    type Rules = Unique;

    fn next(&self) -> Vec<Next<Key, Row>> {
        let ticket = Some(self.ticket()).filter(|_| self.mutant != Mutant::CommitWithoutTicket);
        let change = match self.at {
            End => return Vec::new(),
            Commit => return vec![Next::Send(self.commit())],
            InsertTicket => Change::Insert(Key::Ticket(self.ticket()), Row::Ticket),
            Reserve => {
                let row = Row::Entry(self.entity(), ticket);
                Change::Insert(Key::Entry(self.gained_value()), row)
            }
            Take(seen) => {
                let (key, row) = (
                    Key::Entry(self.gained_value()),
                    Row::Entry(self.entity(), ticket),
                );
                match self.mutant {
                    Mutant::TakenUnconditionally => Change::Upsert(key, row),
                    _ => Change::Replace(key, row, seen.etag),
                }
            }
            Fence(ticket, _) | RemoveTicket(ticket) => Change::Delete(Key::Ticket(ticket), None),
            ChangeEntry(value, Action::Confirm(etag, owner)) => {
                let (key, row) = (Key::Entry(value), Row::Entry(owner, None));
                match self.mutant {
                    Mutant::ConfirmedUnconditionally => Change::Upsert(key, row),
                    _ => Change::Replace(key, row, etag),
                }
            }
            ChangeEntry(value, Action::Delete(etag)) => {
                let is_written = self.outcome == Some(Outcome::Written);
                let is_checked = match self.mutant {
                    Mutant::ReleasedUnconditionally => !is_written,
                    Mutant::WithdrawnUnconditionally => is_written,
                    _ => true,
                };
                Change::Delete(Key::Entry(value), is_checked.then_some(etag))
            }
            _ => return vec![Next::Read],
        };
        vec![Next::Send(vec![change])]
    }

    fn read(&mut self, rows: &Rows<Key, Row>) {
        match self.at {
            ReadEntity => {
                self.stored = entity(rows, self.entity());
                match self.stored {
                    None => self.end(),
                    Some(_) => self.at = ReadOld,
                }
            }
            ReadOld => {
                let value = self.old_value().expect("the entity was read");
                let seen = entry(rows, value).filter(|seen| seen.owner == self.entity());
                self.old = seen.map(|seen| seen.etag);
                match seen.and_then(|seen| seen.ticket) {
                    Some(ticket) if self.mutant != Mutant::KeptTicketIgnored => {
                        self.at = Fence(ticket, Then::Gain);
                    }
                    _ => self.gain(),
                }
            }
            ReadTicket => match rows.get(Key::Ticket(self.ticket())) {
                Some(found) => self.has_ticket(found.etag),
                None => self.at = InsertTicket,
            },
            // Two clients take it from each other, and neither has written its entity.
            ReadEntry if self.rounds == ROUNDS => self.finish(Outcome::Refused),
            ReadEntry => {
                self.rounds += 1;
                match entry(rows, self.gained_value()) {
                    None => self.at = Reserve,
                    Some(seen) if seen.ticket == Some(self.ticket()) => self.reserved(seen.etag),
                    Some(seen) => self.at = Judge(seen, Round::First),
                }
            }
            Judge(seen, round) => {
                let value = self.gained_value();
                let has_value = entity(rows, seen.owner).is_some_and(|(_, it)| it == value);
                self.judge(seen, round, has_value);
            }
            Settle(value) => match entry(rows, value) {
                None => self.after(value),
                Some(seen)
                    if self.outcome == Some(Outcome::Written)
                        && self.mutant == Mutant::ReleasedAsReadAfterCommit =>
                {
                    self.at = ChangeEntry(value, Action::Delete(seen.etag));
                }
                Some(seen) => {
                    self.at = match seen.ticket {
                        Some(ticket) if self.verb == Verb::Repair(value) => match self.mutant {
                            Mutant::RepairedWithoutFence => SettleOwner(value, seen),
                            _ => Fence(ticket, Then::SettleOwner(value, seen)),
                        },
                        // The client with that ticket determines what becomes of the entry.
                        Some(ticket) if !self.is_own(ticket) => return self.after(value),
                        // Another entity has taken it.
                        _ if self.verb != Verb::Repair(value) && seen.owner != self.entity() => {
                            return self.after(value);
                        }
                        _ => SettleOwner(value, seen),
                    };
                }
            },
            SettleOwner(value, seen) => {
                let has_value = entity(rows, seen.owner).is_some_and(|(_, it)| it == value);
                self.settle(value, seen, has_value);
            }
            Look => self.look(rows),
            at => unreachable!("{at:?} is no read"),
        }
    }

    fn answer(&mut self, answer: Answer) {
        match (self.at, answer) {
            (InsertTicket, Answer::Done(etag)) => self.has_ticket(etag),
            (InsertTicket, _) => self.at = ReadTicket,
            (Reserve | Take(_), Answer::Done(etag)) => self.reserved(etag),
            (Reserve | Take(_), _) => self.at = ReadEntry,
            (Fence(..), Answer::Unknown) => {}
            (Fence(_, then), _) => self.then(then),
            (Commit, Answer::Done(_)) => self.finish(Outcome::Written),
            (Commit, Answer::Refused(1, _)) if self.attempt + 1 < ATTEMPTS => {
                self.attempt += 1;
                self.ticket = None;
                self.gained = None;
                self.at = InsertTicket;
            }
            (Commit, Answer::Refused(..)) => self.finish(Outcome::Refused),
            (Commit, Answer::Unknown) => self.finish(Outcome::Unknown),
            // Another client was faster, or the own request came before its copy.
            (ChangeEntry(value, _), Answer::Refused(..)) if self.verb != Verb::Last => {
                self.outcome = self.outcome.map(|_| Outcome::Refused);
                self.at = Settle(value);
            }
            (ChangeEntry(value, _), _) => self.after(value),
            (RemoveTicket(_), _) => self.end(),
            (at, answer) => unreachable!("{answer:?} at {at:?}"),
        }
    }

    fn base(&mut self) -> &mut u8 {
        &mut self.base
    }

    fn is_last(&self) -> bool {
        self.verb == Verb::Last
    }
}
