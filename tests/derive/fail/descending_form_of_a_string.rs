use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{name:desc}")]
struct Employee {
    department: String,
    name: String,
}

fn main() {}
