//! No property has the whole value.
use tablesdk::chunked::Chunked;

#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten, prefix = "cv")]
    cv: Chunked<String>,
    #[table(flatten, prefix = "photo")]
    photo: Option<Chunked<Vec<u8>>>,
}

fn query(table: &tablesdk::TableClient) {
    let _ = table.query::<Person>().filter(|e| e.cv.eq("short"));
    let _ = table.query::<Person>().filter(|e| e.photo.gt(vec![0]));
}

fn main() {}
