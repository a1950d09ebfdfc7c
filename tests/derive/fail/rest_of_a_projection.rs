//! A projection asks for its properties alone.
#[derive(tablesdk::TableEntity)]
#[table(projection)]
struct NameOnly {
    name: String,
    #[table(rest)]
    other: tablesdk::Properties,
}

fn main() {}
