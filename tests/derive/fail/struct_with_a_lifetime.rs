use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee<'a> {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    name: &'a str,
}

fn main() {}
