//! Questions to the person at the terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::thread;

use tokio::sync::oneshot;

use crate::error::{AnyError, UsageError};

/// Returns true if the answer is yes. Without a terminal there is no answer, which is an error in
/// the arguments; `instead` names options that need none.
pub(crate) async fn confirmed(question: &str, instead: &str) -> Result<bool, AnyError> {
    if !io::stdin().is_terminal() {
        let problem = format!("{question} Standard input is no terminal: use {instead}");
        return Err(UsageError(problem.into()).into());
    }
    let mut out = io::stderr();
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    // A thread of its own: the program can end while it waits.
    let (send, answer) = oneshot::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        // If the program ends, no one waits for the answer.
        let _ = send.send(read.map(|_| line));
    });
    let line = answer.await??;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}
