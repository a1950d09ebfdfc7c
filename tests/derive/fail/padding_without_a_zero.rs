use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}_{year:4}")]
struct Review {
    department: String,
    employee: String,
    year: u16,
    rating: i32,
}

fn main() {}
