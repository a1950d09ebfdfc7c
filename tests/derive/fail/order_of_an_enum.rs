//! The strings of an enum are not ordered like its variants.
#[derive(tablesdk::PropertyValue)]
enum Status {
    Active,
    Gone,
}

#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    status: Status,
    done: bool,
}

fn query(table: &tablesdk::TableClient) {
    let _ = table.query::<Person>().filter(|e| e.status.gt(Status::Active));
    let _ = table.query::<Person>().filter(|e| e.done.between(false..));
}

fn main() {}
