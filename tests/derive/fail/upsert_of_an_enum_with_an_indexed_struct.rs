use tablesdk::{TableClient, TableEntity};

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(ByEmail, row_key = "email_{email}", unique))]
struct Employee {
    department: String,
    id: u32,
    email: Option<String>,
}

#[derive(TableEntity)]
#[table(by = "row_key")]
enum Row {
    Employee(Employee),
}

async fn store(table: &TableClient, row: &Row) {
    table.insert(row).await.unwrap();
    table.upsert_replace(row).await.unwrap();
}

fn main() {}
