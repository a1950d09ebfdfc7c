//! The closure of a transaction may run several times: it borrows, or clones what it moves.
use tablesdk::{TableClient, TableEntity};

#[derive(Clone, TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}")]
struct Employee {
    department: String,
    id: String,
}

async fn moved(table: &TableClient, employee: Employee) {
    let insert = table.transaction("Sales", async move |tx| {
        tx.insert(&employee);
        Ok(())
    });
    let _ = insert.await;
}

async fn moved_by_the_future(table: &TableClient, employee: Employee) {
    let insert = table.transaction("Sales", |tx| async move {
        tx.insert(&employee);
        Ok(())
    });
    let _ = insert.await;
}

async fn counted(table: &TableClient, employee: Employee) {
    let mut rounds = 0;
    let insert = table.transaction("Sales", async |tx| {
        rounds += 1;
        tx.insert(&employee);
        Ok(())
    });
    let _ = insert.await;
}

fn main() {}
