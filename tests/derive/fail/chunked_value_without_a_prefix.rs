//! The prefix is the name of the first property.
use tablesdk::chunked::Chunked;

#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten)]
    cv: Chunked<String>,
}

fn main() {}
