//! There is one rest, one ETag, one timestamp.
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
