//! How things look on the wire: JSON and XML payloads, error bodies, the parts of a
//! batch.

pub mod error_body;
pub mod http_message;
pub mod json;
pub mod multipart;
pub mod xml;
