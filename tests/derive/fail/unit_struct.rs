use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee;

fn main() {}
