// The entities of the table Words, inferred from 16 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::TableEntity;

/// 2 of 16 entities, by the row key.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "E_{e_2:03}")]
pub struct E {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 to 22.
    pub e_2: u32,
    /// In all entities; 1 to 22.
    pub of_e: i32,
    /// In all entities; 1 to 22.
    pub e: i32,
}

/// 2 of 16 entities, by the row key.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "Option_{option_2:03}")]
pub struct Option2 {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 to 22.
    pub option_2: u32,
    /// In all entities; 1 to 22.
    pub of_option: i32,
    /// In all entities; 1 to 22.
    pub option: i32,
}

/// 2 of 16 entities, by the row key.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(row_key = "clone_{clone_2:03}")]
pub struct Clone2 {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 to 22.
    pub clone_2: u32,
    /// In all entities; 1 to 22.
    #[table(rename = "Ofclone")]
    pub ofclone: i32,
    /// In all entities; 1 to 22.
    pub clone: i32,
}

/// 2 of 16 entities, by the row key.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(row_key = "from_{from_2:03}")]
pub struct From {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 to 22.
    pub from_2: u32,
    /// In all entities; 1 to 22.
    #[table(rename = "Offrom")]
    pub offrom: i32,
    /// In all entities; 1 to 22.
    pub from: i32,
}

/// 2 of 16 entities, by the row key.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(row_key = "rows_{rows_2:03}")]
pub struct Rows {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 to 22.
    pub rows_2: u32,
    /// In all entities; 1 to 22.
    #[table(rename = "Ofrows")]
    pub ofrows: i32,
    /// In all entities; 1 to 22.
    pub rows: i32,
}

/// 2 of 16 entities, by the row key.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "self_{self_3:03}")]
pub struct Self2 {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 to 22.
    pub self_3: u32,
    /// In all entities; 1 to 22.
    pub ofself: i32,
    /// In all entities; 1 to 22.
    #[table(rename = "self")]
    pub self_2: i32,
}

/// 2 of 16 entities, by the row key.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(row_key = "timestamp_{timestamp_2:03}")]
pub struct Timestamp2 {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 to 22.
    pub timestamp_2: u32,
    /// In all entities; 1 to 22.
    #[table(rename = "Oftimestamp")]
    pub oftimestamp: i32,
    /// In all entities; 1 to 22.
    pub timestamp: i32,
}

/// 2 of 16 entities, by the row key.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(row_key = "type_{type_2:03}")]
pub struct Type {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 to 22.
    pub type_2: u32,
    /// In all entities; 1 to 22.
    #[table(rename = "Oftype")]
    pub oftype: i32,
    /// In all entities; 1 to 22.
    pub r#type: i32,
}

/// An entity of any kind in the table.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(by = "row_key")]
pub enum WordRow {
    /// 2 entities.
    E(E),
    /// 2 entities.
    Option2(Option2),
    /// 2 entities.
    Clone2(Clone2),
    /// 2 entities.
    From(From),
    /// 2 entities.
    Rows(Rows),
    /// 2 entities.
    Self2(Self2),
    /// 2 entities.
    Timestamp2(Timestamp2),
    /// 2 entities.
    Type(Type),
}
