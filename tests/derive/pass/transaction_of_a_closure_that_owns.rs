//! The code that the message about a closure of a transaction that moves advises.
use tablesdk::action::Transaction;
use tablesdk::{TableClient, TableEntity};

#[derive(Clone, TableEntity)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

async fn borrows(table: &TableClient, employee: Employee) {
    let insert = table.transaction("Sales", async |tx| {
        tx.insert(&employee);
        Ok(())
    });
    let _ = insert.await;
}

async fn owns(table: &TableClient, employee: Employee) {
    let insert = table.transaction("Sales", move |tx: Transaction| {
        let employee = employee.clone();
        async move {
            tx.insert(&employee);
            Ok(())
        }
    });
    let _ = insert.await;
}

fn main() {
    let _ = (borrows, owns);
}
