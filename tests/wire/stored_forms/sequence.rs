//! The entity of a sequence.

use tablesdk::TableClient;
use tablesdk::sequence::Sequence;

use super::Transcript;

#[tokio::test]
async fn sequences_are_as_documented() {
    let mut transcript = Transcript::new().await;
    let next = async |table: &TableClient| {
        let sequence = Sequence::new(table, ("numbers", "claims")).block(100);
        sequence.next().await.unwrap()
    };
    assert_eq!(transcript.add("the first block", next).await, 1);
    assert_eq!(transcript.add("another block", next).await, 101);
    transcript.assert_is("sequence.http");
}
