//! The end of the program: a signal, or the end of its standard input, ends it in order; a second
//! signal at once.

use std::{future, io, thread};

use tokio::sync::oneshot;

use super::log::LOG;

/// Registers for the signals at once. The first one resolves the returned receiver, as the end of
/// standard input does on request. A second signal ends the program.
///
/// A thread of its own waits for them, because all threads that process requests may be busy.
pub(crate) fn listen(exit_with_stdin: bool) -> io::Result<oneshot::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let guard = runtime.enter();
    let mut signals = Signals::new()?;
    drop(guard);
    let (sender, receiver) = oneshot::channel();
    let input = exit_with_stdin.then(end_of_input).transpose()?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = signals.next() => {}
                    () = resolved(input) => {}
                }
                // Fails if the server has stopped on its own.
                let _ = sender.send(());
                signals.next().await;
            });
            end();
        })?;
    Ok(receiver)
}

/// Reads standard input. The receiver is resolved when the input ends, which it does when its other
/// end is closed, or cannot be read.
fn end_of_input() -> io::Result<oneshot::Receiver<()>> {
    let (sender, receiver) = oneshot::channel();
    thread::Builder::new()
        .name("standard input".to_owned())
        .spawn(move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            // Fails if a signal came first.
            let _ = sender.send(());
        })?;
    Ok(receiver)
}

async fn resolved(receiver: Option<oneshot::Receiver<()>>) {
    match receiver {
        Some(receiver) => {
            let _ = receiver.await;
        }
        None => future::pending().await,
    }
}

/// Ends the program at once.
#[expect(clippy::exit, reason = "the second signal does not wait for responses")]
fn end() -> ! {
    let name = super::NAME;
    let line =
        format!("{name}: second stop signal, exits without responding to requests in flight\n");
    LOG.add(line.as_bytes());
    LOG.finish();
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
