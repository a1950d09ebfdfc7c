//! Keys, rest and version belong to the entity.
#[derive(tablesdk::TableProperties)]
struct Home {
    #[table(partition_key)]
    city: String,
    #[table(rest)]
    rest: tablesdk::Properties,
    #[table(timestamp)]
    at: Option<tablesdk::Timestamp>,
}

fn main() {}
