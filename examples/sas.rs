//! Gives limited access to a table without the account key: `cargo run --example sas`.
//!
//! Without a connection string, it starts the bundled server in this process and sends requests
//! over HTTP. With one that has an account key, as the argument or in
//! `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with a new name, and
//! deletes it at the end.

use std::error::Error;
use std::time::{Duration, SystemTime};

use tablesdk::sas::{Permissions, StoredAccessPolicy};
use tablesdk::{TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};

/// The properties of an order that a customer can read.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Order {
    #[table(partition_key)]
    customer: String,
    #[table(row_key)]
    number: String,
    state: String,
}

impl Order {
    fn new(customer: &str, number: &str, state: &str) -> Self {
        Self {
            customer: customer.to_owned(),
            number: number.to_owned(),
            state: state.to_owned(),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Orders"));
    table.create_table().await?;

    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome?;
    println!("Deleted the table. That was all.");
    Ok(())
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    for (customer, number, state) in [
        ("contoso", "0001", "delivered"),
        ("contoso", "0002", "packed"),
        ("fabrikam", "0001", "packed"),
    ] {
        table.insert(&Order::new(customer, number, state)).await?;
    }

    println!("1. A URL for one customer, good for an hour and for reading alone:");
    let url = table
        .sas()
        .allow(Permissions::READ)
        .partition("contoso")
        .expires_in(Duration::from_secs(3600))
        .sign()?;
    println!("   {url:?}");
    // The customer receives only the URL.
    let customer = TableClient::from_sas_url(&url.expose())?;
    let orders = customer
        .query::<Order>()
        .partition("contoso")
        .collect()
        .await?;
    for order in &orders {
        println!("   order {} is {}", order.number, order.state);
    }
    let error = customer
        .insert(&Order::new("contoso", "0003", "new"))
        .await
        .unwrap_err();
    println!(
        "   an insert: {}",
        error.code().ok_or("the service says why")?
    );

    println!("2. A URL that can be taken back, since the table says what it is good for:");
    let packers = StoredAccessPolicy::new("packers")
        .allow(Permissions::READ | Permissions::UPDATE)
        // The clock of the service may differ from ours.
        .starts_at(SystemTime::now() - Duration::from_secs(900))
        .expires_at(SystemTime::now() + Duration::from_secs(3600));
    table.set_access_policy([packers]).await?;
    for policy in table.access_policy().await? {
        let allowed = policy.permissions().unwrap_or_default();
        println!("   policy {} allows {allowed}", policy.id());
    }
    let url = table.sas().with_policy("packers").sign()?;
    let packer = TableClient::from_sas_url(&url.expose())?;
    packer
        .patch(Order::key("contoso", "0002"))
        .set(|order| order.state, "sent")
        .await?;
    println!("   order 0002 was marked as sent");

    table.set_access_policy([]).await?;
    let error = packer.get(Order::key("contoso", "0002")).await.unwrap_err();
    println!("   without the policy it is denied: {}", error.is_denied());
    Ok(())
}
