//! Only an Int64 has a narrower sibling.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(mixed_integers)]
    name: String,
}

fn main() {}
