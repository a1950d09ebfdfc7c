//! The entries of indexes in the partition of their entity.

use tablesdk::{TableClient, TableEntity};

use super::Transcript;

#[derive(Clone, Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(ByEmail, row_key = "email_{email}", unique))]
#[table(index(ByLastName, row_key = "name_{last_name}_{id:06}"))]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    email: Option<String>,
}

#[derive(Clone, Debug, TableEntity)]
#[table(rename_all = "PascalCase", entity_type = "Customer")]
#[table(partition_key = "{region}", row_key = "customer_{number:06}")]
#[table(index(ByPhone, row_key = "phone_{phone}", unique))]
struct Customer {
    region: String,
    number: u32,
    phone: String,
}

#[tokio::test]
async fn entries_of_indexes_are_as_documented() {
    let mut transcript = Transcript::new().await;
    let employee = |id, last_name: &str, email: Option<&str>| Employee {
        department: "Sales".into(),
        id,
        last_name: last_name.into(),
        email: email.map(Into::into),
    };
    let ada = employee(223, "Byron", Some("ada@contoso.com"));
    let insert = async |table: &TableClient| table.insert(&ada).await.unwrap();
    let mut ada = transcript.add("insert", insert).await;
    ada.last_name = "Lovelace".into();
    let replace = async |table: &TableClient| table.replace(&mut ada).await.unwrap();
    transcript.add("replace, with another name", replace).await;
    let delete = async |table: &TableClient| table.delete_stored(&ada).await.unwrap();
    assert!(transcript.add("delete", delete).await);

    let without = employee(224, "Jones", None);
    let insert = async |table: &TableClient| drop(table.insert(&without).await.unwrap());
    transcript.add("insert without an email", insert).await;

    let customer = Customer {
        region: "EU".into(),
        number: 7,
        phone: "+44-20".into(),
    };
    let insert = async |table: &TableClient| drop(table.insert(&customer).await.unwrap());
    let title = "insert of an entity with a type";
    transcript.add(title, insert).await;
    transcript.assert_is("index.http");
}
