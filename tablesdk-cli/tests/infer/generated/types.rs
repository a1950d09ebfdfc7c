// The entities of the table Types, inferred from 12 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::{TableEntity, Timestamp};

/// 1 of 12 entities, by `row_kind_`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "Option",
    entity_type_property = "row_kind_",
    row_key = "{number:02}"
)]
pub struct Option2 {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; always 0.
    pub number: u32,
    /// In all entities; 1970-01-01T00:00:00Z.
    pub of_0: Timestamp,
}

/// 1 of 12 entities, by `row_kind_`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "String",
    entity_type_property = "row_kind_",
    row_key = "{number:02}"
)]
pub struct String2 {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; always 1.
    pub number: u32,
    /// In all entities; 1970-01-01T00:00:00Z.
    pub of_1: Timestamp,
}

/// 1 of 12 entities, by `row_kind_`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "Self",
    entity_type_property = "row_kind_",
    row_key = "{number:02}"
)]
pub struct Self2 {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; always 2.
    pub number: u32,
    /// In all entities; 1970-01-01T00:00:00Z.
    pub of_2: Timestamp,
}

/// 1 of 12 entities, by `row_kind_`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "match",
    entity_type_property = "row_kind_",
    row_key = "{number:02}"
)]
pub struct Match {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; always 3.
    pub number: u32,
    /// In all entities; 1970-01-01T00:00:00Z.
    pub of_3: Timestamp,
}

/// 1 of 12 entities, by `row_kind_`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "a \"b\" {c}",
    entity_type_property = "row_kind_",
    row_key = "{number:02}"
)]
pub struct Abc {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; always 4.
    pub number: u32,
    /// In all entities; 1970-01-01T00:00:00Z.
    pub of_4: Timestamp,
}

/// 1 of 12 entities, by `row_kind_`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "Row",
    entity_type_property = "row_kind_",
    row_key = "{number:02}"
)]
pub struct Row {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; always 5.
    pub number: u32,
    /// In all entities; 1970-01-01T00:00:00Z.
    pub of_5: Timestamp,
}

/// 1 of 12 entities, by `row_kind_`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "Types",
    entity_type_property = "row_kind_",
    row_key = "{number:02}"
)]
pub struct Types {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; always 6.
    pub number: u32,
    /// In all entities; 1970-01-01T00:00:00Z.
    pub of_6: Timestamp,
}

/// 1 of 12 entities, by `row_kind_`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "1st",
    entity_type_property = "row_kind_",
    row_key = "{number:02}"
)]
pub struct Kind1st {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; always 7.
    pub number: u32,
    /// In all entities; 1970-01-01T00:00:00Z.
    pub of_7: Timestamp,
}

/// 1 of 12 entities, by `row_kind_`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "🦀",
    entity_type_property = "row_kind_",
    row_key = "{number:02}"
)]
pub struct Crab {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; always 8.
    pub number: u32,
    /// In all entities; 1970-01-01T00:00:00Z.
    pub of_8: Timestamp,
}

/// 1 of 12 entities, by `row_kind_`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "Timestamp",
    entity_type_property = "row_kind_",
    row_key = "{number:02}"
)]
pub struct Timestamp2 {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; always 9.
    pub number: u32,
    /// In all entities; 1970-01-01T00:00:00Z.
    pub of_9: Timestamp,
}

/// 1 of 12 entities, by `row_kind_`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "PartitionKey", entity_type_property = "row_kind_")]
pub struct PartitionKey2 {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// The row key; 1 value.
    #[table(row_key)]
    pub row_key: String,
    /// In all entities; 1970-01-01T00:00:00Z.
    pub of_10: Timestamp,
}

/// 1 of 12 entities, by `row_kind_`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Other", entity_type_property = "row_kind_")]
pub struct Other2 {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// The row key; 1 value.
    #[table(row_key)]
    pub row_key: String,
    /// In all entities; 1970-01-01T00:00:00Z.
    pub of_11: Timestamp,
}

/// An entity of any kind in the table.
#[derive(Clone, Debug, PartialEq, TableEntity)]
pub enum TypeRow {
    /// 1 entity.
    Option2(Option2),
    /// 1 entity.
    String2(String2),
    /// 1 entity.
    Self2(Self2),
    /// 1 entity.
    Match(Match),
    /// 1 entity.
    Abc(Abc),
    /// 1 entity.
    Row(Row),
    /// 1 entity.
    Types(Types),
    /// 1 entity.
    Kind1st(Kind1st),
    /// 1 entity.
    Crab(Crab),
    /// 1 entity.
    Timestamp2(Timestamp2),
    /// 1 entity.
    PartitionKey2(PartitionKey2),
    /// 1 entity.
    Other2(Other2),
}
