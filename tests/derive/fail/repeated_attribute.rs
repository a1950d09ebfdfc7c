use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    #[table(rename = "A")]
    #[table(rename = "B")]
    name: String,
}

fn main() {}
