//! Raises the limit of open files to what the connections need, as far as the system allows it.
//!
//! The usual soft limit of 1,024 is for programs that use `select`; the hard limit says what the
//! operator allows. Only the program raises the limit. The library runs as a guest in another
//! process and changes no limit of it.

use std::num::NonZeroUsize;

/// Raises the soft limit for so many connections, at most to the hard limit. A limit that is high
/// enough stays as it is.
pub(crate) fn raise(connections: NonZeroUsize) {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let connections = u64::try_from(connections.get()).unwrap_or(u64::MAX);
        let wanted = connections.saturating_add(OTHERS);
        let wanted = maximum.map_or(wanted, |maximum| wanted.min(maximum));
        if current.is_some_and(|current| current < wanted) {
            let raised = Rlimit {
                current: Some(wanted),
                maximum,
            };
            if let Err(error) = setrlimit(Resource::Nofile, raised) {
                tracing::warn!(%error, "the limit of open files cannot be raised");
            }
        }
    }
    #[cfg(not(unix))]
    let _ = connections;
}

/// Files in addition to connections: those of the data directory, and those that the process opens
/// at its start.
#[cfg(unix)]
const OTHERS: u64 = 640;
