//! An ordering service over one table, with axum, and tests that show the kit of the bundled
//! server: `cargo test --example orders`. `cargo run --example orders` serves it on 127.0.0.1:3000.
//! Without a connection string it starts the bundled server.

mod api;
mod orders;
#[cfg(test)]
mod tests;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (service, _server) = tablesdk_examples::connect().await?;
    let table = service.table("Orders");
    table.create_table().if_missing().await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, api::routes(table)).await?;
    Ok(())
}
