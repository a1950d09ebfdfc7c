//! Only a column of Int64 can also hold Int32.
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
