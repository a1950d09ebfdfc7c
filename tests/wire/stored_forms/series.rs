//! The slots of series.

use tablesdk::series::Series;
use tablesdk::{TableClient, TableEntity};

use super::Transcript;

#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct MessageDay {
    employee: String,
    day: String,
    #[table(flatten, prefix = "H")]
    hours: Series<i32, 24>,
}

#[derive(TableEntity)]
#[table(partition_key = "{sensor}", row_key = "{block:010}")]
struct Samples {
    sensor: String,
    block: u64,
    #[table(flatten, prefix = "S")]
    values: Series<i64, 101>,
}

#[tokio::test]
async fn slots_are_properties_with_their_numbers() {
    let mut transcript = Transcript::new().await;
    let day = MessageDay {
        employee: "ann".into(),
        day: "2024-03-15".into(),
        hours: Series::from([(9, 42)]),
    };
    let key = || MessageDay::key("ann", "2024-03-15");
    let merge = async |table: &TableClient| table.upsert_merge(&day).await.unwrap();
    transcript.add("upsert_merge of a slot", merge).await;
    let patch = async |table: &TableClient| {
        let patch = table.patch(key()).set(|d| d.hours.slot(10), 17);
        patch.await.unwrap();
    };
    transcript.add("patch of a slot", patch).await;
    let modify = async |table: &TableClient| {
        let add = |day: &mut MessageDay| {
            *day.hours[9].get_or_insert(0) += 1;
            Ok(())
        };
        table.modify(key(), add).await.unwrap();
    };
    transcript.add("modify of a slot", modify).await;
    let samples = Samples {
        sensor: "roof".into(),
        block: 0,
        values: Series::from([(0, -5), (100, 7)]),
    };
    let insert = async |table: &TableClient| drop(table.insert(&samples).await.unwrap());
    transcript.add("insert of two slots", insert).await;
    transcript.assert_is("series.http");
}
