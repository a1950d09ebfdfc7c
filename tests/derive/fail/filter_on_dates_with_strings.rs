//! Dates and binary values are not compared with strings.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    born: tablesdk::Timestamp,
    photo: Vec<u8>,
    badge: tablesdk::Guid,
}

fn query(table: &tablesdk::TableClient) {
    let _ = table.query::<Person>().filter(|e| e.born.ge("2024-03-15"));
    let _ = table.query::<Person>().filter(|e| e.photo.eq("YQ=="));
    let _ = table.query::<Person>().filter(|e| e.badge.eq("c9da6455-213d-42c9-9a79-3e9149a57833"));
    let _ = table.query::<Person>().filter(|e| e.photo.starts_with("a"));
}

fn main() {}
