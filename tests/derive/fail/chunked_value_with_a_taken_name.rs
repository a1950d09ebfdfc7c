//! A chunk has the name of another property.
use tablesdk::chunked::Chunked;

#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    cv__1: String,
    #[table(flatten, prefix = "cv")]
    cv: Chunked<String>,
}

fn main() {}
