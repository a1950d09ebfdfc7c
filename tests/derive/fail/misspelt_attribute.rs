use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partitionkey)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(partition_key)]
    other: String,
}

fn main() {}
