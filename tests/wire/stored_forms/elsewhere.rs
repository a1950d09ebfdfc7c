//! The entries of indexes in other partitions than that of their entity, and in other tables.

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

mod in_table {
    use tablesdk::TableEntity;

    #[derive(Clone, Debug, TableEntity)]
    #[table(rename_all = "PascalCase")]
    #[table(partition_key = "{department}", row_key = "{id:06}")]
    #[table(index(
        ByName,
        table = "{table}ByName",
        partition_key = "{last_name}",
        row_key = "{department}_{id:06}",
        only(email)
    ))]
    #[table(index(ByEmail, table = "{table}ByEmail", row_key = "{email}_{id:06}", only()))]
    pub(super) struct Employee {
        pub(super) department: String,
        pub(super) id: u32,
        pub(super) last_name: String,
        pub(super) email: Option<String>,
        pub(super) age: i32,
    }
}

#[tokio::test]
async fn entries_in_other_tables_are_as_documented() {
    let mut transcript = Transcript::new().await;
    let create = async |table: &TableClient| {
        let (by_name, by_email) = (
            table.index_table::<in_table::ByName>(),
            table.index_table::<in_table::ByEmail>(),
        );
        by_name.create_table().await.unwrap();
        by_email.create_table().await.unwrap();
    };
    transcript
        .add("create the tables of the indexes", create)
        .await;
    let ada = in_table::Employee {
        department: "Sales".into(),
        id: 223,
        last_name: "Byron".into(),
        email: Some("ada@contoso.com".into()),
        age: 36,
    };
    let insert = async |table: &TableClient| table.insert(&ada).await.unwrap();
    let mut ada = transcript.add("insert", insert).await;
    ada.last_name = "Lovelace".into();
    ada.email = None;
    let replace = async |table: &TableClient| table.replace(&mut ada).await.unwrap();
    transcript.add("replace, with another name", replace).await;
    let follow = async |table: &TableClient| {
        let entry = in_table::ByName::key("Lovelace", "Sales", 223);
        table.get(entry).follow().await.unwrap()
    };
    assert!(transcript.add("follow", follow).await.is_some());
    transcript.assert_is("in_table.http");
}
