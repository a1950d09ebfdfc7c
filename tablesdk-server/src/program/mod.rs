//! The parts of the program: its command line, the server until a signal stops it, and the
//! subcommands for data directories.

mod accounts;
mod log;
pub(crate) mod maintenance;
mod open_files;
pub(crate) mod options;
mod progress;
pub(crate) mod serve;
mod signals;

pub(crate) const NAME: &str = "tablesdk-server";
