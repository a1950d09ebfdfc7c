//! A slot is a property, and is absent without a value.
use tablesdk::TableEntity;
use tablesdk::series::Series;

#[derive(TableEntity)]
struct OfOptions {
    #[table(partition_key)]
    employee: String,
    #[table(row_key)]
    day: String,
    #[table(flatten, prefix = "H")]
    hours: Series<Option<i32>, 24>,
}

#[derive(TableEntity)]
struct NotFlattened {
    #[table(partition_key)]
    employee: String,
    #[table(row_key)]
    day: String,
    hours: Series<i32, 24>,
}

fn main() {}
