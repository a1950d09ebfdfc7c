//! Employees by their number, their email and their last name: `cargo run --example employees`.
//!
//! An employee is stored under its number. Two indexes find it by other properties: an entry under
//! the email, which no two employees of a department share, and one under the last name. A third
//! index finds employees of all departments by their last name. Writes of an employee keep all of
//! them. See the [intra-partition] and the [inter-partition secondary index pattern].
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.
//!
//! [intra-partition]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#intra-partition-secondary-index-pattern
//! [inter-partition secondary index pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#inter-partition-secondary-index-pattern

use std::error::Error;

use tablesdk::{DynamicEntity, TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};

#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "empid_{id:06}"
)]
#[table(index(ByEmail, row_key = "email_{email}", unique))]
#[table(index(ByLastName, row_key = "name_{last_name}_{id:06}"))]
#[table(index(
    InCompany,
    partition_key = "name_{last_name}",
    row_key = "in_{department}_{id:06}"
))]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    /// An employee without an email has no entry for it.
    email: Option<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Employees"));
    table.create_table().await?;

    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    println!("1. Each insert writes the entries, too. Those of the department:");
    for (id, last_name, email) in [
        (223, "Jones", Some("jonesj@contoso.com")),
        (224, "Jones", None),
        (330, "Smith", Some("smitha@contoso.com")),
    ] {
        table.insert(&employee(id, last_name, email)).await?;
    }
    let rows = table.query::<DynamicEntity>().partition("Sales");
    for row in rows.collect().await? {
        println!("   {}", row.row_key());
    }

    println!("\n2. By email, with one read:");
    let key = || ByEmail::key("Sales", "jonesj@contoso.com");
    let found = table.get(key()).await?.ok_or("was inserted")?;
    println!("   {}, number {}", found.last_name, found.id);

    println!("\n3. By last name, in the order of the numbers:");
    print_by_last_name(table, "Jones").await?;

    println!("\n4. The email of another employee is refused:");
    let second = employee(331, "Jonesj", Some("jonesj@contoso.com"));
    if let Err(error) = table.insert(&second).await {
        println!("   taken in the index {}", error.index().unwrap_or("none"));
    }

    println!("\n5. A marriage moves both entries:");
    let mut jones = table.get(key()).follow().await?.ok_or("was inserted")?;
    jones.last_name = "Smith".into();
    jones.email = Some("smithj@contoso.com".into());
    table.replace(&mut jones).await?;
    print_by_last_name(table, "Smith").await?;

    println!("\n6. In all departments:");
    let mut legal = employee(1, "Smith", None);
    legal.department = "Legal".into();
    table.insert(&legal).await?;
    let smiths = table.query().partition(InCompany::partition("Smith"));
    for employee in smiths.follow().collect().await? {
        println!("   {} {}", employee.department, employee.id);
    }

    println!("\n7. What a program did that does not know the indexes is repaired:");
    table.delete(("Sales", "empid_000224")).await?;
    let report = table.repair::<Employee>().await?;
    let (orphaned, recent) = (report.orphaned, report.recent);
    println!("   {orphaned} orphaned entry deleted, {recent} of this hour left");
    Ok(())
}

async fn print_by_last_name(table: &TableClient, name: &str) -> Result<(), tablesdk::Error> {
    let rows = ByLastName::rows().last_name(name);
    let found = table.query::<ByLastName>().partition("Sales").rows(rows);
    for entry in found.collect().await? {
        println!("   {} {}", entry.last_name, entry.id);
    }
    Ok(())
}

fn employee(id: u32, last_name: &str, email: Option<&str>) -> Employee {
    Employee {
        department: "Sales".to_owned(),
        id,
        last_name: last_name.to_owned(),
        email: email.map(str::to_owned),
    }
}
