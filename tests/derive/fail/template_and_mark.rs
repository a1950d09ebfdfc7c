use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}_{year:04}")]
struct Review {
    #[table(partition_key)]
    department: String,
    employee: String,
    year: u16,
}

fn main() {}
