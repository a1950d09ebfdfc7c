//! The entries of indexes in other partitions than that of their entity.

use tablesdk::{TableClient, TableEntity};
use tablesdk_server::testing::{Fault, Op};

use super::Transcript;

#[derive(Clone, Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(
    CompanyByName,
    partition_key = "name_{last_name}",
    row_key = "in_{department}_{id:06}"
))]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    age: i32,
}

#[tokio::test]
async fn entries_in_other_partitions_are_as_documented() {
    let mut transcript = Transcript::new().await;
    let ada = Employee {
        department: "Sales".into(),
        id: 223,
        last_name: "Byron".into(),
        age: 36,
    };
    let insert = async |table: &TableClient| table.insert(&ada).await.unwrap();
    let mut ada = transcript.add("insert", insert).await;
    ada.age = 37;
    let replace = async |table: &TableClient| table.replace(&mut ada).await.unwrap();
    transcript.add("replace, with another age", replace).await;
    // The write of an entry is repeated, with an id: no response shows that the first one was
    // carried out.
    let lost = Fault::lost_response();
    transcript.server().faults().next(Op::MergeEntity, lost);
    let insert = async |table: &TableClient| table.insert(&*ada).await.unwrap_err();
    let title = "insert of an entity that exists, with a lost response to the merge";
    assert!(transcript.add(title, insert).await.is_conflict());
    ada.last_name = "Lovelace".into();
    let replace = async |table: &TableClient| table.replace(&mut ada).await.unwrap();
    transcript.add("replace, with another name", replace).await;
    let delete = async |table: &TableClient| table.delete_stored(&ada).await.unwrap();
    assert!(transcript.add("delete", delete).await);
    transcript.assert_is("elsewhere.http");
}
