use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    tags: Vec<String>,
}

fn main() {}
