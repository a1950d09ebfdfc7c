//! All mistakes of a type are reported at their positions, and cause no messages at its uses.
use tablesdk::{TableClient, TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(rename_all = "Pascal")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(renam = "Name")]
    name: String,
    #[table(rename = "a b")]
    nick: String,
}

fn use_a_struct(table: &TableClient) {
    let _ = table.get(Employee::key("Sales", "1"));
    let _ = table.query::<Employee>().filter(|e| e.name.eq("Ada"));
}

#[derive(TableEntity)]
#[table(keys = "ReviewKeys", row_key = "{id:06}")]
struct Review {
    #[table(partition_key)]
    department: String,
    id: u32,
    #[table(renam = "FullName")]
    name: String,
}

fn use_a_keys_type() {
    let _ = ReviewKeys::key("Sales", 1);
    let _ = ReviewKeys::partition("Sales");
    let _ = ReviewKeys::rows().id(1);
}

#[derive(TableEntity)]
#[table(partition_key = "{country}", row_key = "{id}")]
struct Person {
    country: String,
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
    #[table(flatten, prefix = "home_")]
    home: Home<i64>,
}

#[derive(TableProperties)]
struct Home<T> {
    #[table(alais = "Town")]
    city: String,
    floor: T,
    #[table(flatten)]
    place: Option<Place>,
}

#[derive(TableProperties)]
struct Place {
    north: f64,
}

fn use_a_flattened_struct(table: &TableClient, person: &Person) {
    let _ = table.insert(person);
    let query = table.query::<Person>().filter(|e| e.home.city.eq("London") & e.b.eq(5));
    let query = query.filter(|e| e.home.place.north.ge(51.0) | e.home.floor.eq(3));
    let _ = query.select(|e| (e.home.city, e.home.place.north));
}

#[derive(TableEntity)]
#[table(entity_type = "Manager", partition_key = "{department}", row_key = "{id}")]
struct Manager {
    department: String,
    id: String,
    salary: f64,
}

#[derive(TableEntity)]
enum Row {
    #[table(alas = "Boss")]
    Manager(Manager),
}

#[derive(TableEntity)]
#[table(entity_tipe = "Office", partition_key = "{department}", row_key = "{id}")]
struct Office {
    department: String,
    id: String,
    rooms: i32,
}

#[derive(TableEntity)]
enum Sound {
    Office(Office),
}

fn use_an_enum(table: &TableClient, row: &Row) {
    let _ = table.insert(row);
    let _ = table.query::<Row>().filter(|row| row.manager.salary.ge(5.0) | row.is_manager());
    let _ = table.query::<Sound>().filter(|row| row.office.rooms.ge(5) | row.row_key.eq("1"));
    let _ = table.get::<Row>(("Sales", "1"));
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(ByEmail, row_key = "{email}", unique))]
struct Indexed {
    department: String,
    id: u32,
    email: String,
}

async fn use_an_index(table: &TableClient, ada: &Indexed) -> tablesdk::Result<()> {
    let mut stored = table.insert(ada).await?;
    table.replace(&mut stored).await?;
    let entry = table.get(ByEmail::key("Sales", "ada@contoso.com")).await?;
    println!("{}", entry.unwrap().id);
    table.query::<ByEmail>().rows(ByEmail::rows().email("a".."b")).collect().await?;
    table.get(ByEmail::key("Sales", "ada@contoso.com")).follow().await?;
    Ok(())
}

fn main() {}
