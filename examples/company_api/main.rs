//! An HTTP API over one table, with axum: departments, their employees, and an index by e-mail
//! address. `cargo run --example company_api` serves it on 127.0.0.1:3000. Without a connection
//! string it starts the bundled server.

mod api;
mod model;
#[cfg(test)]
mod tests;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (service, _server) = tablesdk_examples::connect().await?;
    let table = service.table("Company");
    table.create_table().if_missing().await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, api::routes(table)).await?;
    Ok(())
}
