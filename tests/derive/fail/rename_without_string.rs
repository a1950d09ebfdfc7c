use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(rename)]
    age: i32,
    #[table(rename = 5)]
    hired: i32,
}

fn main() {}
