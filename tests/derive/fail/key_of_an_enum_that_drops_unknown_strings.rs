//! An enum that drops unknown strings cannot be a key.
#[derive(tablesdk::PropertyValue)]
enum Region {
    North,
    #[table(other)]
    Unknown,
}

#[derive(tablesdk::PropertyValue)]
struct Degrees(f64);

#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    region: Region,
    #[table(row_key)]
    degrees: Degrees,
}

fn main() {}
