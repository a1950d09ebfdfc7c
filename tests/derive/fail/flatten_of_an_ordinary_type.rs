//! Only a struct that derives `TableProperties` can be flattened.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten)]
    home: Home,
}

struct Home {
    city: String,
}

fn main() {}
