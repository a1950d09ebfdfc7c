//! The writing thread: takes the pending writes, writes and syncs them as one group, and notifies all writers that wait for them.

use std::mem;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use super::overlay::Writes;
use super::store::{Store, WriteError};
use super::{Group, Shared, StorageError, Waiting};

/// Refuses all waiting and all later writes if the writing thread panics.
pub(super) struct PoisonOnExit<'s>(pub(super) &'s Shared);

impl Drop for PoisonOnExit<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if thread::panicking() {
            state.failed = Some(StorageError::Failed {
                what: "write",
                cause: "the thread that writes has panicked".into(),
            });
        }
        state.pending = Group::new();
        state.writing = Writes::default();
        state.writing_epoch = None;
    }
}

impl Shared {
    pub(super) fn write_until_closed(&self, mut store: Store, mut number: u64) {
        let mut stops = Stops::default();
        loop {
            let (writes, waiting) = match self.next(&store) {
                Next::Group(writes, waiting) => (writes, waiting),
                Next::Stopped => (Writes::default(), Vec::new()),
                Next::End => break,
            };
            let result = self.write(&store, &writes, number, &mut stops);
            let mut state = self.state();
            match &result {
                Ok(written) => {
                    number = *written;
                    state.durable_epoch = state.writing_epoch.unwrap_or(state.durable_epoch);
                    state.durable = Some(store.durable_records(state.durable_epoch));
                }
                Err(error) => state.fail(error.clone()),
            }
            state.writing = Writes::default();
            state.writing_bytes = 0;
            state.writing_epoch = None;
            let mut refused = Vec::new();
            if result.is_err() {
                // They were decided on writes that may not have been stored.
                refused = mem::replace(&mut state.pending, Group::new()).waiting;
            }
            drop(state);
            let result = result.map(drop);
            for done in waiting.into_iter().chain(refused) {
                // Fails if the writer does not wait any more.
                let _ = done.send(result.clone());
            }
            if result.is_err_and(|error| error.is_temporary()) {
                match self.reopen(store, number) {
                    Some(opened) => store = opened,
                    None => return,
                }
            }
        }
        // An error is ignored: acknowledged writes already have the durability that was acknowledged.
        if self.state().failed.is_none() && store.sync(number).is_ok() {
            self.directory.release();
        }
    }

    /// Writes a group after the group with that number. Returns the number of the last group.
    fn write(
        &self,
        store: &Store,
        writes: &Writes,
        number: u64,
        stops: &mut Stops,
    ) -> Result<u64, StorageError> {
        let written = if writes.is_empty() {
            // A caller waits for earlier writes, or the store may have stopped.
            store.is_running().map(|()| number)
        } else {
            let next = number.saturating_add(1);
            store.write(writes, next).map(|()| next)
        };
        match written {
            Ok(number) => {
                // Removed files accept writes, and lose them when the process ends.
                self.look_in_place()?;
                Ok(number)
            }
            Err(WriteError::Failed(error)) => Err(error),
            Err(WriteError::Stopped) if self.directory.probe_files().is_err() => {
                Err(StorageError::Exhausted { what: "write" })
            }
            Err(WriteError::Stopped) if stops.is_too_many(number) => Err(StorageError::Failed {
                what: "write",
                cause: "the embedded store stops again and again after an error of the disk or the system, which it does not name".into(),
            }),
            // The limit of open files may have been reached for a moment. Nothing was written, and opening the store again shows
            // which groups it has.
            Err(WriteError::Stopped) => Err(StorageError::Stopped { what: "write" }),
        }
    }

    /// Waits for the next step of the writing thread.
    fn next(&self, store: &Store) -> Next {
        let mut looks = LOOKS;
        let mut state = self.state();
        while state.pending.waiting.is_empty() {
            if state.is_closing {
                return Next::End;
            }
            if looks == 0 || state.failed.is_some() {
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            looks -= 1;
            let woken = self.changed.wait_timeout(state, LOOK_INTERVAL);
            let (woken, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timeout.timed_out() {
                drop(state);
                if store.is_running().is_err() {
                    return Next::Stopped;
                }
                state = self.state();
            }
        }
        let group = mem::replace(&mut state.pending, Group::new());
        state.writing = group.writes.clone();
        state.writing_bytes = group.bytes;
        state.writing_epoch = group.epoch;
        Next::Group(group.writes, group.waiting)
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
    /// Counts a stop after the group with that number. Stops with many groups between them are treated as unrelated.
    fn is_too_many(&mut self, number: u64) -> bool {
        if number >= self.number.saturating_add(STOP_DISTANCE) {
            self.count = 0;
        }
        self.count += 1;
        self.number = number;
        self.count > STOPS_MAX
    }
}

/// The next step of the writing thread.
enum Next {
    /// Write a group, then notify the writers that wait for it.
    Group(Writes, Vec<Waiting>),
    /// Find out why the embedded store has stopped.
    Stopped,
    /// Close the data directory.
    End,
}

/// The embedded store may stop so many times for an unknown reason, with fewer than `STOP_DISTANCE` groups between two stops.
const STOPS_MAX: u32 = 20;
const STOP_DISTANCE: u64 = 1000;
/// After a write, the embedded store continues to work in the background. The writing thread then checks `LOOKS` times, at this
/// interval, whether the store has stopped. So the cause can still be found out: the next write may come much later.
const LOOKS: u32 = 100;
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
