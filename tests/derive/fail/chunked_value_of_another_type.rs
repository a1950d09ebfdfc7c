//! Only strings and binary are cut.
use tablesdk::chunked::Chunked;

#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten, prefix = "age")]
    age: Chunked<i32>,
}

fn main() {}
