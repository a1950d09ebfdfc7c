use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}")]
struct Review {
    department: String,
    #[table(json)]
    employee: String,
}

fn main() {}
