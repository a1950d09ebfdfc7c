//! Attributes without parentheses, words or strings.
#[derive(tablesdk::TableEntity)]
#[table]
struct Person {
    #[table("partition_key")]
    country: String,
    #[table = "row_key"]
    id: String,
    #[table()]
    name: String,
    #[table(rename("Age"))]
    age: i32,
    #[table(default = 5)]
    limit: i32,
}

fn main() {}
