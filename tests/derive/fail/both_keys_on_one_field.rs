use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key, row_key)]
    id: String,
    #[table(row_key)]
    badge: String,
}

fn main() {}
