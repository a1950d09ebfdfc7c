use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key)]
struct Employee {
    department: String,
    #[table(row_key)]
    id: String,
}

fn main() {}
