//! Employees, and lists of those with the same last name: the index entities of the design guide,
//! as programs in other languages keep them, too.
//!
//! A department has its lists beside its employees, and each write of an employee keeps them in the
//! same transaction. The company has its lists in another table. A message follows the transaction,
//! and its handler keeps them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tablesdk::action::{ClosureError, Transaction};
use tablesdk::objects::{ObjectRef, Objects};
use tablesdk::outbox::{Message, Step};
use tablesdk::{Stored, TableClient, TableEntity};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{id:06}"
)]
pub struct Employee {
    pub department: String,
    pub id: u32,
    pub last_name: String,
    pub email: Option<String>,
}

/// The ids of the employees of a department with the same last name. A list that has become empty
/// stays.
#[derive(Debug, Clone, TableEntity)]
#[table(partition_key = "{department}", row_key = "{last_name}")]
pub struct InDepartment {
    pub department: String,
    pub last_name: String,
    #[table(rename = "EmployeeIDs", with = "ids")]
    pub employee_ids: BTreeSet<u32>,
}

/// The employees of all departments with the same last name, as the text of [`Members`]. One of the
/// two properties has it.
#[derive(Debug, Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
pub struct InCompany {
    /// The last name, too: each list has a partition of its own.
    #[table(partition_key)]
    pub partition: String,
    #[table(row_key)]
    pub last_name: String,
    pub employee_details: Option<String>,
    /// The object that has the text if it is too long for a property.
    pub employee_details_object: Option<ObjectRef>,
}

/// The ids with six digits, separated by commas.
mod ids {
    use std::collections::BTreeSet;

    use tablesdk::entity::ValueError;

    pub type Property = String;

    #[expect(clippy::unnecessary_wraps, reason = "the derive expects a `Result`")]
    pub fn to_property(ids: &BTreeSet<u32>) -> Result<Property, ValueError> {
        let ids: Vec<_> = ids.iter().map(|id| format!("{id:06}")).collect();
        Ok(ids.join(","))
    }

    #[expect(clippy::needless_pass_by_value, reason = "the derive passes the value")]
    pub fn from_property(text: String) -> Result<BTreeSet<u32>, ValueError> {
        let ids = text.split(',').map(str::trim).filter(|id| !id.is_empty());
        ids.map(|id| {
            id.parse()
                .map_err(|error| ValueError::unreadable(id, error))
        })
        .collect()
    }
}

/// Department and id of employees. As text, each of them is a line such as `Sales/000152`: no key
/// contains a slash or a line feed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Members(pub BTreeSet<(String, u32)>);

impl Members {
    pub fn to_text(&self) -> String {
        let lines = self.0.iter();
        let lines: Vec<_> = lines.map(|(of, id)| format!("{of}/{id:06}")).collect();
        lines.join("\n")
    }

    /// # Errors
    ///
    /// For a line without a slash and a number.
    pub fn from_text(text: &str) -> Result<Self, ClosureError> {
        let members = text.lines().map(|line| {
            let (department, id) = line.split_once('/').ok_or("a line has no slash")?;
            Ok((department.to_owned(), id.parse()?))
        });
        members.collect::<Result<_, ClosureError>>().map(Self)
    }
}

/// The service stores at most 64 KiB in a string: so many UTF-16 units.
const LONGEST_STRING: usize = 32_768;

impl InCompany {
    /// A list, whose text is put into an object if it is too long for a property.
    ///
    /// # Errors
    ///
    /// The errors of the store.
    pub async fn new(
        last_name: &str,
        members: &Members,
        objects: &Objects,
    ) -> Result<Self, tablesdk::Error> {
        let text = members.to_text();
        let (text, object) = if text.encode_utf16().count() <= LONGEST_STRING {
            (Some(text), None)
        } else {
            (None, Some(objects.put(text).await?))
        };
        Ok(Self {
            partition: last_name.to_owned(),
            last_name: last_name.to_owned(),
            employee_details: text,
            employee_details_object: object,
        })
    }

    /// # Errors
    ///
    /// The errors of the store, and an error for a malformed text.
    pub async fn members(&self, objects: &Objects) -> Result<Members, ClosureError> {
        let from_object = match &self.employee_details_object {
            Some(object) => String::from_utf8(objects.get(object).await?.to_vec())?,
            None => String::new(),
        };
        Members::from_text(self.employee_details.as_deref().unwrap_or(&from_object))
    }
}

/// An employee has got or lost this last name.
#[derive(Debug, Serialize, Deserialize)]
pub struct NameChanged {
    pub department: String,
    pub id: u32,
    pub last_name: String,
}

impl Message for NameChanged {
    const NAME: &'static str = "name-changed";
}

/// # Errors
///
/// When the employee exists, or the list of the department has no room for one more.
pub async fn hire(company: &TableClient, new: &Employee) -> Result<(), tablesdk::Error> {
    let hire = company.transaction(Employee::partition(&new.department), async |tx| {
        tx.insert(new);
        keep_list(&tx, new, true).await
    });
    hire.await
}

/// # Errors
///
/// When the employee does not exist, or the list under the new name has no room for one more.
pub async fn rename(
    company: &TableClient,
    (department, id): (&str, u32),
    to: &str,
) -> Result<(), tablesdk::Error> {
    let rename = company.transaction(Employee::partition(department), async |tx| {
        let mut employee = find(&tx, department, id).await?;
        if employee.last_name != to {
            keep_list(&tx, &employee, false).await?;
            employee.last_name = to.into();
            keep_list(&tx, &employee, true).await?;
            tx.replace(employee);
        }
        Ok(())
    });
    rename.await
}

/// # Errors
///
/// When the employee does not exist.
pub async fn dismiss(
    company: &TableClient,
    (department, id): (&str, u32),
) -> Result<(), tablesdk::Error> {
    let dismiss = company.transaction(Employee::partition(department), async |tx| {
        let employee = find(&tx, department, id).await?;
        tx.delete_stored(&employee);
        keep_list(&tx, &employee, false).await
    });
    dismiss.await
}

async fn find(
    tx: &Transaction,
    department: &str,
    id: u32,
) -> Result<Stored<Employee>, ClosureError> {
    let found = tx.get(Employee::key(department, id)).await?;
    found.ok_or_else(|| format!("{department} has no employee {id}").into())
}

/// Keeps the list of the department, and leaves a message for that of the company. The list is read
/// first, so the transaction runs again if another client changes it.
async fn keep_list(tx: &Transaction, employee: &Employee, is_in: bool) -> Result<(), ClosureError> {
    let (department, last_name) = (&employee.department, &employee.last_name);
    let list = tx.get(InDepartment::key(department, last_name)).await?;
    let mut list = list.map_or_else(
        || InDepartment {
            department: department.clone(),
            last_name: last_name.clone(),
            employee_ids: BTreeSet::new(),
        },
        Stored::into_inner,
    );
    if is_in {
        list.employee_ids.insert(employee.id);
    } else {
        list.employee_ids.remove(&employee.id);
    }
    let message = NameChanged {
        department: department.clone(),
        id: employee.id,
        last_name: last_name.clone(),
    };
    tx.upsert_replace(&list).step(Step::message(&message));
    Ok(())
}

/// Makes the list of the company agree with what is stored of the employee. It may run twice, late,
/// or beside a second worker: the list is read first, then the employee, and the list is written in
/// any case. So the write of a worker that saw an older employee meets a newer list, and the worker
/// reads again.
///
/// # Errors
///
/// The errors of the service and of the store.
pub async fn keep_company_list(
    company: &TableClient,
    lists: &TableClient,
    objects: &Objects,
    changed: &NameChanged,
) -> Result<(), ClosureError> {
    let last_name = &changed.last_name;
    let keep = lists.transaction(InCompany::partition(last_name), async |tx| {
        let list = tx.get(InCompany::key(last_name, last_name)).await?;
        let employee = company
            .get(Employee::key(&changed.department, changed.id))
            .await?;
        let mut members = match &list {
            Some(list) => list.members(objects).await?,
            None => Members::default(),
        };
        let member = (changed.department.clone(), changed.id);
        if employee.is_some_and(|employee| employee.last_name == *last_name) {
            members.0.insert(member);
        } else {
            members.0.remove(&member);
        }
        tx.upsert_replace(&InCompany::new(last_name, &members, objects).await?);
        Ok(())
    });
    Ok(keep.await?)
}

/// The employees of a department with that last name: one request, and one for each of them.
///
/// # Errors
///
/// The errors of the service.
pub async fn of_department(
    company: &TableClient,
    department: &str,
    last_name: &str,
) -> Result<Vec<Employee>, tablesdk::Error> {
    let list = company.get(InDepartment::key(department, last_name));
    let ids = list.await?.map(|list| list.into_inner().employee_ids);
    let keys = ids.into_iter().flatten();
    read(
        company,
        keys.map(|id| (department.to_owned(), id)),
        last_name,
    )
    .await
}

/// The employees of all departments with that last name.
///
/// # Errors
///
/// The errors of the service and of the store.
pub async fn of_company(
    company: &TableClient,
    lists: &TableClient,
    objects: &Objects,
    last_name: &str,
) -> Result<Vec<Employee>, ClosureError> {
    let members = match lists.get(InCompany::key(last_name, last_name)).await? {
        Some(list) => list.members(objects).await?,
        None => Members::default(),
    };
    Ok(read(company, members.0, last_name).await?)
}

/// Leaves out who has left, or has another name now: the list is read before the employees.
async fn read(
    company: &TableClient,
    members: impl IntoIterator<Item = (String, u32)>,
    last_name: &str,
) -> Result<Vec<Employee>, tablesdk::Error> {
    let keys = members.into_iter();
    let keys = keys.map(|(department, id)| Employee::key(department, id));
    let found = company.get_many(keys).await?.into_iter().flatten();
    let found = found.map(Stored::into_inner);
    Ok(found.filter(|it| it.last_name == last_name).collect())
}
