//! A prefix is for a flattened field.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(prefix = "Home_")]
    home: String,
}

fn main() {}
