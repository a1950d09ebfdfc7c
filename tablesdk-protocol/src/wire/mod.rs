//! How things look on the wire: header names, JSON and XML payloads, error bodies.

pub mod error_body;
pub mod header;
pub mod json;
pub mod xml;
