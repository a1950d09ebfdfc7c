//! A column is compared with, or set to, a value of its own type: the service would not convert it.
use tablesdk::{DynamicEntity, Guid, TableClient, TableEntity, Timestamp};

#[derive(TableEntity)]
#[table(partition_key = "{country}", row_key = "{id}")]
struct Person {
    country: String,
    id: String,
    name: String,
    age: i32,
    badge: i64,
    salary: f64,
    born: Timestamp,
    photo: Vec<u8>,
    guid: Guid,
    email: Option<String>,
    limit: Option<i32>,
    #[table(json)]
    tags: Vec<String>,
}

fn literals(table: &TableClient, small: i32, large: i64) {
    let _ = table.query::<Person>().filter(|e| e.salary.ge("lots"));
    let _ = table.query::<Person>().filter(|e| e.name.eq(5));
    let _ = table.query::<Person>().filter(|e| e.salary.starts_with("5"));
    let _ = table.query::<Person>().filter(|e| e.age.eq(large));
    let _ = table.query::<Person>().filter(|e| e.badge.eq(small));
    let _ = table.query::<Person>().filter(|e| e.salary.ge(50_000));
    let _ = table.query::<Person>().filter(|e| e.age.is_in([1.5, 2.5]));
    let _ = table.query::<Person>().filter(|e| e.age.between(1.5..2.5));
    let _ = table.query::<Person>().filter(|e| e.born.ge("2024-03-15"));
    let _ = table.query::<Person>().filter(|e| e.photo.eq("YQ=="));
    let _ = table.query::<Person>().filter(|e| e.guid.eq("c9da6455-213d-42c9-9a79-3e9149a57833"));
    let _ = table.query::<Person>().filter(|e| e.photo.starts_with("a"));
}

/// The service cannot test for absence: a comparison needs a value.
fn absent_values(table: &TableClient, wanted: Option<String>) {
    let _ = table.query::<Person>().filter(|e| e.email.eq(None));
    let _ = table.query::<Person>().filter(|e| e.email.ne(wanted));
    let _ = table.query::<Person>().filter(|e| e.limit.ge(Some(18)));
}

/// Columns are compared by methods, and conditions joined by `&`, `|` and `!`.
fn operators(table: &TableClient) {
    let _ = table.query::<Person>().filter(|e| e.age == 5);
    let _ = table.query::<Person>().filter(|e| e.age > 5);
    let _ = table.query::<Person>().filter(|e| e.age.ge(5) && e.name.eq("Ada"));
    let _ = table.query::<Person>().filter(|e| !e.name);
    let _ = table.query::<DynamicEntity>().filter(|e| e.property("Age") > 5);
}

/// A patch removes no property.
fn patch(table: &TableClient) {
    let _ = table.patch::<Person>(Person::key("UK", "1")).set(|e| e.age, "36");
    let _ = table.patch::<Person>(Person::key("UK", "1")).set(|e| e.email, None);
    let _ = table.patch::<Person>(Person::key("UK", "1")).set(|e| e.tags, Vec::new());
    let _ = table.patch::<Person>(Person::key("UK", "1")).set(|e| e.nickname, "Ada");
}

fn main() {}
