//! An entity with copies of every kind and an index, and what is stored of it: written down here a
//! second time, so that the client is not compared with itself.

use std::collections::{BTreeMap, BTreeSet};

use tablesdk::index::CopyOf;
use tablesdk::{DynamicEntity, TableClient, TableEntity, Value};

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "staff_{id:06}")]
#[table(index(StaffByEmail, row_key = "email_{email}", unique))]
#[table(copy(Skilled), copy(Badge), copy(ManagerOf))]
pub(crate) struct Staff {
    pub(crate) department: String,
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) email: Option<String>,
    #[table(json)]
    pub(crate) skills: Vec<String>,
    pub(crate) badge: Option<i32>,
    pub(crate) is_manager: bool,
}

/// Several copies of each employee.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "skill_{skill}_{id:06}")]
pub(crate) struct Skilled {
    pub(crate) department: String,
    pub(crate) skill: String,
    pub(crate) id: u32,
    pub(crate) name: String,
}

/// One copy or none of each employee, whose key does not contain that of the employee.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "badge_{badge:04}")]
pub(crate) struct Badge {
    pub(crate) department: String,
    pub(crate) badge: i32,
    pub(crate) owner: String,
}

/// A part of the department.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(projection, partition_key = "{department}", row_key = "dept_")]
pub(crate) struct ManagerOf {
    pub(crate) department: String,
    pub(crate) manager_name: String,
    pub(crate) manager_email: Option<String>,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "dept_")]
pub(crate) struct Department {
    pub(crate) department: String,
    pub(crate) title: String,
    pub(crate) manager_name: Option<String>,
    pub(crate) manager_email: Option<String>,
}

impl CopyOf<Staff> for Skilled {
    fn copies_of(staff: &Staff) -> impl IntoIterator<Item = Self> {
        staff.skills.iter().map(|skill| Self {
            department: staff.department.clone(),
            skill: skill.clone(),
            id: staff.id,
            name: staff.name.clone(),
        })
    }
}

impl CopyOf<Staff> for Badge {
    fn copies_of(staff: &Staff) -> impl IntoIterator<Item = Self> {
        staff.badge.map(|badge| Self {
            department: staff.department.clone(),
            badge,
            owner: staff.name.clone(),
        })
    }
}

impl CopyOf<Staff> for ManagerOf {
    fn copies_of(staff: &Staff) -> impl IntoIterator<Item = Self> {
        staff.is_manager.then(|| Self {
            department: staff.department.clone(),
            manager_name: staff.name.clone(),
            manager_email: staff.email.clone(),
        })
    }
}

impl Staff {
    pub(crate) fn new(id: u32, name: &str, skills: &[&str]) -> Self {
        Self {
            department: "Sales".to_owned(),
            id,
            name: name.to_owned(),
            email: None,
            skills: skills.iter().map(|&skill| skill.to_owned()).collect(),
            badge: None,
            is_manager: false,
        }
    }

    /// The row keys and properties of its copies that are entities.
    fn copies(&self) -> BTreeMap<String, BTreeMap<String, Value>> {
        let Self { id, name, .. } = self;
        let source = format!("staff_{id:06}");
        let properties = |copy: &str, property: &str| {
            let copy = format!("Staff.{copy}");
            let properties = [
                (property, name),
                ("TablesdkCopy", &copy),
                ("TablesdkSource", &source),
            ];
            let properties =
                properties.map(|(name, value)| (name.to_owned(), Value::from(value.as_str())));
            BTreeMap::from(properties)
        };
        let skill = |skill| {
            (
                format!("skill_{skill}_{id:06}"),
                properties("Skilled", "name"),
            )
        };
        let badge = |badge| (format!("badge_{badge:04}"), properties("Badge", "owner"));
        let skills = self.skills.iter().map(skill);
        skills.chain(self.badge.map(badge)).collect()
    }
}

pub(crate) async fn department(table: &TableClient) -> Department {
    let found = table.get(Department::key("Sales")).await.unwrap();
    found.expect("it was inserted").into_inner()
}

/// Inserts the department of the staff.
pub(crate) async fn open(table: &TableClient) {
    let department = Department {
        department: "Sales".to_owned(),
        title: "Sales and marketing".to_owned(),
        manager_name: None,
        manager_email: None,
    };
    table.insert(&department).await.unwrap();
}

/// The staff, after a check that the copies are theirs and no others, and that the department has
/// its manager, if it has one. All of it is read by one request, so it holds at any time.
pub(crate) async fn checked(table: &TableClient) -> Vec<Staff> {
    let rows = table.query::<DynamicEntity>().partition("Sales").values();
    let rows = rows.collect().await.expect("the table can be read");
    let of = |prefix: &'static str| {
        rows.iter()
            .filter(move |row| row.row_key().starts_with(prefix))
    };
    let staff = of("staff_").map(|row| row.to_entity().expect("it is an employee"));
    let staff: Vec<Staff> = staff.collect();
    let copies = of("skill_").chain(of("badge_")).map(|row| {
        let properties = row.properties().iter();
        let properties = properties.map(|(name, value)| (name.to_owned(), value.clone()));
        (row.row_key().to_owned(), properties.collect())
    });
    let copies: BTreeMap<_, BTreeMap<_, _>> = copies.collect();
    let expected: BTreeMap<_, _> = staff.iter().flat_map(Staff::copies).collect();
    assert_eq!(copies, expected, "{staff:#?}");
    let emails = of("email_").map(|row| &row.row_key()["email_".len()..]);
    let expected = staff.iter().filter_map(|staff| staff.email.as_deref());
    let (emails, expected): (BTreeSet<_>, BTreeSet<_>) = (emails.collect(), expected.collect());
    assert_eq!(emails, expected, "{staff:#?}");
    if let Some(manager) = staff.iter().find(|staff| staff.is_manager) {
        let department = of("dept_").next().expect("it was inserted");
        let department: Department = department.to_entity().unwrap();
        assert_eq!(department.title, "Sales and marketing");
        let found = (
            department.manager_name.as_ref(),
            department.manager_email.as_ref(),
        );
        assert_eq!(found, (Some(&manager.name), manager.email.as_ref()));
    }
    staff
}

/// The manager.
pub(crate) fn ada() -> Staff {
    Staff {
        email: Some("ada@contoso.com".to_owned()),
        badge: Some(7),
        is_manager: true,
        ..Staff::new(1, "Ada", &["Maths", "Welsh"])
    }
}
