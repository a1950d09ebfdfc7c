//! The service cannot test for absence: a comparison needs a value.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    email: Option<String>,
    age: Option<i32>,
}

fn query(table: &tablesdk::TableClient, wanted: Option<String>) {
    let _ = table.query::<Person>().filter(|e| e.email.eq(None));
    let _ = table.query::<Person>().filter(|e| e.email.ne(wanted));
    let _ = table.query::<Person>().filter(|e| e.age.ge(Some(18)));
}

fn main() {}
