//! Entity types of several test targets, each pattern once. They are here so that they are compiled
//! once.

pub mod indexed;

use tablesdk::action::ClosureError;
use tablesdk::{Stored, TableClient, TableEntity};

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
    /// The entity that most tests write.
    pub fn ada() -> Self {
        Self::new("1", "Ada", 36)
    }

    /// Another entity with the same key.
    pub fn grace() -> Self {
        Self::new("1", "Grace", 50)
    }

    /// The stored entity with the key of [`ada`](Self::ada) and [`grace`](Self::grace).
    pub async fn find(table: &TableClient) -> Option<Stored<Self>> {
        let found = table.get(Self::key("Sales", "1")).await;
        found.expect("the table can be read")
    }

    /// The change that most tests of `modify` make.
    pub fn grow_older(&mut self) -> Result<(), ClosureError> {
        self.age += 1;
        Ok(())
    }

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
