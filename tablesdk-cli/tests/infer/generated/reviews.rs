// The entities of the table Reviews, inferred from 8 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::TableEntity;

/// 2 of 8 entities, by `EntityType`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "Employee",
    rename_all = "PascalCase",
    row_key = "{number:06}_"
)]
pub struct Employee {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 223 to 224.
    pub number: u32,
    /// In all entities; always `Ada`.
    pub name: String,
}

/// 6 of 8 entities, by `EntityType`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "Review",
    rename_all = "PascalCase",
    row_key = "{number:06}_{year:04}"
)]
pub struct Review {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 223 to 224.
    pub number: u32,
    /// In the row key; 2021 to 2023.
    pub year: u32,
    /// In all entities; always 4.
    pub manager_rating: i32,
}

/// An entity of any kind in the table.
#[derive(Clone, Debug, PartialEq, TableEntity)]
pub enum ReviewRow {
    /// 2 entities.
    Employee(Employee),
    /// 6 entities.
    Review(Review),
}
