//! The program and the test that `README.md` shows. `tests/tidy` compares them.

use tablesdk::{TableClient, TableEntity, TableServiceClient};
use tablesdk_server::TableServer;

#[derive(Debug, Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
    salary: f64,
    email: Option<String>,
}

fn ada() -> Employee {
    Employee {
        department: "Engineering".into(),
        id: "000223".into(),
        name: "Ada".into(),
        salary: 61_000.0,
        email: None,
    }
}

async fn raise(table: &TableClient, department: &str, id: &str) -> tablesdk::Result<()> {
    if let Some(mut employee) = table.get(Employee::key(department, id)).await? {
        employee.salary += 1_000.0;
        table.replace(&mut employee).await?; // only if it has not changed since
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = TableServer::start().await?; // or a connection string from the Azure portal
    let service = TableServiceClient::from_connection_string(&server.connection_string())?;
    let table = service.table("Employees");
    table.create_table().if_missing().await?;

    table.insert(&ada()).await?;
    raise(&table, "Engineering", "000223").await?;

    let well_paid = table
        .query::<Employee>()
        .partition("Engineering")
        .filter(|e| e.salary.ge(50_000.0))
        .select(|e| (e.name, e.salary));
    for (name, salary) in well_paid.collect().await? {
        println!("{name}: {salary}"); // Ada: 62000
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tablesdk::testing::TestTable;

    #[tokio::test]
    async fn a_raise_is_stored() -> tablesdk::Result<()> {
        let table = TestTable::new(TableServer::in_process).await;
        table.insert(&ada()).await?;
        raise(&table, "Engineering", "000223").await?;
        let ada = table.get(Employee::key("Engineering", "000223")).await?;
        assert!(ada.is_some_and(|ada| ada.salary > 61_000.0));
        Ok(())
    }
}
