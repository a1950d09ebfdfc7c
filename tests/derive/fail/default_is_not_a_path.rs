//! A default is the path of a function.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(default = "5 + 5")]
    limit: i32,
}

fn main() {}
