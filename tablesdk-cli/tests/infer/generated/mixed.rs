// The entities of the table Mixed, inferred from 3 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::entity::{ValueError, ValueRef};
use tablesdk::{EdmType, Properties, PropertyValue, TableEntity, Value};

/// 3 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "{number:03}")]
pub struct Mixed {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 0 to 2.
    pub number: u32,
    /// In all entities; `Edm.Int32` -1 to 1, `Edm.Int64` 1099511627776.
    #[table(mixed_integers)]
    pub integers: i64,
    /// In all entities; `Edm.Int32` 1, `Edm.Double` 1.5 to NaN.
    pub numbers: Number,
    /// In 2 of 3 entities; `Edm.Int32` 7, `Edm.Double` 0.5.
    pub optional_number: Option<Number>,
    /// The properties that have no field of one type:
    ///
    /// * `Amount`: `Edm.Int32` in 1, `Edm.String` in 1, `Edm.Double` in 1
    /// * `Anything`: `Edm.Boolean` in 1, `Edm.Guid` in 1, `Edm.Binary` in 1
    #[table(rest)]
    pub other: Properties,
}

/// A number that is an Int32 in some entities and a Double in others. A write stores a Double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

impl PropertyValue for Number {
    const EDM_TYPE: EdmType = EdmType::Double;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        self.0.to_value()
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        match value {
            Value::Int32(value) => Ok(Self(value.into())),
            other => f64::from_value(other).map(Self),
        }
    }
}
