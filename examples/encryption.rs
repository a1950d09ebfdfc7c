//! Properties that neither the service nor its operators can read:
//! `cargo run --example encryption`.
//!
//! The insurance number is encrypted by the client. So is the email, which can be found: a second
//! property shows who has the same. A program without the keys sees bytes, and what it exchanges is
//! an error when the employee is read.
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates tables with
//! new names, and deletes them at the end.

use std::error::Error;

use tablesdk::encryption::{Keyring, LocalKey};
use tablesdk::{DynamicEntity, TableClient, TableEntity, Value};
use tablesdk_examples::{connect, unique_name};

#[derive(Debug, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "empid_{id:06}"
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
    #[table(encrypt)]
    insurance_number: String,
    #[table(encrypt(eq))]
    email: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let company = service.table(unique_name("Company"));
    let keys = service.table(unique_name("TablesdkKeys"));
    company.create_table().await?;
    keys.create_table().await?;

    // The tables are deleted after an error, too.
    let outcome = tour(&company, &keys).await;
    company.delete_table().await?;
    keys.delete_table().await?;
    outcome
}

async fn tour(company: &TableClient, keys: &TableClient) -> Result<(), Box<dyn Error>> {
    // A program reads the secret from a secret store, or has a provider that asks a vault.
    let provider = LocalKey::new("example", [7; 32]);
    let table = company.with_encryption(Keyring::open(keys, provider).await?);
    for (id, name) in [(1, "Ada"), (2, "Grace")] {
        let employee = Employee {
            department: "Sales".to_owned(),
            id,
            name: name.to_owned(),
            insurance_number: format!("AB 12 34 5{id} C"),
            email: format!("{}@contoso.com", name.to_lowercase()),
        };
        table.insert(&employee).await?;
    }

    println!("1. With the keys:");
    let sales = table.query::<Employee>().partition("Sales");
    let grace = sales.filter(|e| e.email.eq("grace@contoso.com")).one();
    let grace = grace.await?.ok_or("was inserted")?;
    println!(
        "   {} has the number {}",
        grace.name, grace.insurance_number
    );

    println!("\n2. Without the keys:");
    let read = async |row: &str| company.get::<DynamicEntity>(("Sales", row)).await;
    let mut ada = read("empid_000001").await?.ok_or("was inserted")?;
    for (name, value) in ada.properties().iter() {
        match value {
            Value::Binary(bytes) => println!("   {name}: {} bytes", bytes.len()),
            value => println!("   {name}: {value:?}"),
        }
    }

    println!("\n3. After a program without the keys has exchanged a number:");
    let grace = read("empid_000002").await?.ok_or("was inserted")?;
    let number = grace.properties().get("InsuranceNumber").cloned();
    let number = number.ok_or("every employee has one")?;
    ada.properties_mut().set("InsuranceNumber", number);
    company.replace(&mut ada).await?;
    let error = table.get(Employee::key("Sales", 1)).await.err();
    println!("   {}", error.ok_or("the exchange is found out")?);
    Ok(())
}
