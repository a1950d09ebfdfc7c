use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(rename_all = "PascalCase")]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    first_name: String,
    #[table(rename = "FirstName")]
    given_name: String,
}

fn main() {}
