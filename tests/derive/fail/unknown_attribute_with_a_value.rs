use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    #[table(column = "Name", rename = "FullName")]
    name: String,
}

fn main() {}
