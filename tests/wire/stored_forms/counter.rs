//! The shards of a counter.

use tablesdk::TableClient;
use tablesdk::counter::Counter;

use super::Transcript;

#[tokio::test]
async fn counters_are_as_documented() {
    let mut transcript = Transcript::new().await;
    let counter = Counter::new(&transcript.table, ("home", "views")).shards(1);
    let add = async |_: &TableClient| counter.add(1).await.unwrap();
    transcript.add("the first amount", add).await;
    transcript
        .add("another amount of the same client", add)
        .await;
    let value = async |_: &TableClient| counter.value().await.unwrap();
    assert_eq!(transcript.add("the value", value).await, 2);
    let other = Counter::new(&transcript.table, ("home", "views")).shards(1);
    let add = async |_: &TableClient| other.add(1).await.unwrap();
    transcript.add("an amount of another client", add).await;
    transcript.assert_is("counter.http");
}
