//! An entity with two indexes, and which entries belong to it: written down here a second time, so
//! that the derive is not compared with itself.

use std::collections::{BTreeMap, BTreeSet};

use tablesdk::{DynamicEntity, TableClient, TableEntity, Value};

/// An employee who is found by the email, which is unique, and by the last name.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "empid_{id:06}"
)]
#[table(index(ByEmail, row_key = "email_{email}", unique))]
#[table(index(ByName, row_key = "name_{last_name}_{id:06}"))]
#[expect(missing_docs, reason = "the names say it")]
pub struct Employee {
    pub department: String,
    pub id: u32,
    pub last_name: String,
    pub email: Option<String>,
    pub age: i32,
}

impl Employee {
    /// An employee of `Sales`.
    pub fn new(id: u32, last_name: &str, email: Option<&str>) -> Self {
        Self {
            department: "Sales".to_owned(),
            id,
            last_name: last_name.to_owned(),
            email: email.map(str::to_owned),
            age: 36,
        }
    }

    /// The row keys of what is stored of it.
    fn row_keys(&self) -> BTreeSet<String> {
        let Self {
            id,
            last_name,
            email,
            ..
        } = self;
        let mut keys = BTreeSet::from([
            format!("empid_{id:06}"),
            format!("name_{last_name}_{id:06}"),
        ]);
        keys.extend(email.iter().map(|email| format!("email_{email}")));
        keys
    }
}

/// The entities of the partition by their row keys.
pub async fn rows(table: &TableClient) -> BTreeMap<String, DynamicEntity> {
    let rows = table.query::<DynamicEntity>().partition("Sales").values();
    let rows = rows.collect().await.expect("the table can be read");
    let rows = rows.into_iter().map(|row| (row.row_key().to_owned(), row));
    rows.collect()
}

/// The employees, after a check that the entries of the indexes are theirs and no others, with the
/// same properties. All of it is read by one request, so it holds at any time.
pub async fn checked(table: &TableClient) -> Vec<Employee> {
    let rows = rows(table).await;
    let employees = rows.iter().filter(|(key, _)| key.starts_with("empid_"));
    let employees = employees.map(|(_, row)| row.to_entity().expect("it is an employee"));
    let employees: Vec<Employee> = employees.collect();
    let expected: BTreeSet<String> = employees.iter().flat_map(Employee::row_keys).collect();
    let stored: BTreeSet<String> = rows.keys().cloned().collect();
    assert_eq!(stored, expected, "{employees:#?}");
    for employee in &employees {
        for key in employee.row_keys() {
            let mut expected = DynamicEntity::new("Sales", key.as_str())
                .with("LastName", employee.last_name.as_str())
                .with("Age", employee.age);
            if let Some(email) = &employee.email {
                expected.properties_mut().set("Email", email.as_str());
            }
            let index = match key.split_once('_') {
                Some(("email", _)) => {
                    expected.properties_mut().set("Id", i64::from(employee.id));
                    Some("Employee.ByEmail")
                }
                Some(("name", _)) => Some("Employee.ByName"),
                _ => None,
            };
            if let Some(index) = index {
                expected.properties_mut().set("TablesdkIndex", index);
            }
            let properties = |row: &DynamicEntity| -> BTreeMap<String, Value> {
                let properties = row.properties().iter();
                properties
                    .map(|(name, value)| (name.to_owned(), value.clone()))
                    .collect()
            };
            assert_eq!(properties(&rows[&key]), properties(&expected), "{key}");
        }
    }
    employees
}
