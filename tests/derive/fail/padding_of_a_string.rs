use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee:06}_{year:04}")]
struct Review {
    department: String,
    employee: String,
    year: u16,
    rating: i32,
}

fn main() {}
