//! The formats of the wire: JSON and XML bodies, error bodies, and the parts of a batch; and lines
//! of JSON in files.

pub mod error_body;
pub mod http_message;
pub mod json;
pub mod lines;
pub mod multipart;
pub mod xml;
