//! A skipped field has no name and no alias.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(skip, rename = "Cached", alias = "Cache")]
    cached: u64,
}

fn main() {}
