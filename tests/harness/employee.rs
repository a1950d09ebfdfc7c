//! The entity of most tests.

use tablesdk::TableEntity;

/// An entity with two keys and three properties.
#[expect(missing_docs, reason = "the names say it")]
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
pub struct Employee {
    #[table(partition_key)]
    pub department: String,
    #[table(row_key)]
    pub id: String,
    pub name: String,
    pub age: i32,
    pub email: Option<String>,
}

impl Employee {
    /// An employee of `Sales` without an email.
    pub fn new(id: &str, name: &str, age: i32) -> Self {
        Self {
            department: "Sales".to_owned(),
            id: id.to_owned(),
            name: name.to_owned(),
            age,
            email: None,
        }
    }
}
