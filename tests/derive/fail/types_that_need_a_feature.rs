use tablesdk::{PropertyValue, TableEntity};

/// As if the features were off: the types of these crates, which the derives do not know.
mod uuid {
    pub struct Uuid;
}

mod rust_decimal {
    pub struct Decimal;
}

mod jiff {
    pub struct Zoned;
}

#[derive(TableEntity)]
struct Order {
    #[table(partition_key)]
    customer: uuid::Uuid,
    #[table(row_key)]
    id: String,
    price: Option<rust_decimal::Decimal>,
    at: jiff::Zoned,
}

#[derive(PropertyValue)]
struct OrderId(uuid::Uuid);

fn main() {}
