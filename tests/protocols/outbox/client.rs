//! A client of the outbox: a writer, a worker or an operator.

use std::fmt;

use super::history::History;
use super::{Entry, Key, Mutant, NUMBERS, POINTERS, Role, Row, Step, Target, last};
use crate::explore::{Answer, Change, Client, Found, Next, Refusal, Rows};
use At::{
    Announce, Begin, Commit, DeleteEntity, DropOwnPointer, DropPointer, End, Finish, PutBack,
    ReadHead, ReadLog, ReadPointers, ReadTarget, SetAside, SweepGrave, SweepTarget, WriteTarget,
};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Begin,
    Announce,
    ReadHead,
    Commit,
    ReadPointers,
    ReadLog,
    ReadTarget,
    WriteTarget(Option<u8>, Option<Target>),
    Finish,
    SetAside,
    SweepTarget(Option<u8>),
    SweepGrave,
    DropPointer(u8),
    PutBack,
    DropOwnPointer,
    DeleteEntity,
    End,
}

/// The row on which a client works.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Job {
    number: u8,
    etag: u8,
    entry: Entry,
    /// The greatest number of a grave.
    grave: u8,
}

/// A pointer as a worker found it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Seen {
    etag: u8,
    /// Its write can no longer be committed: it was, or the pointer is older than H.
    is_settled: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outbox {
    role: Role,
    at: At,
    base: u8,
    /// The own pointer. It is odd; the next one is for a client that has paused.
    own: u8,
    head: Option<(u8, u8)>,
    pointers: [Option<Seen>; POINTERS as usize],
    job: Option<Job>,
    mutant: Mutant,
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.job.map(|job| job.number);
        write!(f, "{:?} at {:?}, job {number:?}", self.role, self.at)
    }
}

impl Outbox {
    pub fn new(role: Role, own: u8, mutant: Mutant) -> Self {
        let at = match role {
            Role::Writer { .. } if mutant == Mutant::PointerAfterCommit => ReadHead,
            Role::Writer { .. } | Role::Operator => Begin,
            Role::Worker { .. } if mutant == Mutant::RowsReadBeforePointers => ReadLog,
            Role::Worker { .. } => ReadPointers,
            Role::Last => ReadLog,
            Role::Deleter => DeleteEntity,
        };
        Self {
            role,
            at,
            base: 0,
            own,
            head: None,
            pointers: [None; POINTERS as usize],
            job: None,
            mutant,
        }
    }

    fn entry(&self) -> Entry {
        let Role::Writer { step, .. } = self.role else {
            unreachable!("only a writer commits")
        };
        Entry {
            pointer: self.own,
            step,
        }
    }

    fn is_later(&self) -> bool {
        matches!(self.role, Role::Writer { is_later: true, .. })
    }

    fn job(&self) -> Job {
        self.job.expect("the log was read")
    }

    fn end(&mut self) {
        *self = Self {
            at: End,
            role: Role::Deleter,
            ..Self::new(Role::Deleter, 0, self.mutant)
        };
    }

    /// Forgets the job, so that states that differ only in it are one.
    fn read_log_again(&mut self) {
        self.job = None;
        self.at = ReadLog;
    }

    /// Whether the next request rests on an observation that is too old.
    fn has_paused(&self) -> bool {
        let is_ignored = match self.mutant {
            Mutant::PauseIgnored => true,
            Mutant::TargetReadIsBase => self.at == ReadTarget,
            _ => false,
        };
        self.base == 0 && !is_ignored
    }

    fn choose(&mut self, rows: &Rows<Key, Row>) {
        let entries = |key: fn(u8) -> Key| {
            (1..NUMBERS).filter_map(move |number| {
                let found = rows.get(key(number))?;
                let Row::Entry(entry) = found.row else {
                    return None;
                };
                let grave = last(rows, Key::Grave, NUMBERS);
                let job = Job {
                    number,
                    etag: found.etag,
                    entry,
                    grave,
                };
                let is_behind = |key| last(rows, key, number) > 0;
                Some((found.old, job, is_behind(Key::Dead), is_behind(Key::Entry)))
            })
        };
        let sweep = entries(Key::Grave).find(|&(is_old, _, dead, entry)| is_old && !dead && !entry);
        if let Some((_, job, ..)) = sweep {
            (self.at, self.job) = (SweepTarget(None), Some(job));
            return;
        }
        if let Some((_, job, is_behind_dead, _)) = entries(Key::Entry).next() {
            let goes_aside = is_behind_dead && self.mutant != Mutant::LaterStepsOvertakeDead;
            (self.at, self.job) = (if goes_aside { SetAside } else { ReadTarget }, Some(job));
            return;
        }
        let drop = (1..).zip(self.pointers).find(|&(pointer, seen)| {
            let ignores_age = self.mutant == Mutant::YoungPointerDeleted;
            seen.is_some_and(|seen| seen.is_settled || ignores_age) && !self.is_used(pointer, rows)
        });
        match (drop, self.role) {
            (Some((pointer, _)), _) => self.at = DropPointer(pointer),
            (None, Role::Last) => self.read_log_again(),
            (None, Role::Worker { .. }) if self.reads_rows_first() => self.at = ReadPointers,
            (None, _) => self.end(),
        }
    }

    fn reads_rows_first(&self) -> bool {
        self.mutant == Mutant::RowsReadBeforePointers && matches!(self.role, Role::Worker { .. })
    }

    fn read_pointers(&mut self, rows: &Rows<Key, Row>) {
        for (pointer, seen) in (1..).zip(&mut self.pointers) {
            *seen = rows.get(Key::Pointer(pointer)).map(|found| Seen {
                etag: found.etag,
                is_settled: found.old,
            });
        }
    }

    fn is_used(&self, pointer: u8, rows: &Rows<Key, Row>) -> bool {
        let mut rows = rows.iter();
        rows.any(|(key, found)| {
            let counts =
                self.mutant != Mutant::PointerIgnoresGraves || !matches!(key, Key::Grave(_));
            counts && matches!(found.row, Row::Entry(entry) if entry.pointer == pointer)
        })
    }

    fn read_target(&mut self, found: Option<Found<Row>>) {
        let Job {
            number,
            entry,
            grave,
            ..
        } = self.job();
        let target = found.map(|found| match found.row {
            Row::Target(target) => (found.etag, target),
            _ => unreachable!("the key is a target's"),
        });
        let stamp = target.map_or(0, |(_, target)| target.stamp);
        let is_done = match self.mutant {
            Mutant::StampComparedByGreater => stamp > number,
            _ => stamp >= number,
        };
        // An earlier step came late, after a delete: the target is absent but for it.
        let is_ghost = stamp < grave && grave < number && self.mutant != Mutant::GravesIgnored;
        let now = target
            .filter(|_| !is_ghost)
            .map(|(_, target)| target.properties);
        let next = entry.step.on(now).map(|properties| Target {
            stamp: number,
            properties,
        });
        self.at = match (is_done, target, next) {
            (true, ..) | (_, None, None) => Finish,
            (_, target, next) => WriteTarget(target.map(|(etag, _)| etag), next),
        };
    }
}

impl Client for Outbox {
    type Key = Key;
    type Row = Row;
    type Rules = History;

    fn next(&self) -> Vec<Next<Key, Row>> {
        let send = |change: Change<Key, Row>| vec![Next::Send(vec![change])];
        let entry = Key::Entry(self.job.map_or(0, |job| job.number));
        match self.at {
            End => Vec::new(),
            DeleteEntity => send(Change::Delete(Key::Entity, None)),
            Begin | ReadHead | ReadPointers | ReadLog => vec![Next::Read],
            DropOwnPointer => send(Change::Delete(Key::Pointer(self.own), None)),
            _ if self.has_paused() => vec![Next::Read],
            ReadTarget => {
                let mut next = vec![Next::Read];
                if matches!(self.role, Role::Worker { sets_aside: true }) {
                    let row = Row::Entry(self.job().entry);
                    let dead = Key::Dead(self.job().number);
                    next.push(Next::Send(vec![
                        Change::Delete(entry, Some(self.job().etag)),
                        Change::Insert(dead, row),
                    ]));
                }
                next
            }
            SweepTarget(None) => vec![Next::Read],
            Announce => send(Change::Insert(Key::Pointer(self.own), Row::Pointer)),
            Commit => {
                let (etag, next) = self.head.unwrap_or((0, 1));
                let head = Row::Head(next + 1);
                let mut changes = vec![match etag {
                    _ if self.mutant == Mutant::HeadNotInCommit => Change::Upsert(Key::Head, head),
                    0 => Change::Insert(Key::Head, head),
                    etag => Change::Replace(Key::Head, head, etag),
                }];
                changes.push(Change::Insert(Key::Entry(next), Row::Entry(self.entry())));
                if matches!(
                    self.role,
                    Role::Writer {
                        is_refused: true,
                        ..
                    }
                ) {
                    changes.push(Change::Insert(Key::Entity, Row::Entity));
                }
                vec![Next::Send(changes)]
            }
            WriteTarget(etag, next) => {
                let key = Key::Target;
                send(match (etag, next.map(Row::Target)) {
                    (_, Some(row)) if self.mutant == Mutant::TargetUnconditional => {
                        Change::Upsert(key, row)
                    }
                    (None, Some(row)) => Change::Insert(key, row),
                    (Some(etag), Some(row)) => Change::Replace(key, row, etag),
                    (etag, None) => Change::Delete(key, etag),
                })
            }
            Finish => {
                let job = self.job();
                let mut changes = vec![Change::Delete(entry, Some(job.etag))];
                if job.entry.step == Step::Delete && self.mutant != Mutant::GraveDropped {
                    changes.push(Change::Insert(
                        Key::Grave(job.number),
                        Row::Entry(job.entry),
                    ));
                }
                vec![Next::Send(changes)]
            }
            SetAside => vec![Next::Send(vec![
                Change::Delete(entry, Some(self.job().etag)),
                Change::Insert(Key::Dead(self.job().number), Row::Entry(self.job().entry)),
            ])],
            SweepTarget(etag) => send(Change::Delete(Key::Target, etag)),
            SweepGrave => send(Change::Delete(
                Key::Grave(self.job().number),
                Some(self.job().etag),
            )),
            DropPointer(pointer) => {
                let seen = self.pointers[usize::from(pointer) - 1].expect("it was chosen");
                send(Change::Delete(Key::Pointer(pointer), Some(seen.etag)))
            }
            PutBack => {
                let Job {
                    number,
                    etag,
                    entry,
                    ..
                } = self.job();
                let entry = Entry {
                    pointer: self.own,
                    ..entry
                };
                vec![Next::Send(vec![
                    Change::Delete(Key::Dead(number), Some(etag)),
                    Change::Insert(Key::Entry(number), Row::Entry(entry)),
                ])]
            }
        }
    }

    fn read(&mut self, rows: &Rows<Key, Row>) {
        match self.at {
            Begin => {
                self.base = rows.now();
                self.at = Announce;
            }
            // The clock was looked at before the request was sent. An announcement of unknown outcome is as old as its first request.
            Announce | Commit | PutBack if self.has_paused() => {
                self.head = None;
                match self.own % 2 {
                    _ if self.mutant == Mutant::SamePointerAgain => self.at = Begin,
                    1 => (self.own, self.at) = (self.own + 1, Begin),
                    _ => self.end(),
                }
            }
            ReadHead => {
                if self.mutant == Mutant::PointerAfterCommit {
                    self.base = rows.now();
                }
                self.head = rows.get(Key::Head).map(|found| match found.row {
                    Row::Head(next) => (found.etag, next),
                    _ => unreachable!("the key is the head's"),
                });
                self.at = Commit;
            }
            ReadPointers => {
                self.read_pointers(rows);
                let old = self
                    .pointers
                    .iter()
                    .position(|seen| seen.is_some_and(|seen| seen.is_settled));
                match (1..).nth(old.unwrap_or(0)) {
                    Some(pointer) if self.reads_rows_first() && old.is_some() => {
                        self.at = DropPointer(pointer);
                    }
                    _ if self.reads_rows_first() => self.end(),
                    _ => self.at = ReadLog,
                }
            }
            ReadLog if self.role == Role::Operator => {
                self.job = rows.iter().find_map(|(key, found)| match (key, found.row) {
                    (Key::Dead(number), Row::Entry(entry)) => Some(Job {
                        number,
                        etag: found.etag,
                        entry,
                        grave: 0,
                    }),
                    _ => None,
                });
                match self.job {
                    Some(_) => self.at = PutBack,
                    None => self.end(),
                }
            }
            ReadLog => {
                if self.role == Role::Last {
                    self.read_pointers(rows);
                }
                self.base = rows.now();
                for (pointer, seen) in (1..).zip(self.pointers) {
                    let is_settled = self.is_used(pointer, rows);
                    if let Some(seen) = seen.filter(|_| is_settled) {
                        let settled = Seen { is_settled, ..seen };
                        self.pointers[usize::from(pointer) - 1] = Some(settled);
                    }
                }
                self.choose(rows);
            }
            _ if self.has_paused() => self.read_log_again(),
            ReadTarget => {
                if self.mutant == Mutant::TargetReadIsBase {
                    self.base = rows.now();
                }
                self.read_target(rows.get(Key::Target));
            }
            SweepTarget(_) => {
                let job = self.job();
                let found = rows.get(Key::Target);
                let ghost = found.filter(
                    |found| matches!(found.row, Row::Target(target) if target.stamp < job.number),
                );
                self.at = ghost.map_or(SweepGrave, |found| SweepTarget(Some(found.etag)));
            }
            _ => unreachable!("{:?} is no read", self.at),
        }
    }

    fn answer(&mut self, answer: Answer) {
        match (self.at, answer) {
            // An announcement that was lost is sent again: nothing rests on it yet.
            (Announce, Answer::Unknown) => {}
            (Announce, _) => {
                self.at = match self.role {
                    Role::Operator => ReadLog,
                    _ if self.mutant == Mutant::PointerAfterCommit => ReadLog,
                    _ => ReadHead,
                };
            }
            (Commit, Answer::Refused(0, _)) => self.at = ReadHead,
            (Commit, Answer::Refused(..)) if self.mutant == Mutant::PointerDeletedAfterRefusal => {
                self.at = DropOwnPointer;
            }
            (Commit, Answer::Done(_)) if self.mutant == Mutant::PointerAfterCommit => {
                self.at = Announce;
            }
            (Commit, Answer::Done(_)) if !self.is_later() => {
                // The pointer was written once, so this is its ETag.
                self.pointers[usize::from(self.own) - 1] = Some(Seen {
                    etag: 1,
                    is_settled: true,
                });
                self.head = None;
                self.at = ReadLog;
            }
            (Commit | PutBack | DropOwnPointer | DeleteEntity, _) => self.end(),
            (WriteTarget(..), Answer::Done(_)) => self.at = Finish,
            (WriteTarget(..), _) => self.at = ReadTarget,
            (SweepTarget(_), _) => self.at = SweepTarget(None),
            (DropPointer(pointer), Answer::Done(_) | Answer::Refused(_, Refusal::Missing)) => {
                self.pointers[usize::from(pointer) - 1] = None;
                self.at = ReadLog;
            }
            (DropPointer(_), _) => self.at = ReadPointers,
            (Finish | SetAside | SweepGrave | ReadTarget, _) => self.read_log_again(),
            (at, answer) => unreachable!("{answer:?} at {at:?}"),
        }
    }

    fn base(&mut self) -> &mut u8 {
        &mut self.base
    }

    fn is_last(&self) -> bool {
        self.role == Role::Last
    }
}
