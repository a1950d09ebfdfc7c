//! An entity has at most 1 MiB, and sixteen chunks are that.
use tablesdk::chunked::Chunked;

#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten, prefix = "cv")]
    cv: Chunked<String, 17>,
}

fn main() {}
