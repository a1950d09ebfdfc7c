use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}_{employee}")]
struct Review {
    department: String,
    employee: String,
}

fn main() {}
