//! JSON is what serde can write and read.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(json)]
    tags: Tags,
}

struct Tags;

fn main() {}
