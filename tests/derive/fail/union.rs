use tablesdk::TableEntity;

#[derive(TableEntity)]
union Employee {
    id: u32,
    number: i32,
}

fn main() {}
