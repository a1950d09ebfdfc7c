//! Bytes that do not go through our own encoder: signature vectors, and raw requests with the answers they must get.

mod raw;
mod refusals;
mod signatures;
mod transcripts;
