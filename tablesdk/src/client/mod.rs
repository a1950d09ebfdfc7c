//! The two clients, of an account and of a table: each verb makes an action.

mod builder;
mod service_client;
mod table_client;

pub use builder::TableServiceClientBuilder;
pub use service_client::TableServiceClient;
pub use table_client::TableClient;
