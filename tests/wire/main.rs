//! Bytes that do not go through our own encoder: signature vectors, transcripts of each operation,
//! stored forms, and connections.

mod connections;
mod golden;
mod signatures;
mod stored_forms;
