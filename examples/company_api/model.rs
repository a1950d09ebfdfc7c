//! The entities, and the changes of several of them. A department, its employees and their e-mail addresses share a partition, so
//! that they change together or not at all.

use serde::{Deserialize, Serialize};
use tablesdk::{ETag, Result, TableClient, TableEntity};

#[derive(Deserialize, Serialize, TableEntity)]
#[table(entity_type = "Department", rename_all = "PascalCase")]
#[table(partition_key = "{name}", row_key = "department")]
pub struct Department {
    pub name: String,
    #[serde(default)]
    pub headcount: i32,
}

#[derive(Deserialize, Serialize, TableEntity)]
#[table(entity_type = "Employee", rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "employee_{id}")]
pub struct Employee {
    #[serde(default)]
    pub department: String,
    #[serde(default)]
    pub id: String,
    pub name: String,
    pub email: String,
    pub salary: f64,
}

/// An entry of the index by e-mail address. It makes an address unique in its department.
#[derive(TableEntity)]
#[table(entity_type = "Email", rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "email_{email:escaped}")]
pub struct EmailEntry {
    pub department: String,
    pub email: String,
    pub employee: String,
}

/// Why a change was aborted.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub enum Refusal {
    #[error("there is no such department")]
    NoDepartment,
    #[error("there is no such employee")]
    NoEmployee,
    #[error("the e-mail address is taken")]
    EmailTaken,
    #[error("the employee has changed")]
    Changed,
}

/// Adds an employee and the entry of the index, and one to the headcount.
pub async fn hire(table: &TableClient, employee: &Employee) -> Result<()> {
    let department = &employee.department;
    let entry = EmailEntry {
        department: department.clone(),
        email: employee.email.clone(),
        employee: employee.id.clone(),
    };
    let hire = table.transaction(department, async |tx| {
        let found = tx.get(Department::key(department)).await?;
        let mut found = found.ok_or(Refusal::NoDepartment)?;
        let email = EmailEntry::key(department, &entry.email);
        if tx.get(email).await?.is_some() {
            return Err(Refusal::EmailTaken.into());
        }
        found.headcount += 1;
        tx.replace(found).insert(employee).insert(&entry);
        Ok(())
    });
    hire.await
}

/// Removes what [`hire`] added, if the employee still has that ETag.
pub async fn dismiss(table: &TableClient, department: &str, id: &str, etag: &ETag) -> Result<()> {
    let dismiss = table.transaction(department, async |tx| {
        let employee = tx.get(Employee::key(department, id)).await?;
        let employee = employee.ok_or(Refusal::NoEmployee)?;
        if employee.etag() != etag {
            return Err(Refusal::Changed.into());
        }
        let found = tx.get(Department::key(department)).await?;
        let mut found = found.ok_or(Refusal::NoDepartment)?;
        found.headcount -= 1;
        let email = EmailEntry::key(department, &employee.email);
        tx.replace(found).delete_stored(&employee).delete(email);
        Ok(())
    });
    dismiss.await
}
