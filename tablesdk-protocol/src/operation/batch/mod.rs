//! Entity group transaction: changes to entities of one partition that happen together, or one
//! query in the same clothes.
//!
//! Each operation in it is one of the ordinary requests, encoded and decoded by the ordinary code;
//! here is only how they travel together. See
//! <https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions>.

mod cosmos_response;
mod received;
mod request;
mod response;
mod response_writer;

pub use cosmos_response::{cosmos_changes_response, cosmos_query_response};
pub use received::Received;
pub use request::{Change, Query, Request, encode_changes};
pub use response::{Refusal, Response};
pub use response_writer::{ChangeResponses, query_response, refusal_response};
