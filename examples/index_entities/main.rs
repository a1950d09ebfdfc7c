//! Lists of the employees with a last name: `cargo run --example index_entities`.
//!
//! It reads and keeps the index entities of the design guide, for tables that other programs read
//! and write, too: in the partition of the employees, and for all departments in another table,
//! where a list of more than 64 KiB is in an object store, here a folder. See the [index entities
//! pattern].
//!
//! A new table is better off with an entry for each employee, as in the example `employees`: one
//! query reads all of them, no list is too long, and two inserts do not meet in one list.
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates tables with
//! new names, and deletes them at the end.
//!
//! [index entities pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#index-entities-pattern

mod lists;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fs;

use object_store::local::LocalFileSystem;
use tablesdk::action::ClosureError;
use tablesdk::objects::Objects;
use tablesdk::outbox::{Outbox, Received};
use tablesdk::{DynamicEntity, TableClient};
use tablesdk_examples::{connect, unique_name};

use crate::lists::{Employee, InCompany, InDepartment, Members, NameChanged};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let company = service.table(unique_name("Employees"));
    let lists = service.table(unique_name("LastNames"));
    let folder = std::env::temp_dir().join(unique_name("last_names"));
    company.create_table().await?;
    lists.create_table().await?;
    fs::create_dir(&folder)?;

    // Tables and folder are deleted after an error, too.
    let objects = Objects::new(LocalFileSystem::new_with_prefix(&folder)?, "last-names");
    let outcome = tour(&company, &lists, &objects).await;
    company.delete_table().await?;
    lists.delete_table().await?;
    fs::remove_dir_all(&folder)?;
    outcome.map_err(|error| -> Box<dyn Error> { error })
}

async fn tour(
    company: &TableClient,
    lists: &TableClient,
    objects: &Objects,
) -> Result<(), ClosureError> {
    println!("1. An employee and the list of the department are written together:");
    for (department, id, last_name) in [
        ("Sales", 152, "Jones"),
        ("Sales", 223, "Jones"),
        ("Legal", 7, "Jones"),
    ] {
        lists::hire(company, &employee(department, id, last_name)).await?;
    }
    let list = company.get::<DynamicEntity>(("Sales", "Jones")).await?;
    let list = list.ok_or("was written")?;
    let ids = list.properties().get("EmployeeIDs").ok_or("was written")?;
    println!("   EmployeeIDs {ids:?}");

    println!("\n2. A worker keeps the lists of the company:");
    let report = worker(company, lists, objects).drain().await?;
    println!("   {} messages", report.applied);
    for employee in lists::of_company(company, lists, objects, "Jones").await? {
        println!("   {} {:06}", employee.department, employee.id);
    }

    println!("\n3. Another name is another list:");
    lists::rename(company, ("Sales", 223), "Smith").await?;
    lists::dismiss(company, ("Sales", 152)).await?;
    let count = async |name| {
        let found = lists::of_department(company, "Sales", name).await;
        found.map(|found| found.len())
    };
    println!(
        "   {} Jones, {} Smith",
        count("Jones").await?,
        count("Smith").await?
    );

    println!("\n4. A string has at most 64 KiB, which is 4681 ids:");
    let full = InDepartment {
        department: "Sales".to_owned(),
        last_name: "Li".to_owned(),
        employee_ids: (100_000..104_681).collect(),
    };
    company.insert(&full).await?;
    let one_more = employee("Sales", 104_681, "Li");
    if let Err(error) = lists::hire(company, &one_more).await {
        println!("   refused: {error}");
    }
    let stored = company.get(Employee::key("Sales", 104_681)).await?;
    println!("   stored: {}", stored.is_some());

    println!("\n5. A longer list of the company is an object:");
    let members = (0..100_000).map(|id| ("Production".to_owned(), id));
    let members = Members(members.collect());
    lists
        .insert(&InCompany::new("Li", &members, objects).await?)
        .await?;
    lists::hire(company, &employee("Legal", 8, "Li")).await?;
    worker(company, lists, objects).drain().await?;
    let list = lists
        .get(InCompany::key("Li", "Li"))
        .await?
        .ok_or("was written")?;
    let object = list.employee_details_object.as_ref().ok_or("it is long")?;
    let members = list.members(objects).await?.0.len();
    println!("   {members} employees in {} bytes", object.size());
    Ok(())
}

/// The outbox of the employees, with the handler of its message.
fn worker(company: &TableClient, lists: &TableClient, objects: &Objects) -> Outbox {
    let (employees, lists, objects) = (company.clone(), lists.clone(), objects.clone());
    Outbox::new(company).on(move |changed: Received<NameChanged>| {
        let (employees, lists, objects) = (employees.clone(), lists.clone(), objects.clone());
        async move { lists::keep_company_list(&employees, &lists, &objects, &changed).await }
    })
}

fn employee(department: &str, id: u32, last_name: &str) -> Employee {
    Employee {
        department: department.to_owned(),
        id,
        last_name: last_name.to_owned(),
        email: None,
    }
}
