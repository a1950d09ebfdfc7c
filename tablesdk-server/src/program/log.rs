//! Standard error, written by a thread of its own.
//!
//! The program that started the server may read its standard error late or never, and a full pipe
//! blocks its writer. Here, only the thread waits. Requests continue, and lines that exceed the
//! buffer are left out.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{mem, thread};

/// The log of the program.
pub(crate) static LOG: Log = Log::new();

/// Lines that are not written yet.
pub(crate) struct Log {
    state: Mutex<LogState>,
    changed: Condvar,
}

struct LogState {
    text: Vec<u8>,
    /// How many lines were left out since the last one that was not.
    left_out: u64,
    is_writing: bool,
}

impl Log {
    const fn new() -> Self {
        Self {
            state: Mutex::new(LogState {
                text: Vec::new(),
                left_out: 0,
                is_writing: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Writes the lines to standard error from now on.
    pub(crate) fn start(&'static self) -> io::Result<()> {
        let write = || {
            let mut text = Vec::new();
            loop {
                let left_out = self.take(&mut text);
                // If standard error is closed, no program reads the log.
                let _ = io::stderr().write_all(&text);
                text.clear();
                if left_out > 0 {
                    tracing::warn!(
                        lines = left_out,
                        "the log is incomplete: standard error was not read in time"
                    );
                }
                self.lock().is_writing = false;
                self.changed.notify_all();
            }
        };
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(write)
            .map(drop)
    }

    /// Adds a line; it does not wait.
    pub(crate) fn add(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.text.len() + line.len() > BYTES_MAX {
            state.left_out += 1;
            return;
        }
        state.text.extend_from_slice(line);
        drop(state);
        self.changed.notify_all();
    }

    /// Returns when all lines are written, or after a second.
    pub(crate) fn finish(&self) {
        let is_busy = |state: &mut LogState| state.is_writing || !state.text.is_empty();
        let _ = self
            .changed
            .wait_timeout_while(self.lock(), FINISH_WAIT_MAX, is_busy);
    }

    /// Waits for lines, and puts them into `text`, which is empty. Returns how many were left out
    /// after them.
    fn take(&self, text: &mut Vec<u8>) -> u64 {
        let is_idle = |state: &mut LogState| state.text.is_empty();
        let state = self.changed.wait_while(self.lock(), is_idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.is_writing = true;
        mem::swap(&mut state.text, text);
        mem::take(&mut state.left_out)
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line is written by one call.
impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.add(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A few thousand lines.
const BYTES_MAX: usize = 1024 * 1024;
const FINISH_WAIT_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_exceed_the_buffer_are_left_out_and_counted() {
        let log = Log::new();
        let line = [b"x".repeat(1023).as_slice(), b"\n"].concat();
        for _ in 0..1024 + 7 {
            log.add(&line);
        }
        let mut text = Vec::new();
        assert_eq!(log.take(&mut text), 7);
        assert_eq!(text.len(), BYTES_MAX);
        text.clear();
        log.add(b"next\n");
        assert_eq!((log.take(&mut text), text.as_slice()), (0, &b"next\n"[..]));
    }
}
