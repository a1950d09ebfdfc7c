//! Totals that always agree with the entities, and a list of all totals that follows:
//! `cargo run --example totals`.
//!
//! The totals of a department are an entity of its partition, which each transaction changes
//! together with the employees. The list of all departments is in another table, and a step of the
//! same transaction keeps it. What a program has written past the totals is found by a
//! verification, and mended by a rebuild.
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates tables with
//! new names, and deletes them at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use futures::TryStreamExt as _;
use tablesdk::outbox::{Outbox, Step};
use tablesdk::{TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};

#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "empid_{id:06}"
)]
struct Employee {
    department: String,
    id: u32,
    salary: i64,
}

/// The totals of a department, beside its employees.
#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "totals"
)]
struct Totals {
    department: String,
    employees: i64,
    salaries: i64,
}

/// The same in another table: all departments in one partition, so that one query reads them.
#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "departments",
    row_key = "{department}"
)]
struct Listed {
    department: String,
    employees: i64,
    salaries: i64,
}

/// Number and salaries of employees.
type Sums = (i64, i64);

struct Company {
    table: TableClient,
    list: TableClient,
}

impl Company {
    /// Stores an employee, and changes the totals in the same transaction. The list follows.
    async fn hire(&self, employee: &Employee) -> Result<(), tablesdk::Error> {
        let department = &employee.department;
        let hire = self.table.transaction(department, async |tx| {
            let totals = tx.get(Totals::key(department)).await?;
            let (employees, salaries) =
                totals.map_or((0, 0), |found| (found.employees, found.salaries));
            tx.insert(employee);
            self.set(&tx, department, (employees + 1, salaries + employee.salary));
            Ok(())
        });
        hire.await
    }

    /// Writes the totals under the version that the transaction has read, and the entity of the
    /// list by a step.
    fn set(&self, tx: &tablesdk::action::Transaction, department: &str, sums: Sums) {
        let (employees, salaries) = sums;
        let department = department.to_owned();
        let listed = Listed {
            department: department.clone(),
            employees,
            salaries,
        };
        let totals = Totals {
            department,
            employees,
            salaries,
        };
        tx.upsert_replace(&totals)
            .step(Step::upsert_replace(&self.list, &listed));
    }

    /// The departments whose totals differ from their employees, or whose entity of the list does.
    async fn verify(&self) -> Result<BTreeSet<String>, tablesdk::Error> {
        // Steps that wait are not differences.
        Outbox::new(&self.table).drain().await?;
        let mut counted = BTreeMap::<String, Sums>::new();
        let mut employees = self.table.query::<Employee>().stream();
        while let Some(employee) = employees.try_next().await? {
            let sums = counted.entry(employee.department.clone()).or_default();
            *sums = (sums.0 + 1, sums.1 + employee.salary);
        }
        let totals = self.table.query::<Totals>().stream();
        let totals = totals.map_ok(|it| (it.department.clone(), (it.employees, it.salaries)));
        let listed = self
            .list
            .query::<Listed>()
            .partition("departments")
            .stream();
        let listed = listed.map_ok(|it| (it.department.clone(), (it.employees, it.salaries)));
        let mut differ = BTreeSet::new();
        for found in [
            totals.try_collect::<BTreeMap<_, _>>().await?,
            listed.try_collect().await?,
        ] {
            let departments = counted.keys().chain(found.keys());
            let wrong = departments.filter(|it| counted.get(*it) != found.get(*it));
            differ.extend(wrong.cloned());
        }
        Ok(differ)
    }

    /// Counts the employees of a department anew. Each other transaction of the department changes
    /// the totals, so this one starts over if an employee has come or left since the count.
    async fn rebuild(&self, department: &str) -> Result<(), tablesdk::Error> {
        let rebuild = self.table.transaction(department, async |tx| {
            tx.get(Totals::key(department)).await?;
            let employees = self
                .table
                .query::<Employee>()
                .partition(department)
                .stream();
            let sums = employees.try_fold((0, 0), async |(employees, salaries), employee| {
                Ok((employees + 1, salaries + employee.salary))
            });
            self.set(&tx, department, sums.await?);
            Ok(())
        });
        rebuild.await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let company = Company {
        table: service.table(unique_name("Company")),
        list: service.table(unique_name("Departments")),
    };
    company.table.create_table().await?;
    company.list.create_table().await?;

    // The tables are deleted after an error, too.
    let outcome = tour(&company).await;
    company.table.delete_table().await?;
    company.list.delete_table().await?;
    outcome
}

async fn tour(company: &Company) -> Result<(), Box<dyn Error>> {
    println!("1. Twenty employees are hired at the same time, in two departments:");
    let employees = (1..=20).map(|id| employee(if id % 2 == 0 { "Sales" } else { "Legal" }, id));
    let employees: Vec<_> = employees.collect();
    let hired = employees.iter().map(|employee| company.hire(employee));
    futures::future::try_join_all(hired).await?;
    let totals = company.table.get(Totals::key("Sales")).await?;
    let totals = totals.ok_or("it has employees")?;
    println!(
        "   Sales: {} employees, {} in salaries",
        totals.employees, totals.salaries
    );

    println!("\n2. An employee who exists is refused, and the totals stay:");
    if let Err(error) = company.hire(&employee("Sales", 2)).await {
        println!("   {}", error.is_conflict());
    }
    println!("   {} departments differ", company.verify().await?.len());

    println!("\n3. Another program inserts an employee without the totals:");
    company.table.insert(&employee("Sales", 99)).await?;
    let differ = company.verify().await?;
    println!("   {differ:?} differ");

    println!("\n4. They are counted anew:");
    for department in &differ {
        company.rebuild(department).await?;
    }
    println!("   {} departments differ", company.verify().await?.len());
    let mut listed = company
        .list
        .query::<Listed>()
        .partition("departments")
        .stream();
    while let Some(department) = listed.try_next().await? {
        println!(
            "   {}: {} employees, {} in salaries",
            department.department, department.employees, department.salaries
        );
    }
    Ok(())
}

fn employee(department: &str, id: u32) -> Employee {
    Employee {
        department: department.to_owned(),
        id,
        salary: 50_000 + i64::from(id),
    }
}
