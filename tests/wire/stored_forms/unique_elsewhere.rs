//! The entries of a unique index in other partitions than that of their entity, and tickets.

use tablesdk::{TableClient, TableEntity};

use super::Transcript;

#[derive(Clone, Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "empid_{department}", row_key = "{id:06}")]
#[table(index(
    UniqueEmail,
    partition_key = "email_{department}",
    row_key = "{email}",
    unique
))]
struct Employee {
    department: String,
    id: u32,
    email: Option<String>,
    age: i32,
}

#[tokio::test]
async fn unique_entries_in_other_partitions_are_as_documented() {
    let mut transcript = Transcript::new().await;
    let jones = Employee {
        department: "Sales".into(),
        id: 223,
        email: Some("jonesj@contoso.com".into()),
        age: 36,
    };
    let insert = async |table: &TableClient| table.insert(&jones).await.unwrap();
    let mut jones = transcript.add("insert", insert).await;
    jones.age = 37;
    let replace = async |table: &TableClient| table.replace(&mut jones).await.unwrap();
    transcript.add("replace, with another age", replace).await;
    jones.email = Some("jones@contoso.com".into());
    let replace = async |table: &TableClient| table.replace(&mut jones).await.unwrap();
    transcript.add("replace, with another email", replace).await;
    let second = Employee {
        id: 224,
        ..(*jones).clone()
    };
    let insert = async |table: &TableClient| table.insert(&second).await.unwrap_err();
    let title = "insert of another employee with the email";
    assert!(transcript.add(title, insert).await.is_conflict());
    let delete = async |table: &TableClient| table.delete_stored(&jones).await.unwrap();
    assert!(transcript.add("delete", delete).await);
    transcript.assert_is("unique_elsewhere.http");
}
