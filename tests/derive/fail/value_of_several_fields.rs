//! A property holds one value.
#[derive(tablesdk::PropertyValue)]
struct Point(f64, f64);

#[derive(tablesdk::PropertyValue)]
struct Nothing;

fn main() {}
