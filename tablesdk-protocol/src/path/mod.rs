//! The parts of a URL: the endpoint of an account, the path of a resource, query options, and the
//! tokens of pages.

pub mod continuation;
mod endpoint;
mod query_options;
mod resource_path;

pub use endpoint::{Endpoint, InvalidEndpointError};
pub use query_options::QueryOptions;
pub use resource_path::ResourcePath;
pub(crate) use resource_path::{KeyLiteral, RESERVED, wrong_number_of_keys};
