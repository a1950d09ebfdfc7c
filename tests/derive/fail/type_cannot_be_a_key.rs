use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    department: Option<String>,
    #[table(row_key)]
    id: String,
}

fn main() {}
