use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(rename = "Employees")]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    #[table(rename_all = "camelCase")]
    name: String,
}

fn main() {}
