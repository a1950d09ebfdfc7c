use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}{project}")]
struct Review {
    department: String,
    employee: String,
    project: String,
}

fn main() {}
