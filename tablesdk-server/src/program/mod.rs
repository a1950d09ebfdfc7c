//! The parts of the program that are no server: where accounts come from, and what is done with folders and backups.

pub(crate) mod accounts;
mod bar;
pub(crate) mod open_files;
pub(crate) mod tools;
