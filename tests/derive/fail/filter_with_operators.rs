//! Columns are compared by methods, and conditions joined by `&`, `|` and `!`.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    age: i32,
    name: String,
}

fn query(table: &tablesdk::TableClient) {
    let _ = table.query::<Person>().filter(|e| e.age == 5);
    let _ = table.query::<Person>().filter(|e| e.age > 5);
    let _ = table.query::<Person>().filter(|e| e.age.ge(5) && e.name.eq("Ada"));
    let _ = table.query::<Person>().filter(|e| !e.name);
    let _ = table.query::<tablesdk::DynamicEntity>().filter(|e| e.property("Age") > 5);
}

fn main() {}
