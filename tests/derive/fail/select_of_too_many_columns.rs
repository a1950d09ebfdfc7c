//! A tuple has up to eight columns; for more, read a struct.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    a: i32,
}

fn query(table: &tablesdk::TableClient) {
    let _ = table.query::<Person>().select(|e| (e.a, e.a, e.a, e.a, e.a, e.a, e.a, e.a, e.a));
}

fn main() {}
