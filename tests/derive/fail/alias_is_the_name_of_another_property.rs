//! An alias cannot be the name of another property.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(alias = "name", alias = "RowKey")]
    nickname: Option<String>,
    name: String,
}

fn main() {}
