//! A field that is stored as JSON needs serde.
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
