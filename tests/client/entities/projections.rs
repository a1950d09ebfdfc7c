//! Structs with only some of the stored properties: they determine `$select`, and cannot be
//! written.

use tablesdk::{TableEntity, TableProperties};

use crate::{Employee, on_both_transports};

#[derive(Debug, PartialEq, TableEntity)]
#[table(projection, rename_all = "PascalCase")]
struct NameAndAge {
    #[table(alias = "Title")]
    name: String,
    #[table(default)]
    age: i32,
}

#[derive(Debug, PartialEq, TableEntity)]
#[table(projection)]
struct Contact {
    #[table(partition_key)]
    department: String,
    #[table(flatten)]
    reachable: Reachable,
}

#[derive(Debug, PartialEq, TableProperties)]
struct Reachable {
    #[table(rename = "Email")]
    email: Option<String>,
}

on_both_transports! {
    async fn a_projection_reads_only_its_properties(subject: Subject) {
        let table = subject.table().await;
        let ada = Employee { email: Some("ada@contoso.com".into()), ..Employee::ada() };
        table.insert(&ada).await.unwrap();
        table.insert(&Employee::new("2", "Grace", 40)).await.unwrap();

        let found = table.query::<NameAndAge>().partition("Sales").filter(|e| e.age.gt(36)).collect().await.unwrap();
        assert_eq!(*found[0], NameAndAge { name: "Grace".into(), age: 40 });
        assert_eq!(found[0].key().row_key().as_str(), "2");

        let read = table.get::<NameAndAge>(("Sales", "1")).await.unwrap().unwrap();
        assert_eq!(*read, NameAndAge { name: "Ada".into(), age: 36 });
        let whole = Employee::find(&table).await.unwrap();
        assert_eq!((read.etag(), read.timestamp()), (whole.etag(), whole.timestamp()));

        let contacts = table.query::<Contact>().partition(Contact::partition("Sales")).select(|e| (e.department, e.reachable.email));
        assert_eq!(contacts.collect().await.unwrap().len(), 2);
        let contact = table.get::<Contact>(("Sales", "1")).await.unwrap().unwrap();
        assert_eq!(contact.reachable.email.as_deref(), Some("ada@contoso.com"));
        // It can be deleted, as it knows its version.
        assert!(table.delete_stored(&contact).await.unwrap());
    }
}

#[test]
fn a_projection_cannot_be_written() {
    assert!(NameAndAge::SCHEMA.is_projection());
    assert!(!Employee::SCHEMA.is_projection());
}
