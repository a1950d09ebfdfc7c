//! Departments and employees in one table, and one partition for each department:
//! `cargo run --example company`.
//!
//! A department and its employees share a partition, so one query reads them, and one batch changes
//! them together. Each type of entity is a struct. The property `EntityType` names the type, and an
//! enum reads entities of all types.
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.

use std::error::Error;

use futures::TryStreamExt as _;
use tablesdk::{DynamicEntity, TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};

/// One entity per department. Its row key sorts before those of its employees: `!` is before every
/// letter and digit.
#[derive(Debug, Clone, TableEntity)]
#[table(entity_type = "Department", rename_all = "PascalCase")]
struct Department {
    #[table(partition_key)]
    name: String,
    #[table(row_key)]
    row: String,
    headcount: i32,
    budget: f64,
}

/// The first version of an employee.
#[derive(Debug, Clone, TableEntity)]
#[table(entity_type = "Employee", rename_all = "PascalCase")]
struct EmployeeV1 {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
    salary: f64,
}

#[derive(Debug, Clone, TableEntity)]
#[table(
    entity_type = "Employee.v2",
    from = "EmployeeV1",
    rename_all = "PascalCase"
)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    first_name: String,
    last_name: String,
    salary: f64,
}

impl From<EmployeeV1> for Employee {
    fn from(old: EmployeeV1) -> Self {
        let (first, last) = old.name.split_once(' ').unwrap_or(("", &old.name));
        Self {
            first_name: first.to_owned(),
            last_name: last.to_owned(),
            department: old.department,
            id: old.id,
            salary: old.salary,
        }
    }
}

#[derive(Debug, Clone, TableEntity)]
#[table(entity_type = "Contractor", rename_all = "PascalCase")]
struct Contractor {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
    daily_rate: f64,
}

/// An entity of any type in the table.
#[derive(Debug, TableEntity)]
enum CompanyRow {
    Department(Department),
    Employee(Employee),
    #[table(alias = "Freelancer")]
    Contractor(Contractor),
    #[table(other)]
    Other(DynamicEntity),
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Company"));
    table.create_table().await?;

    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    let mut sales = table
        .insert(&Department {
            name: "Sales".to_owned(),
            row: "!".to_owned(),
            headcount: 0,
            budget: 250_000.0,
        })
        .await?;
    found(table).await?;

    println!("1. A new employee and the headcount, together or not at all:");
    let grace = employee("000223", "Grace", "Hopper", 80_000.0);
    sales.headcount += 1;
    table
        .batch("Sales")
        .insert(&grace)
        .replace(&mut sales)
        .await?;
    println!("   headcount {}, budget {}", sales.headcount, sales.budget);

    println!("\n2. The department and its employees, in one query:");
    let mut rows = table.query::<CompanyRow>().partition("Sales").stream();
    while let Some(row) = rows.try_next().await? {
        let id = row.key().row_key().as_str();
        match &*row {
            CompanyRow::Department(department) => {
                println!("   {id}: department {}", department.name);
            }
            CompanyRow::Employee(employee) => println!(
                "   {id}: {}, {} (employee)",
                employee.last_name, employee.first_name
            ),
            CompanyRow::Contractor(contractor) => {
                println!(
                    "   {id}: {} at {} a day",
                    contractor.name, contractor.daily_rate
                );
            }
            CompanyRow::Other(other) => {
                let kind = other.properties().read::<String>("EntityType")?;
                println!("   {id}: a {kind}, which this program does not know");
            }
        }
    }

    println!("\n3. Employees alone, those of the old version among them:");
    let employees = table.query::<Employee>().partition("Sales");
    for employee in employees.collect().await? {
        println!(
            "   {} {}: {}",
            employee.first_name, employee.last_name, employee.salary
        );
    }

    println!("\n4. Who costs much, of two kinds in one filter:");
    let costly = table
        .query::<CompanyRow>()
        .partition("Sales")
        .filter(|row| row.employee.salary.ge(70_000.0) | row.contractor.daily_rate.ge(800.0));
    println!("   {} rows", costly.count().await?);

    println!("\n5. A row that is something else:");
    match table.get::<Employee>(("Sales", "!")).await {
        Err(error) => println!("   refused: {error}"),
        Ok(_) => return Err("a department was taken for an employee".into()),
    }
    Ok(())
}

/// Entities of other programs: an employee of the first version, a contractor under an older type
/// name, and an unknown type.
async fn found(table: &TableClient) -> Result<(), Box<dyn Error>> {
    let ada = EmployeeV1 {
        department: "Sales".to_owned(),
        id: "000001".to_owned(),
        name: "Ada Lovelace".to_owned(),
        salary: 65_000.0,
    };
    table.insert(&ada).await?;
    let mut alan = DynamicEntity::new("Sales", "f00001");
    alan.properties_mut()
        .extend([("EntityType", "Freelancer"), ("Name", "Alan Turing")]);
    alan.properties_mut().set("DailyRate", 900.0);
    table.insert(&alan).await?;
    let mut desk = DynamicEntity::new("Sales", "z00001");
    desk.properties_mut().set("EntityType", "Desk");
    table.insert(&desk).await?;
    Ok(())
}

fn employee(id: &str, first_name: &str, last_name: &str, salary: f64) -> Employee {
    Employee {
        department: "Sales".to_owned(),
        id: id.to_owned(),
        first_name: first_name.to_owned(),
        last_name: last_name.to_owned(),
        salary,
    }
}
