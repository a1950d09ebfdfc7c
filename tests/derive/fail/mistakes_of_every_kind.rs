//! Mistakes that the derive finds and mistakes that the compiler finds: one message each.
#[derive(tablesdk::TableEntity)]
#[table(rename_al = "PascalCase")]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key, default)]
    id: String,
    #[table(flatten = "Home")]
    home: Home,
    #[table(json, with = "cents")]
    pay: i64,
    #[table(skip, alias = "Seen")]
    seen: bool,
}

#[derive(tablesdk::TableProperties)]
struct Home {
    #[table(row_key)]
    city: String,
    #[table(rename = "odata.x")]
    street: String,
}

fn uses_it_all_the_same(table: &tablesdk::TableClient, person: Person) {
    let _ = table.insert(&person);
    let _ = table.get(Person::key("UK", "1"));
    let _ = table.query::<Person>().filter(|e| e.home.city.eq("London"));
}

fn main() {}
