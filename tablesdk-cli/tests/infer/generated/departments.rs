// The entities of the table Departments, inferred from 18 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::TableEntity;

/// 3 of 18 entities, by `EntityType`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Department", row_key = "dept")]
pub struct Department {
    /// The partition key; 3 values.
    #[table(partition_key)]
    pub partition_key: String,
    /// In all entities; 0 to 3.
    pub floor: i32,
}

/// 12 of 18 entities, by `EntityType`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Employee", row_key = "empid_{empid:06}")]
pub struct Employee {
    /// The partition key; 3 values.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 1 to 4.
    pub empid: u32,
    /// In all entities; `employee 1`, `employee 2`, `employee 3`, `employee 4`.
    pub name: String,
}

/// 3 of 18 entities, by `EntityType`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Salary")]
pub struct Salary {
    /// The partition key; 3 values.
    #[table(partition_key)]
    pub partition_key: String,
    /// The row key; 1 value.
    #[table(row_key)]
    pub row_key: String,
    /// In all entities; always 5000.
    pub dollars: i64,
}

/// An entity of any kind in the table.
#[derive(Clone, Debug, PartialEq, TableEntity)]
pub enum DepartmentRow {
    /// 3 entities.
    Department(Department),
    /// 12 entities.
    Employee(Employee),
    /// 3 entities.
    Salary(Salary),
}
