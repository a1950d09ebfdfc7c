//! A flattened struct has its own names: by a rule, each by itself, or in words that the rule does
//! not change.
#![deny(warnings)]

use tablesdk::{TableEntity, TableProperties};

#[derive(Debug, TableEntity)]
#[table(rename_all = "camelCase")]
pub struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten)]
    home: Home,
    #[table(flatten)]
    car: Option<Car>,
    #[table(flatten)]
    badge: Badge,
    #[table(flatten)]
    pet: Pet<String>,
    #[table(flatten)]
    cache: Cache,
}

#[derive(Debug, TableProperties)]
#[table(rename_all = "snake_case")]
pub struct Home {
    street_name: String,
}

#[derive(Debug, TableProperties)]
pub struct Car {
    plate: String,
}

#[derive(Debug, TableProperties)]
pub struct Badge {
    #[table(rename = "BadgeNumber")]
    badge_number: i64,
}

#[derive(Debug, TableProperties)]
#[table(rename_all = "PascalCase")]
pub struct Pet<T: tablesdk::PropertyValue + Send + 'static> {
    pet_name: T,
}

#[derive(Debug, TableProperties)]
pub struct Cache {
    #[table(skip)]
    pub not_stored: u8,
}

fn main() {
    let names: Vec<_> = Person::SCHEMA.properties().iter().map(|property| property.name()).collect();
    assert_eq!(names, ["street_name", "plate", "BadgeNumber", "PetName"]);
}
