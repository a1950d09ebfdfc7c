use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    name: String,
}

fn main() {}
