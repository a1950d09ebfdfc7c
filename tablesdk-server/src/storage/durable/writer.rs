//! Writes groups: takes the pending writes, writes and syncs them as one group, and notifies all
//! writers that wait for them.

use std::mem;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use super::overlay::Writes;
use super::state::{Group, Shared, StoreState};
use super::store::{Store, WriteError, failed};
use crate::storage::{StorageError, is_exhausted};

/// The state of the thread that writes a group.
pub(super) struct GroupWriter {
    store: Store,
    /// The number of the last group.
    number: u64,
    stops: Stops,
}

impl GroupWriter {
    pub(super) fn new(store: Store, number: u64) -> Self {
        Self {
            store,
            number,
            stops: Stops::default(),
        }
    }
}

/// Whose turn it is to write a group. One thread at a time has the [`GroupWriter`], and returns it
/// with the result of the group.
pub(super) enum Turn {
    /// Nothing is being written.
    Free(GroupWriter),
    /// A thread writes. When it has finished, it looks for pending writes.
    Taken,
    /// Nothing is written any more: the data directory is closed, or the thread that wrote has
    /// panicked.
    Lost,
}

impl Turn {
    pub(super) const fn is_free(&self) -> bool {
        matches!(self, Self::Free(_))
    }

    /// Takes the turn, if it is free.
    pub(super) fn take(&mut self) -> Option<GroupWriter> {
        match mem::replace(self, Self::Taken) {
            Self::Free(writer) => Some(writer),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// Refuses all waiting and all later writes if a thread panics that writes.
pub(super) struct PoisonOnExit<'s>(pub(super) &'s Shared);

impl Drop for PoisonOnExit<'_> {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        self.0.state().failed = Some(StorageError::Failed {
            what: "write",
            cause: "the thread that writes has panicked".into(),
        });
        self.0.end_writing();
    }
}

impl Shared {
    /// Runs the writing thread.
    pub(super) fn write_until_closed(&self) {
        let _poison = PoisonOnExit(self);
        self.write_groups();
        self.end_writing();
    }

    /// Notifies the writers that wait, because nothing is written any more.
    fn end_writing(&self) {
        let mut state = self.state();
        state.turn = Turn::Lost;
        state.pending = Group::new();
        state.writing = Writes::default();
        state.writing_epoch = None;
    }

    fn write_groups(&self) {
        loop {
            match self.next() {
                Next::Group(writer, group) => {
                    self.write_group(writer, group);
                }
                Next::Reopen(mut writer) => {
                    let number = writer.number;
                    let stops = writer.stops.recent(number);
                    let Some(opened) = self.reopen(writer.store, number, stops) else {
                        return;
                    };
                    writer.store = opened;
                    self.state().turn = Turn::Free(writer);
                }
                Next::End(writer) => {
                    // An error is ignored: acknowledged writes already have the durability that was
                    // acknowledged.
                    if self.state().failed.is_none() {
                        let _ = writer.store.sync(writer.number);
                    }
                    return;
                }
                Next::Lost => return,
            }
        }
    }

    /// Writes a group, publishes it, ends the turn, and notifies the writers that wait for the
    /// group. Returns whether the writing thread has something to do that it does not know of while
    /// it sleeps.
    pub(super) fn write_group(&self, mut writer: GroupWriter, group: Group) -> bool {
        let result = self.write(&mut writer, &group.writes);
        let mut state = self.state();
        match &result {
            Ok(()) => {
                state.durable_epoch = group.epoch.unwrap_or(state.durable_epoch);
                state.durable = Some(writer.store.durable_records(state.durable_epoch));
            }
            Err(error) => state.fail(error.clone()),
        }
        state.writing = Writes::default();
        state.writing_bytes = 0;
        state.writing_epoch = None;
        state.last_writers = group.waiting.len();
        let mut refused = Vec::new();
        if result.is_err() {
            // They were decided on writes that may not have been stored.
            refused = mem::replace(&mut state.pending, Group::new()).waiting;
        }
        state.turn = Turn::Free(writer);
        let must_wake = state.looks == 0 || result.is_err() || state.has_work();
        state.looks = LOOKS;
        drop(state);
        for done in group.waiting.into_iter().chain(refused) {
            // Fails if the writer does not wait any more.
            let _ = done.send(result.clone());
        }
        must_wake
    }

    /// Writes a group after the last one.
    fn write(&self, turn: &mut GroupWriter, writes: &Writes) -> Result<(), StorageError> {
        let GroupWriter {
            store,
            number,
            stops,
        } = turn;
        let written = if writes.is_empty() {
            // A caller waits for earlier writes, or the store may have stopped.
            store.is_running().map(|()| *number)
        } else {
            let next = number.saturating_add(1);
            store.write(writes, next).map(|()| next)
        };
        match written {
            Ok(written) => {
                // Removed files accept writes, and lose them when the process ends.
                self.look_in_place()?;
                *number = written;
                Ok(())
            }
            Err(WriteError::Failed(error)) => Err(error),
            Err(WriteError::Stopped) => Err(self.why_stopped(stops, *number)),
        }
    }

    /// Why the embedded store has stopped after the group with that number, and before the next one
    /// was written. It does not name a reason.
    fn why_stopped(&self, stops: &mut Stops, number: u64) -> StorageError {
        let what = "write";
        let probed = self.directory.probe_files();
        match probed.and_then(|()| self.directory.probe_disk()) {
            Err(error) if is_exhausted(&error) => StorageError::Exhausted { what },
            // What the store could not write is on a full disk in part, and opening the store again
            // would begin anew.
            Err(error) => failed(what, &error),
            Ok(()) if stops.is_too_many(number) => StorageError::Failed {
                what,
                cause: "the embedded store stops again and again after an error of the disk or the system, which it does not name".into(),
            },
            // The limit of open files may have been reached for a moment. Nothing was written, and
            // opening the store again shows which groups it has.
            Ok(()) => StorageError::Stopped { what },
        }
    }

    /// Waits for the next step of the writing thread.
    fn next(&self) -> Next {
        let mut state = self.state();
        loop {
            if matches!(state.turn, Turn::Lost) {
                return Next::Lost;
            }
            if state.has_work()
                && let Some(writer) = state.turn.take()
            {
                return if state.has_temporary_failure() {
                    Next::Reopen(writer)
                } else if state.pending.waiting.is_empty() {
                    Next::End(writer)
                } else {
                    Next::Group(writer, state.begin_group())
                };
            }
            if state.looks == 0 || state.failed.is_some() {
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let woken = self.changed.wait_timeout(state, LOOK_INTERVAL);
            let (woken, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timeout.timed_out()
                && let Some(mut writer) = state.turn.take()
            {
                state.looks -= 1;
                let is_at_rest = state.looks == 0;
                drop(state);
                if writer.store.is_running().is_err() {
                    return Next::Group(writer, Group::new());
                }
                let has_more_to_do = writer.store.tidy(writer.number, is_at_rest);
                // Until a later snapshot is taken, the store keeps what it has replaced since.
                state = self.state();
                if has_more_to_do {
                    state.looks = LOOKS;
                }
                state.free(writer);
            }
        }
    }
}

impl StoreState {
    /// Returns true if the writing thread has something to do once it is its turn.
    fn has_work(&self) -> bool {
        !self.pending.waiting.is_empty() || self.is_closing || self.has_temporary_failure()
    }

    /// Ends a turn without a group: publishes what the store has.
    fn free(&mut self, writer: GroupWriter) {
        self.durable = Some(writer.store.durable_records(self.durable_epoch));
        self.turn = Turn::Free(writer);
    }

    /// Takes the pending writes as the group that is written next.
    pub(super) fn begin_group(&mut self) -> Group {
        let group = mem::replace(&mut self.pending, Group::new());
        self.writing = group.writes.clone();
        self.writing_bytes = group.bytes;
        self.writing_epoch = group.epoch;
        group
    }
}

/// The number of recent stops of the embedded store for an unknown reason.
#[derive(Default)]
struct Stops {
    count: u32,
    /// The number of the last group before the last stop.
    number: u64,
}

impl Stops {
    /// Counts a stop after the group with that number. Stops with many groups between them are
    /// treated as unrelated.
    fn is_too_many(&mut self, number: u64) -> bool {
        self.count = self.recent(number) + 1;
        self.number = number;
        self.count > STOPS_MAX
    }

    /// How many stops there were shortly before the group with that number.
    const fn recent(&self, number: u64) -> u32 {
        if number >= self.number.saturating_add(STOP_DISTANCE) {
            0
        } else {
            self.count
        }
    }
}

/// The next step of the writing thread.
enum Next {
    /// Write a group, which is empty to find out why the embedded store has stopped.
    Group(GroupWriter, Group),
    /// Open the embedded store again.
    Reopen(GroupWriter),
    /// Close the data directory.
    End(GroupWriter),
    /// Nothing is written any more.
    Lost,
}

/// The embedded store may stop so many times for an unknown reason, with fewer than `STOP_DISTANCE`
/// groups between two stops.
const STOPS_MAX: u32 = 20;
const STOP_DISTANCE: u64 = 1000;
/// After a write, the embedded store continues to work in the background. The writing thread then
/// checks `LOOKS` times, at this interval, whether the store has stopped. So the cause can still be
/// found out: the next write may come much later.
pub(super) const LOOKS: u32 = 100;
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
