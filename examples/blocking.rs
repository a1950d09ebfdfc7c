//! A program without `async`: `cargo run --example blocking`.
//!
//! A runtime of one thread, which is the thread of the caller, carries out each call. Build it
//! once: the connections of the client belong to it. A call within a program that has a runtime
//! already would panic: such a program awaits the calls instead.
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.

use std::error::Error;
use std::iter::from_fn;

use futures::StreamExt as _;
use tablesdk::{Stored, TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};
use tokio::runtime::{Builder, Runtime};

#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{id:06}"
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
}

/// The employees, for callers that wait.
struct Employees {
    runtime: Runtime,
    table: TableClient,
}

impl Employees {
    fn insert(&self, employee: &Employee) -> Result<Stored<Employee>, tablesdk::Error> {
        self.runtime
            .block_on(async { self.table.insert(employee).await })
    }

    fn get(&self, department: &str, id: u32) -> Result<Option<Stored<Employee>>, tablesdk::Error> {
        let get = async { self.table.get(Employee::key(department, id)).await };
        self.runtime.block_on(get)
    }

    /// Reads the next page when the items of the last one are used up.
    fn of(
        &self,
        department: &str,
    ) -> impl Iterator<Item = Result<Stored<Employee>, tablesdk::Error>> {
        let mut employees = self
            .table
            .query::<Employee>()
            .partition(department)
            .stream();
        from_fn(move || self.runtime.block_on(employees.next()))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (service, _server) = runtime.block_on(connect())?;
    let table = service.table(unique_name("Employees"));
    runtime.block_on(async { table.create_table().await })?;
    let employees = Employees { runtime, table };

    // The table is deleted after an error, too.
    let outcome = tour(&employees);
    let Employees { runtime, table } = &employees;
    runtime.block_on(async { table.delete_table().await })?;
    outcome
}

fn tour(employees: &Employees) -> Result<(), Box<dyn Error>> {
    println!("1. Each call returns when it is done:");
    for (id, name) in [(1, "Ada"), (2, "Grace"), (3, "Edsger")] {
        employees.insert(&Employee {
            department: "Sales".to_owned(),
            id,
            name: name.to_owned(),
        })?;
    }
    let grace = employees.get("Sales", 2)?.ok_or("was inserted")?;
    println!("   {} is number {}", grace.name, grace.id);

    println!("\n2. A query is an iterator:");
    for employee in employees.of("Sales") {
        println!("   {}", employee?.name);
    }
    Ok(())
}
