use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(rename_all = "PascalCase")]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    timestamp: i64,
    #[table(rename = "RowKey")]
    name: String,
}

fn main() {}
