//! The service sees neither what is encrypted nor what is in JSON or in chunks, and does not order
//! all that it sees.
use rust_decimal::Decimal;
use tablesdk::chunked::Chunked;
use tablesdk::{PropertyValue, TableClient, TableEntity};

#[derive(PropertyValue)]
enum Status {
    Active,
    Gone,
}

#[derive(TableEntity)]
#[table(partition_key = "{country}", row_key = "{id}")]
struct Person {
    country: String,
    id: String,
    status: Status,
    done: bool,
    pay: Decimal,
    #[table(json)]
    tags: Vec<String>,
    #[table(flatten, prefix = "cv")]
    cv: Chunked<String>,
    #[table(flatten, prefix = "photo")]
    photo: Option<Chunked<Vec<u8>>>,
    #[table(encrypt)]
    insurance_number: String,
    #[table(encrypt(eq))]
    email: String,
}

fn query(table: &TableClient) {
    let _ = table.query::<Person>().filter(|e| e.tags.eq(Vec::new()));
    let _ = table.query::<Person>().filter(|e| e.cv.eq("short"));
    let _ = table.query::<Person>().filter(|e| e.photo.gt(vec![0]));
    let _ = table.query::<Person>().filter(|e| e.insurance_number.eq("AB 12"));
    let _ = table.query::<Person>().filter(|e| e.email.ge("a"));
    let _ = table.query::<Person>().filter(|e| e.email.starts_with("a") & e.email.eq(5));
    let _ = table.query::<Person>().filter(|e| e.status.gt(Status::Active));
    let _ = table.query::<Person>().filter(|e| e.done.between(false..));
    let _ = table.query::<Person>().filter(|e| e.pay.ge(Decimal::ONE));
}

/// The strings of an enum are not ordered like its variants, and escaped strings not like the
/// strings.
#[derive(TableEntity)]
#[table(partition_key = "{status}_{email:escaped}", row_key = "{year:04}")]
struct Parts {
    status: Status,
    email: String,
    year: u16,
}

#[derive(TableEntity)]
#[table(partition_key = "{year:04}", row_key = "{status}")]
struct ByStatus {
    year: u16,
    status: Status,
}

#[derive(TableEntity)]
#[table(partition_key = "{year:04}", row_key = "{email:escaped}")]
struct ByEmail {
    year: u16,
    email: String,
}

fn main() {
    let _ = Parts::columns().year.ge(2024);
    let _ = Parts::columns().email.ge("a");
    let _ = ByStatus::rows().status(Status::Active..Status::Gone);
    let _ = ByEmail::rows().email("a".."b");
}
