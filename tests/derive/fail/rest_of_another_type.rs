//! The field `rest` keeps exact types.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(rest)]
    other: std::collections::HashMap<String, String>,
}

fn main() {}
