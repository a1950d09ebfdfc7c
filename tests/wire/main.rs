//! Bytes that do not go through our own encoder: signature vectors, and raw requests with their expected responses.

mod batch;
mod connections;
mod golden;
mod raw;
mod refusals;
mod shared_access;
mod signatures;
mod surface;
