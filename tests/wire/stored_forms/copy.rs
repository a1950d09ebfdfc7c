//! The copies of an entity, and its parts of other entities.

use tablesdk::index::CopyOf;
use tablesdk::{TableClient, TableEntity};

use super::Transcript;

#[derive(Clone, Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(copy(Skilled), copy(ManagerOf))]
struct Employee {
    department: String,
    id: u32,
    email: Option<String>,
    #[table(json)]
    skills: Vec<String>,
}

#[derive(TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "skill_{skill}_{id:06}")]
struct Skilled {
    department: String,
    skill: String,
    id: u32,
    email: Option<String>,
}

#[derive(TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "dept_")]
struct Department {
    department: String,
    title: String,
}

#[derive(TableEntity)]
#[table(rename_all = "PascalCase", projection)]
#[table(partition_key = "{department}", row_key = "dept_")]
struct ManagerOf {
    department: String,
    manager: String,
    manager_email: Option<String>,
}

impl CopyOf<Employee> for Skilled {
    fn copies_of(employee: &Employee) -> impl IntoIterator<Item = Self> {
        employee.skills.iter().map(|skill| Self {
            department: employee.department.clone(),
            skill: skill.clone(),
            id: employee.id,
            email: employee.email.clone(),
        })
    }
}

impl CopyOf<Employee> for ManagerOf {
    fn copies_of(employee: &Employee) -> impl IntoIterator<Item = Self> {
        [Self {
            department: employee.department.clone(),
            manager: format!("employee {}", employee.id),
            manager_email: employee.email.clone(),
        }]
    }
}

#[tokio::test]
async fn copies_are_stored_as_their_structs_say() {
    let mut transcript = Transcript::new().await;
    let employee = Employee {
        department: "Sales".into(),
        id: 223,
        email: Some("ada@contoso.com".into()),
        skills: vec!["Maths".into(), "Welsh".into()],
    };
    let department = Department {
        department: "Sales".into(),
        title: "Sales and marketing".into(),
    };
    let insert = async |table: &TableClient| drop(table.insert(&department).await.unwrap());
    transcript.add("insert of the department", insert).await;
    let insert = async |table: &TableClient| table.insert(&employee).await.unwrap();
    let title = "insert: two copies and a part";
    let mut stored = transcript.add(title, insert).await;
    stored.email = None;
    stored.skills.pop();
    let replace = async |table: &TableClient| table.replace(&mut stored).await.unwrap();
    let title = "replace: a copy stays, one goes, and the part has a property less";
    transcript.add(title, replace).await;
    let delete = async |table: &TableClient| table.delete_stored(&stored).await.unwrap();
    assert!(transcript.add("delete: the part stays", delete).await);
    transcript.assert_is("copy.http");
}
