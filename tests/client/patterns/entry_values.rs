//! Entries of indexes as values: they are compared and serialized as their entities are, and become
//! them.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tablesdk::{ETag, Stored, TableClient, TableEntity, TableProperties, Timestamp};

use super::on_both_transports;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TableProperties)]
#[table(rename_all = "PascalCase")]
struct Address {
    city: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    rename_all = "PascalCase"
)]
#[table(index(
    ByEmail,
    row_key = "email_{email}",
    unique,
    derive(PartialEq, serde::Serialize, Deserialize)
))]
#[table(index(
    ByCity,
    partition_key = "city_{office}",
    row_key = "in_{department}_{id:06}",
    derive(Debug, Clone,)
))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Employee {
    department: String,
    #[serde(rename = "number")]
    id: u32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    middle_name: Option<String>,
    office: Option<String>,
    #[table(flatten)]
    address: Address,
    #[table(json)]
    skills: Vec<String>,
    #[table(skip)]
    #[serde(skip)]
    cached: u32,
}

/// It shows the version and the time of the entity, so no entry becomes one.
#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "guest_{id}")]
#[table(index(ByBadge, row_key = "badge_{badge}_{id}"))]
struct Guest {
    department: String,
    id: String,
    badge: String,
    #[table(etag)]
    etag: Option<ETag>,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "visit_{id}")]
#[table(index(ByDay, row_key = "day_{day}_{id}"))]
struct Visit {
    department: String,
    id: String,
    day: String,
    #[table(timestamp)]
    at: Option<Timestamp>,
}

// These would conflict with implementations of the derive.
impl From<ByBadge> for Guest {
    fn from(entry: ByBadge) -> Self {
        let ByBadge {
            department,
            id,
            badge,
            ..
        } = entry;
        Self {
            department,
            id,
            badge,
            etag: None,
        }
    }
}

impl From<ByDay> for Visit {
    fn from(entry: ByDay) -> Self {
        let ByDay {
            department,
            id,
            day,
            ..
        } = entry;
        Self {
            department,
            id,
            day,
            at: None,
        }
    }
}

async fn ada(table: &TableClient) -> Stored<Employee> {
    let ada = Employee {
        department: "Sales".to_owned(),
        id: 7,
        email: Some("ada@contoso.com".to_owned()),
        middle_name: None,
        office: Some("Leeds".to_owned()),
        address: Address {
            city: "York".to_owned(),
        },
        skills: vec!["bridge".to_owned()],
        cached: 0,
    };
    table.insert(&ada).await.unwrap()
}

on_both_transports! {
    async fn an_entry_has_the_json_of_its_entity(subject: Subject) {
        let table = subject.table().await;
        let ada = ada(&table).await;
        let entry = table.get(ByEmail::key("Sales", "ada@contoso.com")).await.unwrap().unwrap();
        let json = json!({
            "department": "Sales",
            "number": 7,
            "email": "ada@contoso.com",
            "office": "Leeds",
            "address": {"city": "York"},
            "skills": ["bridge"],
        });
        assert_eq!(serde_json::to_value(&*entry).unwrap(), json);
        assert_eq!(serde_json::to_value(&*ada).unwrap(), json);
        assert_eq!(serde_json::from_value::<ByEmail>(json).unwrap(), entry.into_inner());
        let unknown = serde_json::from_value::<ByEmail>(json!({"pay": 1}));
        assert!(unknown.unwrap_err().to_string().contains("unknown field"));
    }

    async fn an_entry_becomes_its_entity(subject: Subject) {
        let table = subject.table().await;
        let ada = ada(&table).await.into_inner();
        let entry = table.get(ByEmail::key("Sales", "ada@contoso.com")).await.unwrap().unwrap();
        assert_eq!(Employee::from(entry.into_inner()), ada);
        let page = table.query::<ByCity>().partition(ByCity::partition("Leeds")).unverified().page(None).await.unwrap();
        let employees = page.map(|entry| Employee::from(entry.into_inner()));
        assert_eq!(employees.items, [ada]);
    }
}
