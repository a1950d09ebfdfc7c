//! A newtype is stored as what it holds.
#[derive(tablesdk::PropertyValue)]
struct Strange(std::net::IpAddr);

fn main() {}
