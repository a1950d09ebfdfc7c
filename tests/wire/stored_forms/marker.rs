//! The markers of `exactly_once`.

use std::time::Duration;

use tablesdk::{DynamicEntity, TableClient};

use super::Transcript;

#[tokio::test]
async fn markers_are_as_documented() {
    let mut transcript = Transcript::new().await;
    let ada = DynamicEntity::new("Sales", "1").with("Name", "Ada");
    let insert = async |table: &TableClient| table.insert(&ada).exactly_once().await.unwrap();
    let ada = transcript.add("insert", insert).await;
    let hour = Duration::from_secs(3600);
    let delete = async |table: &TableClient| {
        let delete = table.delete_stored(&ada).exactly_once();
        delete.exactly_once_for(hour).await.unwrap()
    };
    transcript
        .add("delete, with a marker that is kept", delete)
        .await;
    transcript.assert_is("marker.http");
}
