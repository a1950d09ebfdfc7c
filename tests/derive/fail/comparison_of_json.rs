//! The service sees JSON as one string.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(json)]
    tags: Vec<String>,
}

fn query(table: &tablesdk::TableClient) {
    let _ = table.query::<Person>().filter(|e| e.tags.eq(Vec::new()));
}

fn main() {}
