//! A client of the outbox: a writer, a worker or an operator.

use std::fmt;

use super::history::History;
use super::view::{Seen, View, entries, first, head, target};
use super::{Entry, Head, Key, Mutant, NUMBERS, POINTERS, Role, Row, Step, Target, Writes};
use crate::explore::{Answer, Change, Client, Next, Rows};
use At::{
    Bury, Commit, DeleteEntity, End, Forget, MoveHead, PutBack, ReadDead, ReadHead, ReadPointers,
    ReadTarget, ReadView, ReadViewAgain, Remove, SeekCommit, SetAside, SweepGrave, SweepTarget,
    WritePointer, WriteTarget,
};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    // A writer, or an operator.
    ReadHead,
    ReadDead,
    WritePointer,
    Commit,
    /// Looks in the head whether the refused commit was carried out, and starts over or ends
    /// otherwise.
    SeekCommit {
        starts_over: bool,
    },
    PutBack,
    /// Replaces the head, so that what rests on an older one is refused.
    MoveHead,
    // A writer after its commit, or a worker.
    ReadPointers,
    ReadView,
    ReadViewAgain,
    ReadTarget(u8),
    WriteTarget(u8, Option<u8>, Option<Target>),
    /// Removes the applied steps from the log.
    Remove,
    /// Moves an applied delete step out of the log.
    Bury(u8),
    SetAside(u8),
    SweepTarget(u8, Option<u8>),
    SweepGrave(u8),
    /// Deletes the pointer of a write that has no entries any more.
    Forget(u8),
    DeleteEntity,
    End,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outbox {
    role: Role,
    at: At,
    base: u8,
    /// The own pointer.
    own: u8,
    view: View,
    /// True if the step of this number was applied, and is in the log.
    applied: [bool; NUMBERS as usize],
    /// True if an entry with this pointer was in the log.
    known: [bool; POINTERS as usize],
    /// The ETags of the pointers that a worker has found.
    pointers: [Option<u8>; POINTERS as usize],
    /// True if the head was replaced since.
    has_moved_head: bool,
    mutant: Mutant,
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.role, self.at)
    }
}

impl Outbox {
    pub fn new(role: Role, own: u8, mutant: Mutant) -> Self {
        Self {
            role,
            at: match role {
                Role::Writer(..) if mutant == Mutant::PointerBeforeHead => WritePointer,
                Role::Writer(..) | Role::Operator => ReadHead,
                Role::Worker { .. } | Role::Last => ReadPointers,
                Role::Deleter => DeleteEntity,
            },
            base: 0,
            own,
            view: View::default(),
            applied: Default::default(),
            known: Default::default(),
            pointers: Default::default(),
            has_moved_head: false,
            mutant,
        }
    }

    /// Ends, or starts over where it is the last client. Forgets all, so that states that differ
    /// only in it are one.
    fn end(&mut self) {
        *self = Self::new(self.role, self.own, self.mutant);
        self.at = match self.role {
            Role::Last => ReadPointers,
            _ => End,
        };
    }

    fn read_view(&mut self) {
        self.view = View::default();
        self.applied = Default::default();
        self.at = ReadView;
    }

    fn seen(&self, number: u8) -> Seen {
        self.view.log[usize::from(number)].expect("it was in the log")
    }

    /// The commit of a writer follows the head and the pointer.
    fn after(&self, at: At) -> At {
        match (at, self.role) {
            (WritePointer, Role::Operator) => PutBack,
            (WritePointer, _) if self.mutant == Mutant::PointerBeforeHead => ReadHead,
            (ReadHead, Role::Operator) => ReadDead,
            (ReadHead, _) if self.mutant == Mutant::PointerBeforeHead => Commit,
            (ReadHead, _) if self.mutant == Mutant::PointerAfterCommit => Commit,
            (ReadHead, _)
                if self.mutant == Mutant::PointerNotWrittenAgain && self.has_moved_head =>
            {
                Commit
            }
            (ReadHead, _) => WritePointer,
            (WritePointer, _) if self.mutant == Mutant::PointerAfterCommit => ReadView,
            _ => Commit,
        }
    }

    /// Takes the view that was read.
    fn take(&mut self, view: View) {
        for (known, pointer) in self.known.iter_mut().zip(1..) {
            *known |= view.has(pointer, Mutant::None);
        }
        self.view = view;
        self.applied = Default::default();
        self.go_on();
    }

    /// Takes the next step, after the view or a part of it was dealt with.
    fn go_on(&mut self) {
        let mutant = self.mutant;
        let has_applied = self.applied.contains(&true);
        if let Some((number, seen)) = first(&self.view.log) {
            let is_blocked = first(&self.view.dead).is_some_and(|(dead, _)| dead < number);
            let is_delete = seen.entry.step == Step::Delete;
            self.at = match is_blocked && mutant != Mutant::DeadOvertaken {
                true => SetAside(number),
                false if is_delete && has_applied && mutant != Mutant::DeleteBeforeRemoval => {
                    Remove
                }
                false => ReadTarget(number),
            };
            return;
        }
        if has_applied {
            self.at = Remove;
            return;
        }
        let is_worker = matches!(self.role, Role::Worker { .. } | Role::Last);
        let mut graves = (0..).zip(self.view.graves);
        let old = graves.find(|(_, grave)| grave.is_some_and(|grave| grave.is_old));
        if let Some((number, _)) = old
            && is_worker
        {
            self.at = SweepTarget(number, None);
            return;
        }
        for pointer in 1..=POINTERS {
            let index = usize::from(pointer) - 1;
            let is_lost = !self.known[index] && self.pointers[index].is_some();
            if self.view.has(pointer, mutant) || !(self.known[index] || is_lost) {
                continue;
            }
            let needs_head = is_lost && mutant != Mutant::HeadNotMoved;
            self.at = if needs_head && !self.has_moved_head {
                MoveHead
            } else {
                Forget(pointer)
            };
            return;
        }
        self.end();
    }

    /// Returns true if the write to the target rests on a log that was read too long ago.
    fn has_paused(&self) -> bool {
        self.base == 0
    }

    fn read_target(&mut self, number: u8, found: Option<(u8, Target)>) {
        let step = self.seen(number).entry.step;
        let stamp = found.map_or(0, |(_, target)| target.stamp);
        let is_done = match self.mutant {
            Mutant::StampsComparedByGreater => stamp > number,
            _ => stamp >= number,
        };
        // An earlier step came late, after a delete: the target is absent but for it.
        let graves = (0_u8..).zip(self.view.graves);
        let graves = graves.filter_map(|(number, grave)| grave.map(|_| number));
        let grave = graves.max();
        let is_late =
            grave.is_some_and(|grave| stamp < grave) && self.mutant != Mutant::GravesIgnored;
        let target = found.map(|(_, target)| target.properties);
        let next = step.on(target.filter(|_| !is_late));
        let next = next.map(|properties| Target {
            stamp: number,
            properties,
        });
        if is_done || (found.is_none() && next.is_none()) {
            self.done(number);
        } else {
            self.at = WriteTarget(number, found.map(|(etag, _)| etag), next);
        }
    }

    /// The step was applied.
    fn done(&mut self, number: u8) {
        if self.seen(number).entry.step == Step::Delete {
            self.at = Bury(number);
            return;
        }
        self.applied[usize::from(number)] = true;
        self.view.log[usize::from(number)] = None;
        self.go_on();
    }

    /// The commit was carried out.
    fn committed(&mut self) {
        if self.mutant == Mutant::PointerAfterCommit {
            self.at = WritePointer;
        } else if matches!(self.role, Role::Writer(_, Writes::AndEnds)) {
            self.end();
        } else {
            self.has_moved_head = false;
            self.read_view();
        }
    }

    /// Another client has replaced the head.
    fn start_over(&mut self) {
        self.has_moved_head = true;
        self.at = Self::new(self.role, self.own, self.mutant).at;
    }

    /// The change of the head of the view that makes it this one.
    fn replace_head(&self, head: Head) -> Change<Key, Row> {
        match self.view.head {
            _ if self.mutant == Mutant::HeadNotInCommit => {
                Change::Upsert(Key::Head, Row::Head(head))
            }
            Some((etag, _)) => Change::Replace(Key::Head, Row::Head(head), etag),
            None => Change::Insert(Key::Head, Row::Head(head)),
        }
    }

    fn head(&self) -> Head {
        let none = Head {
            next: 1,
            moves: 0,
            commits: 0,
        };
        self.view.head.map_or(none, |(_, head)| head)
    }

    /// The head with one more move.
    fn moved_head(&self) -> Change<Key, Row> {
        let head = self.head();
        self.replace_head(Head {
            moves: head.moves + 1,
            ..head
        })
    }

    /// That of a commit, whose changes of the user's come first.
    fn index_of_head(&self) -> usize {
        let has_own = matches!(self.role, Role::Writer(_, Writes::WhatIsRefused));
        usize::from(has_own)
    }

    fn request(&self) -> Vec<Change<Key, Row>> {
        match self.at {
            DeleteEntity => vec![Change::Delete(Key::Entity, None)],
            WritePointer => vec![Change::Upsert(Key::Pointer(self.own), Row::Pointer)],
            Commit => {
                let Role::Writer(step, writes) = self.role else {
                    unreachable!("only a writer commits")
                };
                let (pointer, head) = (self.own, self.head());
                let next = Head {
                    next: head.next + 1,
                    commits: head.commits | 1 << pointer,
                    ..head
                };
                let entry = Row::Entry(Entry { pointer, step });
                let own = Change::Insert(Key::Entity, Row::Entity);
                let own = Some(own).filter(|_| writes == Writes::WhatIsRefused);
                let of_outbox = [
                    self.replace_head(next),
                    Change::Insert(Key::Entry(head.next), entry),
                ];
                own.into_iter().chain(of_outbox).collect()
            }
            PutBack => {
                let (number, seen) = first(&self.view.dead).expect("one is dead");
                let entry = Entry {
                    pointer: self.own,
                    ..seen.entry
                };
                vec![
                    self.moved_head(),
                    Change::Delete(Key::Dead(number), Some(seen.etag)),
                    Change::Insert(Key::Entry(number), Row::Entry(entry)),
                ]
            }
            MoveHead => vec![self.replace_head(self.head())],
            WriteTarget(_, etag, next) => vec![match (etag, next.map(Row::Target)) {
                (_, Some(row)) if self.mutant == Mutant::TargetUnconditional => {
                    Change::Upsert(Key::Target, row)
                }
                (None, Some(row)) => Change::Insert(Key::Target, row),
                (Some(etag), Some(row)) => Change::Replace(Key::Target, row, etag),
                (etag, None) => Change::Delete(Key::Target, etag),
            }],
            Remove => {
                let applied = (0..).zip(self.applied).filter(|(_, applied)| *applied);
                applied
                    .map(|(number, _)| Change::Delete(Key::Entry(number), None))
                    .collect()
            }
            Bury(number) => {
                let seen = self.seen(number);
                let delete = Change::Delete(Key::Entry(number), Some(seen.etag));
                let grave = Change::Insert(Key::Grave(number), Row::Entry(seen.entry));
                match self.mutant {
                    Mutant::GraveDropped => vec![delete],
                    _ => vec![delete, grave],
                }
            }
            SetAside(number) => {
                let seen = self.seen(number);
                vec![
                    self.moved_head(),
                    Change::Delete(Key::Entry(number), Some(seen.etag)),
                    Change::Insert(Key::Dead(number), Row::Entry(seen.entry)),
                ]
            }
            SweepTarget(_, etag) => vec![Change::Delete(Key::Target, etag)],
            SweepGrave(number) => vec![Change::Delete(Key::Grave(number), None)],
            Forget(pointer) => {
                let index = usize::from(pointer) - 1;
                let etag = self.pointers[index].filter(|_| !self.known[index]);
                let etag = etag.filter(|_| self.mutant != Mutant::PointerDeletedUnconditionally);
                vec![Change::Delete(Key::Pointer(pointer), etag)]
            }
            _ => Vec::new(),
        }
    }
}

impl Client for Outbox {
    type Key = Key;
    type Row = Row;
    type Rules = History;

    fn next(&self) -> Vec<Next<Key, Row>> {
        match self.at {
            End => Vec::new(),
            WriteTarget(..) if self.has_paused() => vec![Next::Read],
            ReadTarget(number) if matches!(self.role, Role::Worker { sets_aside: true }) => {
                let at = SetAside(number);
                let set_aside = Self { at, ..*self }.request();
                vec![Next::Read, Next::Send(set_aside)]
            }
            SweepTarget(_, None) => vec![Next::Read],
            _ => match self.request() {
                none if none.is_empty() => vec![Next::Read],
                request => vec![Next::Send(request)],
            },
        }
    }

    fn read(&mut self, rows: &Rows<Key, Row>) {
        match self.at {
            ReadHead => {
                self.view.head = head(rows);
                self.at = self.after(ReadHead);
            }
            SeekCommit { starts_over } => {
                let commits = head(rows).map_or(0, |(_, head)| head.commits);
                match commits & 1 << self.own != 0 {
                    true => self.committed(),
                    false if starts_over => self.start_over(),
                    false => self.end(),
                }
            }
            ReadDead if self.role == Role::Operator => {
                self.view.dead = entries(rows, Key::Dead);
                match first(&self.view.dead) {
                    Some(_) => self.at = WritePointer,
                    None => self.end(),
                }
            }
            ReadPointers => {
                for (pointer, etag) in (1..).zip(&mut self.pointers) {
                    *etag = rows.get(Key::Pointer(pointer)).map(|found| found.etag);
                }
                self.at = ReadView;
                // What it reads in several steps is the same, since no other client is left.
                if self.role == Role::Last {
                    let dead = entries(rows, Key::Dead);
                    self.base = rows.now();
                    self.take(View {
                        dead,
                        ..View::page(rows)
                    });
                }
            }
            ReadView => {
                self.base = rows.now();
                let page = View::page(rows);
                if page.moves() == 0 {
                    self.take(page);
                } else {
                    self.view = page;
                    self.at = ReadDead;
                }
            }
            ReadDead => {
                self.view.dead = entries(rows, Key::Dead);
                match self.mutant {
                    Mutant::ViewReadOnce => self.take(self.view),
                    _ => self.at = ReadViewAgain,
                }
            }
            ReadViewAgain => {
                self.base = rows.now();
                let dead = self.view.dead;
                let page = View {
                    dead,
                    ..View::page(rows)
                };
                if page.moves() == self.view.moves() {
                    self.take(page);
                } else {
                    self.view = page;
                    self.at = ReadDead;
                }
            }
            // The clock was looked at before the request was sent.
            WriteTarget(..) => self.read_view(),
            ReadTarget(number) => {
                if self.mutant == Mutant::TargetReadIsBase {
                    self.base = rows.now();
                }
                self.read_target(number, target(rows));
            }
            SweepTarget(number, _) => {
                let late = target(rows).filter(|(_, target)| target.stamp < number);
                self.at = late.map_or(SweepGrave(number), |(etag, _)| {
                    SweepTarget(number, Some(etag))
                });
            }
            at => unreachable!("{at:?} is no read"),
        }
    }

    fn answer(&mut self, answer: Answer) {
        let is_done = matches!(answer, Answer::Done(_));
        match self.at {
            // The pointer is there, but may have the ETag that it had before.
            WritePointer
                if answer == Answer::Unknown
                    && !(self.mutant == Mutant::UnknownPointerTaken && self.has_moved_head) => {}
            WritePointer => self.at = self.after(WritePointer),
            Commit => match answer {
                Answer::Refused(index, _) if index == self.index_of_head() => {
                    self.at = SeekCommit { starts_over: true };
                    if self.mutant == Mutant::OwnCommitNotSought {
                        self.start_over();
                    }
                }
                Answer::Refused(..) if self.mutant == Mutant::RefusalNotFenced => {
                    self.known[usize::from(self.own) - 1] = true;
                    self.view = View::default();
                    self.at = Forget(self.own);
                }
                Answer::Refused(..) => self.at = MoveHead,
                Answer::Done(_) => self.committed(),
                Answer::Unknown => self.end(),
            },
            // Another pointer for each, which is one of the same client.
            PutBack if self.own + 1 < POINTERS => {
                self.own += 1;
                self.view = View::default();
                self.at = ReadHead;
            }
            MoveHead if !is_done && matches!(self.role, Role::Writer(..)) => {
                self.at = SeekCommit { starts_over: false };
            }
            MoveHead if !is_done => self.end(),
            MoveHead => {
                self.has_moved_head = true;
                match self.role {
                    Role::Writer(..) => {
                        self.known[usize::from(self.own) - 1] = true;
                        self.view = View::default();
                        self.at = Forget(self.own);
                    }
                    _ => self.go_on(),
                }
            }
            WriteTarget(number, ..) if is_done => self.done(number),
            WriteTarget(number, ..) => self.at = ReadTarget(number),
            Remove if is_done => {
                self.applied = Default::default();
                self.go_on();
            }
            Bury(number) if is_done => {
                let index = usize::from(number);
                let seen = self.view.log[index].take();
                self.view.graves[index] = seen.map(|seen| Seen {
                    is_old: false,
                    ..seen
                });
                self.go_on();
            }
            Remove | Bury(_) | SetAside(_) | ReadTarget(_) => self.read_view(),
            SweepTarget(number, _) => self.at = SweepTarget(number, None),
            SweepGrave(number) => {
                let grave = &mut self.view.graves[usize::from(number)];
                if is_done {
                    *grave = None;
                } else if let Some(grave) = grave {
                    // A later drain tries again.
                    grave.is_old = false;
                }
                self.go_on();
            }
            Forget(pointer) => {
                let index = usize::from(pointer) - 1;
                (self.known[index], self.pointers[index]) = (false, None);
                self.go_on();
            }
            _ => self.end(),
        }
    }

    fn base(&mut self) -> &mut u8 {
        &mut self.base
    }

    fn is_last(&self) -> bool {
        self.role == Role::Last
    }
}
