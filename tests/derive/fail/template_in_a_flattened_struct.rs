use tablesdk::TableProperties;

#[derive(TableProperties)]
#[table(row_key = "{city}")]
struct Address {
    city: String,
}

fn main() {}
