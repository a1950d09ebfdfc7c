//! An enum of entities has attributes and variants of its own; keys and names belong on the
//! structs.
use tablesdk::{DynamicEntity, TableEntity};

#[derive(TableEntity)]
#[table(entity_type = "Department", partition_key = "{id}", row_key = "{row}")]
struct Department {
    id: String,
    row: String,
}

#[derive(TableEntity)]
#[table(entity_type = "Employee", partition_key = "{department}", row_key = "{id}")]
struct Employee {
    department: String,
    id: String,
}

#[derive(TableEntity)]
#[table(partition_key, entity_type = "Row", alias = "Line", bye = "row_key")]
enum AttributesOfAStruct {
    #[table(row_key, rename = "Office")]
    Department(Department),
    Employee(#[table(alias = "Worker")] Employee),
}

#[derive(TableEntity)]
#[table(by = "rowkey")]
enum UnknownRule {
    Department(Department),
}

#[derive(TableEntity)]
enum Empty {}

#[derive(TableEntity)]
enum OnlyOther {
    #[table(other)]
    Other(DynamicEntity),
}

/// The variant `other` has no entity type, and there is one.
#[derive(TableEntity)]
enum TwoOthers {
    Department(Department),
    #[table(other, alias = "Ship")]
    Other(DynamicEntity),
    #[table(other)]
    Rest(DynamicEntity),
}

/// A variant holds one struct.
#[derive(TableEntity)]
enum WithoutAStruct {
    Department(Department),
    Nothing,
    Empty(),
    Two(Department, Employee),
    Fields { name: String },
}

#[derive(TableEntity)]
enum OneStructTwice {
    Open(Department),
    Closed(Department),
}

/// The columns of each variant have a different name.
#[derive(TableEntity)]
enum NamesOfColumns {
    RowKey(Department),
    Timestamp(Employee),
}

/// An alias belongs to one variant, and is not a name of its struct.
#[derive(TableEntity)]
enum RepeatedAliases {
    #[table(alias = "Office", alias = "Office")]
    Department(Department),
    #[table(alias = "Office", alias = "")]
    Employee(Employee),
}

fn main() {}
