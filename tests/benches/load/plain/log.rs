//! The log of changes: a file, a thread that appends to it, and one `fdatasync` for all that came
//! since the last.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;

/// The end of the log to which requests append.
pub(super) struct Log(Arc<Shared>);

#[derive(Default)]
struct Shared {
    pending: Mutex<Pending>,
    is_pending: Condvar,
}

/// The bytes that are not in the file yet.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    waiting: Vec<oneshot::Sender<()>>,
}

/// Resolves when the bytes are on the disk.
pub(super) struct Durable(oneshot::Receiver<()>);

impl Durable {
    /// Waits. If the disk fails, the process ends, so that no response claims otherwise.
    pub(super) async fn wait(self) {
        let _ = self.0.await;
    }
}

impl Log {
    pub(super) fn create(directory: &Path) -> io::Result<Self> {
        let mut file = File::create(directory.join("log"))?;
        let shared: Arc<Shared> = Arc::default();
        let log = Self(Arc::clone(&shared));
        let thread = thread::Builder::new().name("log".to_owned());
        thread.spawn(move || {
            loop {
                let Pending { bytes, waiting } = shared.take();
                if file
                    .write_all(&bytes)
                    .and_then(|()| file.sync_data())
                    .is_err()
                {
                    std::process::abort();
                }
                for waiting in waiting {
                    let _ = waiting.send(());
                }
            }
        })?;
        Ok(log)
    }

    pub(super) fn append(&self, bytes: &[u8]) -> Durable {
        let (done, durable) = oneshot::channel();
        let mut pending = self
            .0
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        pending.bytes.extend_from_slice(bytes);
        pending.waiting.push(done);
        drop(pending);
        self.0.is_pending.notify_one();
        Durable(durable)
    }
}

impl Shared {
    /// Waits until something is pending, and takes all of it.
    fn take(&self) -> Pending {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        while pending.waiting.is_empty() {
            let woken = self.is_pending.wait(pending);
            pending = woken.unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::take(&mut *pending)
    }
}
