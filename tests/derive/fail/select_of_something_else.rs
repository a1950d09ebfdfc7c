//! `select` takes columns, not values.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    name: String,
}

fn query(table: &tablesdk::TableClient) {
    let _ = table.query::<Person>().select(|_| "name");
    let _ = table.query::<Person>().select(|e| (e.name, 5));
}

fn main() {}
