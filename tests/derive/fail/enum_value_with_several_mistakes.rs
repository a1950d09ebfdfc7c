//! Each variant is stored as a different string.
#[derive(tablesdk::PropertyValue)]
#[table(rename_all = "snakecase")]
enum Status {
    Active(u32),
    #[table(rename = "Gone")]
    Left,
    Gone,
    #[table(other, rename = "x")]
    Other,
    #[table(other)]
    Another(String),
    #[table(othr)]
    Misspelt,
}

fn main() {}
