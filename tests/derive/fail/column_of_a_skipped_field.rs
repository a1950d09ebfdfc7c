//! A skipped field has no column.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(skip)]
    cached: u64,
}

fn query(table: &tablesdk::TableClient) {
    let _ = table.query::<Person>().filter(|e| e.cached.eq(5));
}

fn main() {}
