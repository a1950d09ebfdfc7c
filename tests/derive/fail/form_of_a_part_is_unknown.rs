use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{email:escape}", row_key = "{at:reverse}_{number:6}")]
struct Claim {
    email: String,
    at: tablesdk::Timestamp,
    number: u32,
}

fn main() {}
