use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key, rename = "Department")]
    department: String,
    #[table(row_key)]
    id: String,
}

fn main() {}
