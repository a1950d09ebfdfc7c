//! The two clients, of an account and of a table: each verb makes an action.

mod builder;
#[cfg(feature = "encryption")]
mod keyring;
mod move_to;
mod outbox;
mod service_client;
mod table_client;
mod wide;

pub use builder::TableServiceClientBuilder;
pub use service_client::TableServiceClient;
pub use table_client::TableClient;
