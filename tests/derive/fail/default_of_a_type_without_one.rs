//! A default without a path is the default of the type.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(default)]
    at: tablesdk::Timestamp,
    #[table(skip)]
    seen: std::time::Instant,
}

fn main() {}
