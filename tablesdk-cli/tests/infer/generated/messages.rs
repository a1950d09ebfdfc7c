// The entities of the table Messages, inferred from 10 entities.
//
// [dependencies]
// tablesdk = "0.1.0"
// time = "0.3"

use tablesdk::TableEntity;

/// 10 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "{date}")]
pub struct Message {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 2024-03-10 to 2024-03-19.
    pub date: time::Date,
    /// In all entities; always 8.
    pub h08: i32,
    /// In all entities; always 9.
    pub h09: i32,
    /// In 9 of 10 entities; always 10.
    pub h10: Option<i32>,
    /// In 8 of 10 entities; always 11.
    pub h11: Option<i32>,
    /// In 7 of 10 entities; always 12.
    pub h12: Option<i32>,
    /// In 6 of 10 entities; always 13.
    pub h13: Option<i32>,
    /// In 5 of 10 entities; always 14.
    pub h14: Option<i32>,
    /// In 4 of 10 entities; always 15.
    pub h15: Option<i32>,
    /// In 3 of 10 entities; always 16.
    pub h16: Option<i32>,
    /// In 2 of 10 entities; always 17.
    pub h17: Option<i32>,
    /// In 1 of 10 entities; 18.
    pub h18: Option<i32>,
}
