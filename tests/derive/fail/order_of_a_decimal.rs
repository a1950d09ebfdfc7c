use rust_decimal::Decimal;
use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Product {
    #[table(partition_key)]
    shop: String,
    #[table(row_key)]
    id: String,
    price: Decimal,
}

fn main() {
    let _ = Product::columns().price.ge(Decimal::ONE);
}
