use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(rename_all = "kebab-case")]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
}

fn main() {}
