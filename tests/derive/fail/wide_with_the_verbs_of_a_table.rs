//! The verbs of a table write one entity: those of `table.wide()` write a wide one.

use tablesdk::{TableClient, TableEntity};

#[derive(TableEntity)]
#[table(wide, partition_key = "{employee}", row_key = "{year:04}")]
struct MessageYear {
    employee: String,
    year: u16,
    day_001: Option<i32>,
}

async fn example(table: &TableClient, year: &MessageYear) {
    table.insert(year).await;
    table.query::<MessageYear>();
    table.delete(MessageYear::key("ann", 2024)).await;
    table.wide::<MessageYear>().insert(year).await;
}

fn main() {}
