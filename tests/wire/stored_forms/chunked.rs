//! Values in chunks, and JSON.

use tablesdk::chunked::Chunked;
use tablesdk::entity::Json;
use tablesdk::{TableClient, TableEntity};

use super::Transcript;

#[derive(Clone, Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{employee}", row_key = "{year:04}")]
struct Review {
    employee: String,
    year: u16,
    #[table(flatten, prefix = "Text")]
    text: Chunked<String>,
    #[table(flatten, prefix = "Answers")]
    answers: Option<Chunked<Json<Vec<String>>, 2>>,
    #[table(flatten, prefix = "Scan")]
    scan: Option<Chunked<Vec<u8>, 2>>,
}

#[tokio::test]
async fn values_in_chunks_are_as_documented() {
    let mut transcript = Transcript::new().await;
    let review = Review {
        employee: "ann".into(),
        year: 2024,
        text: Chunked("punctual".into()),
        answers: Some(Chunked(Json(vec!["Yes".into(), "No".into()]))),
        scan: None,
    };
    let insert = async |table: &TableClient| table.insert(&review).await.unwrap();
    let mut review = transcript.add("insert", insert).await;
    review.text = Chunked(format!("{}y", "x".repeat(CHUNK)));
    review.scan = Some(Chunked(vec![1, 2, 3]));
    let merge = async |table: &TableClient| table.merge(&mut review).await.unwrap();
    let title = "merge of a longer text, and of a scan";
    transcript.add(title, merge).await;
    let long = "x".repeat(CHUNK);
    transcript.text = transcript.text.replace(&long, "32768 times x");
    transcript.assert_is("chunked.http");
}

const CHUNK: usize = 32 * 1024;
