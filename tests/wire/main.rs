//! Bytes that do not go through our own encoder: signature vectors, and raw requests with the answers they must get.

mod batch;
mod raw;
mod refusals;
mod settings;
mod shared_access;
mod signatures;
mod transcripts;
