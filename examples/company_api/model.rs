//! The entities, and the changes of several of them. A department and its employees share a
//! partition, so that they change together or not at all.

use serde::{Deserialize, Serialize};
use tablesdk::{ETag, Result, Stored, TableClient, TableEntity};

#[derive(Deserialize, Serialize, TableEntity)]
#[table(entity_type = "Department", rename_all = "PascalCase")]
#[table(partition_key = "{name}", row_key = "department")]
pub struct Department {
    pub name: String,
    /// A client cannot set it.
    #[serde(skip_deserializing)]
    pub headcount: i32,
}

/// An employee. The index finds one by the e-mail address, and makes the address unique in the
/// department.
#[derive(Clone, Debug, Deserialize, Serialize, TableEntity)]
#[table(entity_type = "Employee", rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "employee_{id}")]
#[table(index(ByEmail, row_key = "email_{email:escaped}", unique))]
pub struct Employee {
    /// In a request, it is in the path.
    #[serde(skip_deserializing)]
    pub department: String,
    pub id: String,
    pub name: String,
    pub email: String,
    pub salary: f64,
}

/// Why a change was aborted.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub enum Refusal {
    #[error("there is no such department")]
    NoDepartment,
    #[error("there is no such employee")]
    NoEmployee,
    #[error("the employee has changed")]
    Changed,
}

/// Adds an employee, and one to the headcount. A taken e-mail address is a conflict in the index.
/// Returns the employee as stored.
pub async fn hire(table: &TableClient, employee: &Employee) -> Result<Stored<Employee>> {
    let department = &employee.department;
    let hire = table.transaction(department, async |tx| {
        let found = tx.get(Department::key(department)).await?;
        let mut found = found.ok_or(Refusal::NoDepartment)?;
        found.headcount += 1;
        tx.replace(found).insert(employee);
        Ok(())
    });
    let ((), written) = hire.with_etags().await?;
    let hired = written.stored(Employee::key(department, &employee.id))?;
    Ok(hired.expect("it was inserted"))
}

/// Removes what [`hire`] added, if the employee still has that ETag, or any if it is `ETag::ANY`.
pub async fn dismiss(table: &TableClient, department: &str, id: &str, etag: &ETag) -> Result<()> {
    let dismiss = table.transaction(department, async |tx| {
        let employee = tx.get(Employee::key(department, id)).await?;
        let employee = employee.ok_or(Refusal::NoEmployee)?;
        if *etag != ETag::ANY && employee.etag() != etag {
            return Err(Refusal::Changed.into());
        }
        let found = tx.get(Department::key(department)).await?;
        let mut found = found.ok_or(Refusal::NoDepartment)?;
        found.headcount -= 1;
        tx.replace(found).delete_stored(&employee);
        Ok(())
    });
    dismiss.await
}
