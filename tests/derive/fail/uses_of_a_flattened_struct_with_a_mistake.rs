//! A mistake in a flattened struct does not cause messages at its uses.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten, prefix = "home_")]
    home: Home<i64>,
    #[table(renam = "Age")]
    age: i32,
}

#[derive(tablesdk::TableProperties)]
struct Home<T> {
    #[table(alais = "Town")]
    city: String,
    floor: T,
    #[table(flatten)]
    place: Option<Place>,
}

#[derive(tablesdk::TableProperties)]
struct Place {
    north: f64,
}

fn uses_it_all_the_same(table: &tablesdk::TableClient) {
    let query = table.query::<Person>().filter(|e| e.home.city.eq("London") & e.age.ge(5));
    let query = query.filter(|e| e.home.place.north.ge(51.0) | e.home.floor.eq(3));
    let _ = query.select(|e| (e.home.city, e.home.place.north));
}

fn main() {}
