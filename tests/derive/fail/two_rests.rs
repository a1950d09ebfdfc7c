//! An entity has one `rest`, one `etag` and one `timestamp`.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(rest)]
    a: tablesdk::Properties,
    #[table(rest)]
    b: tablesdk::Properties,
}

fn main() {}
