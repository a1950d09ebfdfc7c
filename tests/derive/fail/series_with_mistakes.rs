//! The prefix, the number of slots, and their type.
use tablesdk::TableEntity;
use tablesdk::series::Series;

#[derive(TableEntity)]
struct WithoutPrefix {
    #[table(partition_key)]
    employee: String,
    #[table(row_key)]
    day: String,
    #[table(flatten)]
    hours: Series<i32, 24>,
}

#[derive(TableEntity)]
struct TooMany {
    #[table(partition_key)]
    employee: String,
    #[table(row_key)]
    day: String,
    total: i32,
    #[table(flatten, prefix = "M")]
    minutes: Series<i32, 252>,
}

#[derive(TableEntity)]
struct Empty {
    #[table(partition_key)]
    employee: String,
    #[table(row_key)]
    day: String,
    #[table(flatten, prefix = "H")]
    hours: Series<i32, 0>,
}

#[derive(TableEntity)]
struct Overlapping {
    #[table(partition_key)]
    employee: String,
    #[table(row_key)]
    day: String,
    #[table(flatten, prefix = "H")]
    hours: Series<i32, 24>,
    #[table(rename = "H07")]
    seven: i32,
}

fn main() {}
