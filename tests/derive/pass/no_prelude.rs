//! Generated code needs no prelude, and no name of its own is taken.

#![no_implicit_prelude]
#![deny(warnings)]

#[derive(::tablesdk::TableEntity)]
pub struct Row {
    #[table(partition_key)]
    pub f: ::std::string::String,
    #[table(row_key)]
    pub writer: ::std::string::String,
    pub reader: ::std::option::Option<i64>,
    pub property: bool,
    pub value: f64,
}

fn main() {
    let _ = Row::key("a", "b");
}
