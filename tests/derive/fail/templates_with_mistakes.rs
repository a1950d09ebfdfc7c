//! A template of a key names each field once, in a form that can be read back.
use tablesdk::{TableEntity, Timestamp};

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employe}_{year:04}")]
struct UnknownField {
    department: String,
    employee: String,
    year: u16,
}

#[derive(TableEntity)]
#[table(partition_key = "{email:escape}", row_key = "{at:reverse}_{number:6}")]
struct UnknownForms {
    email: String,
    at: Timestamp,
    number: u32,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}_{employee}")]
struct OnePartTwice {
    department: String,
    employee: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{department}_{employee}")]
struct OnePartInBothKeys {
    department: String,
    employee: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}/{year:04}")]
struct ForbiddenCharacter {
    department: String,
    employee: String,
    year: u16,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}_{year:04")]
struct OpenBrace {
    department: String,
    employee: String,
    year: u16,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}{project}")]
struct NoSeparator {
    department: String,
    employee: String,
    project: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}_{year:04}")]
struct AttributesOfParts {
    department: String,
    #[table(rename = "Who", default)]
    employee: String,
    #[table(json)]
    year: u16,
    #[table(store)]
    rating: i32,
}

fn main() {}
