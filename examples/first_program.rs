//! The program and the test that `README.md` shows. `tests/tidy` compares them.

use tablesdk::{TableClient, TableEntity, TableServiceClient};
use tablesdk_server::TableServer;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    name: String,
    salary: i64,
}

fn ada() -> Employee {
    Employee {
        department: "Sales".into(),
        name: "Ada".into(),
        salary: 61_000,
    }
}

async fn raise(table: &TableClient, name: &str) -> tablesdk::Result<()> {
    let raise = table.modify(Employee::key("Sales", name), |employee| {
        employee.salary += 1_000;
        Ok(())
    });
    raise.exactly_once().await?; // also if a response is lost
    Ok(())
}

#[tokio::main]
async fn main() -> tablesdk::Result<()> {
    let server = TableServer::in_process();
    let service = TableServiceClient::in_process(&server); // on Azure: from_env()?
    let table = service.table("Employees");
    table.create_table().if_missing().await?;

    table.insert(&ada()).await?;
    raise(&table, "Ada").await?;

    let sales = table.query::<Employee>().partition("Sales");
    for employee in sales.filter(|e| e.salary.ge(50_000)).collect().await? {
        println!("{}: {}", employee.name, employee.salary); // Ada: 62000
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tablesdk::testing::TestTable;
    use tablesdk_server::testing::Fault;

    #[tokio::test]
    async fn a_raise_is_paid_once_if_a_response_is_lost() -> tablesdk::Result<()> {
        let table = TestTable::on(TableServer::in_process()).await;
        table.insert(&ada()).await?;

        let faults = table.server().expect("it is in process").faults();
        let lost = faults.on_writes().times(1).inject(Fault::lost_response());
        raise(&table, "Ada").await?;

        assert_eq!(lost.hits(), 1);
        let ada = table.get(Employee::key("Sales", "Ada")).await?;
        assert_eq!(ada.expect("inserted above").salary, 62_000);
        Ok(())
    }
}
