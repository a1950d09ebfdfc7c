// The entities of the table Orders, inferred from 8 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::TableEntity;

/// 2 of 8 entities, by the row key.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "camelCase", row_key = "head")]
pub struct Head {
    /// The partition key; 2 values.
    #[table(partition_key)]
    pub partition_key: String,
    /// In all entities; always `Contoso`.
    pub customer: String,
    /// In all entities.
    pub is_paid: bool,
}

/// 6 of 8 entities, by the row key.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "camelCase", row_key = "item_{item:04}")]
pub struct Item {
    /// The partition key; 2 values.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 to 3.
    pub item: u32,
    /// In all entities; always 1995.
    pub unit_cents: i64,
}

/// An entity of any kind in the table.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(by = "row_key")]
pub enum OrderRow {
    /// 2 entities.
    Head(Head),
    /// 6 entities.
    Item(Item),
}
