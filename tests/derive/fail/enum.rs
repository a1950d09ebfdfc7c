use tablesdk::TableEntity;

#[derive(TableEntity)]
enum Row {
    Employee,
    Department,
}

fn main() {}
