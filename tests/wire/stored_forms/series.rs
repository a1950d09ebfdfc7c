//! The slots of series.

use tablesdk::TableEntity;
use tablesdk::series::Series;

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
    transcript
        .add("upsert_merge of a slot", async |table| {
            table.upsert_merge(&day).await.unwrap();
        })
        .await;
    transcript
        .add("patch of a slot", async |table| {
            let patch = table.patch(MessageDay::key("ann", "2024-03-15"));
            patch.set(|d| d.hours.slot(10), 17).await.unwrap();
        })
        .await;
    transcript
        .add("modify of a slot", async |table| {
            let add = |day: &mut MessageDay| {
                *day.hours[9].get_or_insert(0) += 1;
                Ok(())
            };
            let key = MessageDay::key("ann", "2024-03-15");
            table.modify(key, add).await.unwrap();
        })
        .await;
    let samples = Samples {
        sensor: "roof".into(),
        block: 0,
        values: Series::from([(0, -5), (100, 7)]),
    };
    transcript
        .add("insert of two slots", async |table| {
            table.insert(&samples).await.unwrap();
        })
        .await;
    transcript.assert_is("series.http");
}
