// The entities of the table Readings, inferred from 30 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::TableEntity;

/// 30 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    partition_key = "{number:02}_{partition}",
    row_key = "{number_2:02}_{number_3:02}_sensor-{sensor:02}"
)]
pub struct Reading {
    /// In the partition key; 0 to 2.
    pub number: u32,
    /// In the partition key; 1 value.
    pub partition: String,
    /// In the row key; always 0.
    pub number_2: u32,
    /// In the row key; 0 to 29.
    pub number_3: u32,
    /// In the row key; 0 to 2.
    pub sensor: u32,
    /// In all entities; 18.5 to 20.5.
    pub celsius: f64,
}
