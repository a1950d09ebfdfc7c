use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{department}_{employee}")]
struct Review {
    department: String,
    employee: String,
}

fn main() {}
