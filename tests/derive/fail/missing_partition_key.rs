use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(row_key)]
    id: String,
}

fn main() {}
