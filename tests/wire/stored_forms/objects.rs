//! References to objects.

use object_store::memory::InMemory;
use tablesdk::TableEntity;
use tablesdk::objects::{ObjectRef, Objects};

use super::Transcript;

#[derive(Clone, Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    photo: Option<ObjectRef>,
}

#[tokio::test]
async fn references_are_as_documented() {
    let mut transcript = Transcript::new().await;
    let photos = Objects::new(InMemory::new(), "employee-photos");
    let employee = Employee {
        department: "Sales".into(),
        id: 223,
        photo: Some(photos.put(vec![7; 3_000_000]).await.unwrap()),
    };
    let insert = async |table: &tablesdk::TableClient| drop(table.insert(&employee).await.unwrap());
    transcript.add("insert", insert).await;
    transcript.assert_is("objects.http");
}
