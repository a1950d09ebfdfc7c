//! A newtype is stored as its field.
#[derive(tablesdk::PropertyValue)]
struct Strange(std::net::IpAddr);

fn main() {}
