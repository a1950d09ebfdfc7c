//! Wide entities: heads, siblings and intents.

use tablesdk::{DynamicEntity, TableClient, Value};

use super::Transcript;

fn map(row_key: &str, count: usize, value: impl Fn(usize) -> Value) -> DynamicEntity {
    let properties = (0..count).map(|index| (format!("P{index:03}"), value(index)));
    DynamicEntity::new("ann", row_key).with_properties(properties.collect())
}

#[tokio::test]
async fn wide_entities_are_stored_as_the_guide_says() {
    let mut transcript = Transcript::new().await;
    let maps = |table: &TableClient| table.wide::<DynamicEntity>();
    let small = DynamicEntity::new("ann", "2023")
        .with("Pages", 812)
        .with("Summary", "…");
    let insert = async |table: &TableClient| drop(maps(table).insert(&small).await.unwrap());
    let title = "insert of an entity without siblings";
    transcript.add(title, insert).await;
    let number = |index| Value::Int32(i32::try_from(index).unwrap());
    let mut found = transcript
        .add("insert of an entity with a sibling", async |table| {
            maps(table).insert(&map("2024", 252, number)).await.unwrap()
        })
        .await;
    *found = DynamicEntity::new("ann", "2024").with("Pages", 812);
    let replace = async |table: &TableClient| maps(table).replace(&mut found).await.unwrap();
    let title = "replace: the sibling is deleted";
    transcript.add(title, replace).await;
    // In base64, all of it is one letter, which no GUID has.
    let bytes = [0xC7, 0x1C, 0x71].into_iter().cycle();
    let bytes: Vec<u8> = bytes.take(64 * 1024).collect();
    let bytes = |_| Value::Binary(bytes.clone());
    transcript
        .add("insert of an entity of two transactions", async |table| {
            maps(table).insert(&map("2025", 48, bytes)).await.unwrap();
        })
        .await;
    let get = async |table: &TableClient| maps(table).get(("ann", "2025")).await.unwrap();
    assert!(transcript.add("get", get).await.is_some());
    transcript
        .add("select of properties of the last sibling", async |table| {
            let some = maps(table).select(("ann", "2025"), |e| e.properties(["P046", "P047"]));
            assert_eq!(some.await.unwrap().unwrap().properties().len(), 2);
        })
        .await;
    let value = format!("{}xw==", "x".repeat(87_380));
    transcript.text = transcript.text.replace(&value, "64 KiB");
    transcript.assert_is("wide.http");
}
