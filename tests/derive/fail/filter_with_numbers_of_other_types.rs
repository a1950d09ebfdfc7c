//! A number is compared with numbers of its own type: the service would not convert it.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    age: i32,
    badge: i64,
    salary: f64,
}

fn query(table: &tablesdk::TableClient, small: i32, large: i64) {
    let _ = table.query::<Person>().filter(|e| e.age.eq(large));
    let _ = table.query::<Person>().filter(|e| e.badge.eq(small));
    let _ = table.query::<Person>().filter(|e| e.salary.ge(50_000));
    let _ = table.query::<Person>().filter(|e| e.age.is_in([1.5, 2.5]));
    let _ = table.query::<Person>().filter(|e| e.age.between(1.5..2.5));
}

fn main() {}
