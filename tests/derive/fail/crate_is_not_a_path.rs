use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(crate = "my sdk")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

fn main() {}
