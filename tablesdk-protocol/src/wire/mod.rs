//! The formats of the wire: JSON and XML bodies, error bodies, and the parts of a batch.

pub mod error_body;
pub mod http_message;
pub mod json;
pub mod multipart;
pub mod xml;
