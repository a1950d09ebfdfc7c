//! Filters, selections and patches use the columns of one entity, and not every field is a column.
use tablesdk::{TableClient, TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(entity_type = "Person", partition_key = "{country}", row_key = "{id}")]
struct Person {
    country: String,
    id: String,
    age: i32,
    #[table(flatten, prefix = "Home")]
    home: Home,
    #[table(skip)]
    cached: u64,
}

#[derive(TableProperties)]
struct Home {
    city: String,
}

#[derive(TableEntity)]
#[table(entity_type = "Dog", partition_key = "{owner}", row_key = "{name}")]
struct Dog {
    owner: String,
    name: String,
    age: i32,
}

#[derive(TableEntity)]
enum Row {
    Person(Person),
    Dog(Dog),
}

fn query(table: &TableClient) {
    let dog = Dog::columns();
    let _ = table.query::<Person>().filter(|_| dog.age.ge(5));
    let _ = table.query::<Person>().filter(|e| e.age.ge(5) & dog.age.ge(5));
    let _ = table.query::<Person>().select(|_| dog.name);
    let _ = table.patch::<Person>(Person::key("UK", "1")).set(|_| dog.age, 5);
    let _ = Row::columns().person.owner.eq("x");

    let _ = table.query::<Person>().filter(|e| e.pay.ge(50_000.0));
    let _ = table.query::<Person>().filter(|e| e.cached.eq(5));
    let _ = table.query::<Person>().filter(|e| e.home.eq("London"));
    let _ = table.query::<Person>().filter(|e| e.home.town.eq("London"));
    let _ = table.query::<Person>().filter(|e| e.city.eq("London"));
    let _ = table.query::<Person>().select(|e| e.home);

    let _ = table.query::<Person>().select(|_| "name");
    let _ = table.query::<Person>().select(|e| (e.age, 5));
    // A tuple has up to eight columns; for more, read a struct.
    let _ = table.query::<Person>().select(|e| (e.age, e.age, e.age, e.age, e.age, e.age, e.age, e.age, e.age));
}

fn main() {}
