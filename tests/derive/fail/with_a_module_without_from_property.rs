//! The module has a type and two functions.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(with = "cents")]
    pay: Money,
}

struct Money;

mod cents {
    pub(super) type Property = i64;
    pub(super) fn to_property(_: &super::Money) -> Result<i64, tablesdk::entity::ValueError> {
        Ok(5)
    }
}

fn main() {}
