//! Departments, employees and their salaries: `cargo run --example departments`.
//!
//! A department has many employees, and an employee has one salary. They share the partition of the
//! department. So one batch changes them together, and one query reads them. Employees of several
//! departments are joined with their departments in the client. See [modeling relationships].
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.
//!
//! [modeling relationships]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-modeling

use std::collections::{BTreeSet, HashMap};
use std::error::Error;

use tablesdk::{TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};

#[derive(TableEntity)]
#[table(entity_type = "Department", partition_key = "{name}", row_key = "dept")]
struct Department {
    name: String,
    floor: i32,
    headcount: i32,
}

#[derive(TableEntity)]
#[table(entity_type = "Employee")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    name: String,
}

/// An entity of its own: most reads of employees do not need it.
#[derive(TableEntity)]
#[table(entity_type = "Salary")]
#[table(partition_key = "{department}", row_key = "salary_{id:06}")]
struct Salary {
    department: String,
    id: u32,
    dollars: i64,
}

#[derive(TableEntity)]
enum Company {
    Department(Department),
    Employee(Employee),
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Departments"));
    table.create_table().await?;

    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    let legal = vec![(31, "Hopper", 90_000)];
    let sales = vec![(223, "Jones", 80_000), (224, "Turing", 90_000)];
    for (department, floor, people) in [("Legal", 1, legal), ("Sales", 2, sales)] {
        // All of a department together, or nothing.
        let mut batch = table.batch(department).insert(&Department {
            name: department.to_owned(),
            floor,
            headcount: i32::try_from(people.len())?,
        });
        for (id, name, dollars) in people {
            let (department, name) = (department.to_owned(), name.to_owned());
            batch = batch
                .insert(&Salary {
                    department: department.clone(),
                    id,
                    dollars,
                })
                .insert(&Employee {
                    department,
                    id,
                    name,
                });
        }
        batch.await?;
    }

    println!("1. One-to-many, a department and its employees by one query, without salaries:");
    let sales = table.query::<Company>().partition("Sales");
    let sales = sales.filter(|row| row.is_department() | row.is_employee());
    for entity in sales.values().collect().await? {
        match entity {
            Company::Department(it) => println!("   {}, {} employees", it.name, it.headcount),
            Company::Employee(it) => println!("   {:06} {}", it.id, it.name),
        }
    }

    println!("\n2. One-to-one, the salary of an employee:");
    let salary = table.get(Salary::key("Sales", 223)).await?;
    println!("   {} dollars", salary.ok_or("inserted above")?.dollars);

    println!("\n3. Join in the client, the floors of all employees:");
    let found = table.query::<Employee>().collect().await?;
    // Each department is read once, whatever the number of its employees.
    let names: BTreeSet<&str> = found.iter().map(|e| e.department.as_str()).collect();
    let keys = names.iter().copied().map(Department::key);
    let read = table.get_many(keys).await?;
    let departments: HashMap<&str, _> = names.into_iter().zip(read).collect();
    for employee in &found {
        if let Some(department) = &departments[employee.department.as_str()] {
            println!("   {}: floor {}", employee.name, department.floor);
        }
    }
    Ok(())
}
