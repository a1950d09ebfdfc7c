use tablesdk::DynamicEntity;

fn main() {
    let _ = DynamicEntity::new("a", "1").with("Address", std::net::Ipv4Addr::LOCALHOST);
}
