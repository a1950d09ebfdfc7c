//! A patch sets columns to values of their types, and removes no property.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    age: i32,
    email: Option<String>,
    #[table(json)]
    tags: Vec<String>,
}

fn patch(table: &tablesdk::TableClient) {
    let _ = table.patch::<Person>(Person::key("UK", "1")).set(|e| e.age, "36");
    let _ = table.patch::<Person>(Person::key("UK", "1")).set(|e| e.email, None);
    let _ = table.patch::<Person>(Person::key("UK", "1")).set(|e| e.tags, Vec::new());
    let _ = table.patch::<Person>(Person::key("UK", "1")).set(|e| e.name, "Ada");
}

fn main() {}
