//! A prefix is valid at the start of a property name.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten, prefix = "home-")]
    home: Home,
    #[table(flatten, prefix = "1")]
    work: Home,
}

#[derive(tablesdk::TableProperties)]
struct Home {
    city: String,
}

fn main() {}
