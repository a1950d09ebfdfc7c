use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(rename_all = "PascalCase")]
struct Employee {
    #[table(partition_key)]
    department: String,
    row_key: String,
}

fn main() {}
