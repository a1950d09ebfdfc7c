// The entities of the table Company, inferred from 7 entities.
//
// [dependencies]
// tablesdk = "0.1.0"

use tablesdk::{DynamicEntity, TableEntity};

/// 1 of 7 entities, by `EntityType`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Department", rename_all = "PascalCase")]
pub struct Department {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// The row key; 1 value.
    #[table(row_key)]
    pub row_key: String,
    /// In all entities; 2.
    pub headcount: i32,
    /// In all entities; 250000.0.
    pub budget: f64,
}

/// 1 of 7 entities, by `EntityType`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "Employee",
    rename_all = "PascalCase",
    row_key = "{number:06}"
)]
pub struct Employee {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; always 1.
    pub number: u32,
    /// In all entities.
    pub name: String,
    /// In all entities; 65000.0.
    pub salary: f64,
}

/// 2 of 7 entities, by `EntityType`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "Employee.v2",
    rename_all = "PascalCase",
    row_key = "{number:06}"
)]
pub struct EmployeeV2 {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 223 to 224.
    pub number: u32,
    /// In all entities; always `Grace`.
    pub first_name: String,
    /// In all entities; always `Hopper`.
    pub last_name: String,
}

/// 1 of 7 entities, by `EntityType`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Freelancer", rename_all = "PascalCase")]
pub struct Freelancer {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// The row key; 1 value.
    #[table(row_key)]
    pub row_key: String,
    /// In all entities.
    pub name: String,
    /// In all entities; 900.0.
    pub daily_rate: f64,
}

/// 1 of 7 entities, by `EntityType`.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Desk")]
pub struct Desk {
    /// The partition key; 1 value.
    #[table(partition_key)]
    pub partition_key: String,
    /// The row key; 1 value.
    #[table(row_key)]
    pub row_key: String,
}

/// An entity of any kind in the table.
#[derive(Clone, Debug, PartialEq, TableEntity)]
pub enum CompanyRow {
    /// 1 entity.
    Department(Department),
    /// 1 entity.
    Employee(Employee),
    /// 2 entities.
    EmployeeV2(EmployeeV2),
    /// 1 entity.
    Freelancer(Freelancer),
    /// 1 entity.
    Desk(Desk),
    /// 1 entity without a type.
    #[table(other)]
    Other(DynamicEntity),
}
