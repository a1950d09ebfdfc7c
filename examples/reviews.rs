//! Employees and their yearly reviews in one partition: `cargo run --example reviews`.
//!
//! The row key of a review consists of the employee's number and the year. One query of a key range
//! reads an employee and all reviews, without a filter on a property. The reviews of several years
//! are also a key range. See the [compound key pattern].
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.
//!
//! [compound key pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-guide#compound-key-pattern

use std::error::Error;

use tablesdk::key::RowRange;
use tablesdk::{TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};

/// The row key is `000223_`, directly before the reviews.
#[derive(Debug, Clone, TableEntity)]
#[table(
    entity_type = "Employee",
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{id:06}_"
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
}

/// The row key is `000223_2021`.
#[derive(Debug, Clone, TableEntity)]
#[table(
    entity_type = "Review",
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{employee:06}_{year:04}"
)]
struct Review {
    department: String,
    employee: u32,
    year: u16,
    manager_rating: i32,
    peer_rating: i32,
}

/// An entity in the partition of a department.
#[derive(Debug, TableEntity)]
enum Row {
    Employee(Employee),
    Review(Review),
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Reviews"));
    table.create_table().await?;

    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    let mut batch = table.batch("Sales");
    for (id, name) in [(222, "Mary Shelley"), (223, "Grace Hopper")] {
        batch = batch.insert(&employee(id, name));
        for year in 2019..2024 {
            batch = batch.insert(&review(id, year));
        }
    }
    batch.await?;

    println!("1. An employee and all reviews, in one request:");
    let of_grace = RowRange::from(Review::rows().employee(223));
    let query = table.query::<Row>().partition("Sales").rows(of_grace.of());
    println!("   found by a {}", query.explain()?.access());
    for row in query.collect().await? {
        match &*row {
            Row::Employee(employee) => println!("   {}", employee.name),
            Row::Review(review) => println!("   {}: {}", review.year, stars(review)),
        }
    }

    println!("\n2. The reviews since 2022, which are a range of keys:");
    let recent = Review::rows().employee(223).year(2022..);
    for review in table
        .query::<Review>()
        .partition("Sales")
        .rows(recent)
        .collect()
        .await?
    {
        println!("   {}: {}", review.year, stars(&review));
    }

    println!("\n3. One review, by its key:");
    let key = Review::key("Sales", 223, 2021);
    let mut review = table.get(key).await?.ok_or("it was just inserted")?;
    println!("   {}: {}", review.key().row_key(), stars(&review));
    review.manager_rating += 1;
    table.replace(&mut review).await?;
    println!("   {}: {}", review.key().row_key(), stars(&review));

    println!("\n4. A key that has no such form:");
    match table.get(Review::key("Sales", 1_000_000, 2021)).await {
        Err(error) => println!("   refused: {error}"),
        Ok(_) => return Err("six digits held a million".into()),
    }
    Ok(())
}

fn employee(id: u32, name: &str) -> Employee {
    Employee {
        department: "Sales".to_owned(),
        id,
        name: name.to_owned(),
    }
}

fn review(employee: u32, year: u16) -> Review {
    Review {
        department: "Sales".to_owned(),
        employee,
        year,
        manager_rating: i32::from(year % 3) + 1,
        peer_rating: i32::from(year % 4) + 1,
    }
}

fn stars(review: &Review) -> String {
    format!(
        "{} of 5 by the manager, {} by peers",
        review.manager_rating, review.peer_rating
    )
}
