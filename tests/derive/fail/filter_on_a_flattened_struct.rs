//! A flattened struct has columns, but is not a column.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten, prefix = "Home")]
    home: Home,
}

#[derive(tablesdk::TableProperties)]
struct Home {
    city: String,
}

fn query(table: &tablesdk::TableClient) {
    let _ = table.query::<Person>().filter(|e| e.home.eq("London"));
    let _ = table.query::<Person>().filter(|e| e.home.town.eq("London"));
    let _ = table.query::<Person>().filter(|e| e.city.eq("London"));
    let _ = table.query::<Person>().select(|e| e.home);
}

fn main() {}
