//! An entity that was not read has no ETag.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(etag)]
    etag: tablesdk::ETag,
}

fn main() {}
