//! A field has one role.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(json, skip)]
    tags: Vec<String>,
    #[table(rest, etag)]
    other: tablesdk::Properties,
}

fn main() {}
