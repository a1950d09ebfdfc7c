//! A projection requests only its own properties.
#[derive(tablesdk::TableEntity)]
#[table(projection)]
struct NameOnly {
    name: String,
    #[table(rest)]
    other: tablesdk::Properties,
}

fn main() {}
