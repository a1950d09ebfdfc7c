//! The parts of the program other than the server: reading accounts, and the subcommands for data directories and backups.

pub(crate) mod accounts;
mod bar;
pub(crate) mod open_files;
pub(crate) mod tools;
