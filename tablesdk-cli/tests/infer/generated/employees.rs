// The entities of the table Employees, inferred from 3 entities.
//
// [dependencies]
// tablesdk = "0.1.0"
//
// The table has entries of the indexes `Employee.ByEmail`, `Employee.InCompany`.
// Declare them by `index(…)` before you write.

use tablesdk::TableEntity;

/// 3 entities.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "empid_{empid:06}")]
pub struct Employee {
    /// The partition key; 2 values.
    #[table(partition_key)]
    pub partition_key: String,
    /// In the row key; 223 to 330.
    pub empid: u32,
    /// In all entities.
    pub last_name: String,
    /// In 2 of 3 entities.
    pub email: Option<String>,
}
