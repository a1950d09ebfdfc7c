//! A service with axum that gives each user a signature for their own notes: the user's program
//! then reads the table itself, and neither the notes nor a key of the account pass through the
//! service. `cargo run --example signatures` serves it on 127.0.0.1:3000. Without a connection
//! string it starts the bundled server.
//!
//! ```sh
//! curl -X POST -H 'x-ms-client-principal-id: ada' 'http://127.0.0.1:3000/signature?add=true'
//! ```
//!
//! ```json
//! {"url":"http://127.0.0.1:34567/devstoreaccount1/Notes?…","expiresAt":"2030-01-01T12:15:00Z"}
//! ```
//!
//! The program of the user makes a client of the URL, by
//! [`TableClient::from_sas_url`](tablesdk::TableClient::from_sas_url) or by any other SDK. A page
//! in a browser needs a CORS rule of the account as well: see
//! [`set_properties`](tablesdk::TableServiceClient::set_properties).
//!
//! # Who the user is
//!
//! A gateway in front of the service authenticates users, and sets the header
//! `x-ms-client-principal-id`, as the authentication of App Service and of Container Apps does. It
//! must remove the header from the requests of clients, and no other request may reach the
//! service, which believes the header. So the service listens on 127.0.0.1, for a gateway on the
//! same machine; behind the gateway of a platform, it listens where the platform expects it.
//!
//! # Limits of a signature
//!
//! * It is for reading the user's partition and, with `add=true`, for inserting there. It expires
//!   after 15 minutes.
//! * It limits neither how many entities a user inserts nor which properties they have: a service
//!   that reads the notes checks them as it checks requests.
//! * It has no start, since the clock of the service may be some minutes behind ours: a signature
//!   that starts now would be refused there at first. If our clock is behind, it expires earlier.
//! * It cannot be revoked by itself. All of them name a stored access policy of the table: start
//!   the service with a higher `SIGNATURE_GENERATION`, and those of lower generations end within 30
//!   seconds. A table has up to five policies, so there cannot be one for each user. Replacing the
//!   account key ends them, too. The table's policies are written without a condition: let all
//!   instances have one generation before the next one.
//! * After the first start with a generation, signatures may be refused for 30 seconds, until the
//!   service knows the policy.
//! * Azure Cosmos DB has no signatures for a range of keys: the service does not start there.

mod api;
mod signatures;
#[cfg(test)]
mod tests;

use std::env;

use signatures::Signatures;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().init();
    let (service, _server) = tablesdk_examples::connect().await?;
    let generation = env::var("SIGNATURE_GENERATION");
    let generation = generation.map_or(Ok(1), |generation| generation.parse())?;
    let signatures = Signatures::open(&service, generation).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, api::routes(signatures)).await?;
    Ok(())
}
