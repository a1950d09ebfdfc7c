//! A thread with a runtime of its own. Knows nothing of HTTP.

use std::io;
use std::sync::Arc;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A thread that runs tasks until the last clone is dropped.
#[derive(Clone, Debug)]
pub(super) struct IoThread(Arc<Running>);

#[derive(Debug)]
struct Running {
    handle: Handle,
    /// Dropping it ends the thread.
    _stop: oneshot::Sender<()>,
}

impl IoThread {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        thread::Builder::new()
            .name("tablesdk-io".to_owned())
            .spawn(move || {
                // Nothing is ever sent: it ends when the sender is dropped.
                let _ = runtime.block_on(stopped);
            })?;
        Ok(Self(Arc::new(Running {
            handle,
            _stop: stop,
        })))
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.0.handle
    }
}
