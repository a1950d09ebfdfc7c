//! Only the compiler knows the names of a flattened struct.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    city: String,
    #[table(flatten)]
    home: Home,
}

#[derive(tablesdk::TableProperties)]
struct Home {
    city: String,
}

fn main() {}
