//! All mistakes are reported at their positions, without their consequences.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(skip, json)]
    a: u64,
    #[table(alias = "a-b")]
    b: u64,
    #[table(default = "not a path")]
    c: u64,
    #[table(flaten)]
    d: u64,
    #[table(prefix = "x")]
    e: u64,
    #[table(with)]
    f: u64,
}

fn query(table: &tablesdk::TableClient, person: &Person) {
    let _ = table.insert(person);
    let _ = table.query::<Person>().filter(|e| e.b.eq(5));
}

fn main() {}
