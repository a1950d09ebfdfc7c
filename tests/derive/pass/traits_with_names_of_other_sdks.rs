//! A trait of the program may have methods under the names of other SDKs, and they are called.
use tablesdk::action::QueryEntities;
use tablesdk::query::{Column, Filter};
use tablesdk::{TableClient, TableEntity, TableServiceClient};

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    email: Option<String>,
}

trait Repository {
    fn add(&self, id: &str) -> String;
    fn update(&self) -> &'static str;
}

impl Repository for TableClient {
    fn add(&self, id: &str) -> String {
        format!("{id} of {}", self.name())
    }

    fn update(&self) -> &'static str {
        "updated"
    }
}

trait Tables {
    fn list_tables(&mut self) -> usize;
    fn table_client(&self) -> &'static str;
}

impl Tables for TableServiceClient {
    fn list_tables(&mut self) -> usize {
        1
    }

    fn table_client(&self) -> &'static str {
        "a client"
    }
}

trait Limit {
    fn limit(self, count: usize) -> Self;
}

impl<E: TableEntity> Limit for QueryEntities<E> {
    fn limit(self, count: usize) -> Self {
        self.take(count)
    }
}

trait IsNone<E> {
    fn is_none(self) -> Filter<E>;
}

impl<E> IsNone<E> for Column<E, Option<String>> {
    fn is_none(self) -> Filter<E> {
        !self.starts_with("")
    }
}

fn main() {
    let service = TableServiceClient::emulator().unwrap();
    let table = &service.table("Employees");
    assert_eq!(table.add("1"), "1 of Employees");
    assert_eq!(table.update(), "updated");
    // Of these, the compiler finds ours first, unless the trait is named.
    let mut service = service;
    let tables = &mut service;
    assert_eq!(Tables::list_tables(tables), 1);
    assert_eq!(Tables::table_client(tables), "a client");
    let query = table.query::<Employee>().filter(|e| e.email.is_none()).limit(5);
    assert_eq!(query.explain().unwrap().filter(), Some("not (email ge '')"));
}
