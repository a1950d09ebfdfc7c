//! A projection is a part, and a write of it would lose the rest.
#[derive(tablesdk::TableEntity)]
#[table(projection)]
struct NameOnly {
    name: String,
}

fn write(table: &tablesdk::TableClient, mut stored: tablesdk::Stored<NameOnly>) {
    let _ = table.insert(&*stored);
    let _ = table.replace(&mut stored);
}

fn main() {}
