//! A projection is a part of an entity, and cannot be written.
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
