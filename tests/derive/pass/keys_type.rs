//! The functions of the keys on another type: the struct has functions with the same names.
#![deny(warnings, missing_docs, missing_copy_implementations, missing_debug_implementations, unreachable_pub)]
#![forbid(dead_code, deprecated, nonstandard_style, unused)]

use tablesdk::key::{KeyPart, RowRange};
use tablesdk::{TableEntity, WritableEntity as _};

/// With functions of its own.
#[derive(Debug, TableEntity)]
#[table(keys = "EmployeeKeys", row_key = "{office}_{id:06}")]
pub struct Employee {
    #[table(partition_key)]
    department: String,
    office: String,
    id: u32,
}

impl Employee {
    /// Its own.
    pub fn key(&self) -> String {
        self.entity_key().unwrap().to_string()
    }

    /// Its own.
    #[must_use]
    pub fn partition(&self) -> &str {
        &self.department
    }

    /// Its own.
    #[must_use]
    pub const fn rows() -> usize {
        1
    }
}

/// Generic.
#[derive(Debug, TableEntity)]
#[table(keys = "ReadingKeys")]
pub struct Reading<T: KeyPart, const N: usize = 3> {
    #[table(partition_key)]
    device: T,
    #[table(row_key)]
    number: i64,
}

fn main() {
    let ada = Employee { department: "Sales".into(), office: "B".into(), id: 7 };
    let key: tablesdk::key::Key<Employee> = EmployeeKeys::key("Sales", "B", 7);
    assert!(format!("{key:?}").contains("B_000007"));
    assert_eq!(ada.key(), "(\"Sales\", \"B_000007\")");
    assert_eq!((ada.partition(), Employee::rows()), ("Sales", 1));
    assert!(format!("{:?}", EmployeeKeys::partition("Sales")).contains("Sales"));
    let range: RowRange<Employee> = EmployeeKeys::rows().office("B").id(5..).into();
    assert!(format!("{range:?}").contains("B_000005"));
    let key = ReadingKeys::key::<String, 3>("a", 5);
    assert!(format!("{key:?}").contains('5'));
}
