//! The signals that stop the program: the first one in order, the second one at once.

use std::io::{self, Write as _};

use tokio::sync::oneshot;

/// Registers for the signals at once. The first one resolves the returned receiver, the second one ends the program.
///
/// A thread of its own waits for them, because all threads that process requests may be busy.
pub(crate) fn listen() -> io::Result<oneshot::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let guard = runtime.enter();
    let mut signals = Signals::new()?;
    drop(guard);
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                signals.next().await;
                // Fails if the server has stopped on its own.
                let _ = sender.send(());
                signals.next().await;
            });
            end();
        })?;
    Ok(receiver)
}

/// Ends the program at once.
#[expect(clippy::exit, reason = "the second signal does not wait for responses")]
fn end() -> ! {
    let _ = writeln!(
        io::stderr(),
        "{}: second stop signal, exits without responding to requests in flight",
        super::NAME
    );
    std::process::exit(1)
}

/// The signals that stop a program.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// The signals that stop a program.
#[cfg(windows)]
struct Signals {
    interrupt: tokio::signal::windows::CtrlC,
}

#[cfg(windows)]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: tokio::signal::windows::ctrl_c()?,
        })
    }

    async fn next(&mut self) {
        self.interrupt.recv().await;
    }
}
