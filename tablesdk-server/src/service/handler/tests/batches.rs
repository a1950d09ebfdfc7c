//! How much of a batch is done before other tasks get the thread.

use std::pin::pin;

use super::*;

/// The response to a batch that inserts a hundred entities with a text of that length each, and how
/// often other tasks got the thread.
async fn insert(client: &Client, text_bytes: usize) -> (Response<Bytes>, usize) {
    let text = "x".repeat(text_bytes);
    let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
    let partition_key = text_bytes.to_string();
    for row_key in 0..100 {
        body += "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
            POST /acct/people HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n\r\n";
        let row_key = row_key.to_string();
        let entity = [
            r#"{"PartitionKey":""#,
            &partition_key,
            r#"","RowKey":""#,
            &row_key,
            r#"","a":""#,
            &text,
            "\"}\r\n",
        ];
        body.extend(entity);
    }
    body += "--c--\r\n--b--\r\n";
    let headers = [("content-type", "multipart/mixed; boundary=b")];
    let request = client.signed("POST", "/acct/$batch", &headers, &body);
    let mut call = pin!(client.service.call(request));
    let mut pauses = 0;
    let response = std::future::poll_fn(|context| {
        let poll = call.as_mut().poll(context);
        pauses += usize::from(poll.is_pending());
        poll
    });
    let response = response.await;
    (response, pauses)
}

#[tokio::test]
async fn a_large_batch_is_read_in_slices() {
    let client = Client::new();
    let create = client.signed("POST", "/acct/Tables", &[], r#"{"TableName":"people"}"#);
    assert_eq!(client.service.call(create).await.status(), 201);
    for (text_bytes, expected) in [(500, 0..=0), (30_000, 20..=30)] {
        let (response, pauses) = insert(&client, text_bytes).await;
        assert_eq!(body(&response).matches("204 No Content").count(), 100);
        assert!(expected.contains(&pauses), "{pauses}");
    }
}
