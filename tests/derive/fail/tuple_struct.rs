use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee(String, String);

fn main() {}
