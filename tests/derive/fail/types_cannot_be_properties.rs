//! Several types that cannot be stored, each with one message.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    count: usize,
    letter: char,
    words: Vec<String>,
    map: std::collections::HashMap<String, String>,
    twice: Option<Option<i32>>,
    pair: (i32, i32),
    array: [u8; 4],
    boxed: Box<str>,
}

fn main() {}
