//! A full disk, simulated by a limit on the length of files, which every user may set for a process.

use std::collections::BTreeSet;

use crate::process::{JSON, Server};

/// The journal has a few KiB when the data directory is reopened, and soon reaches this limit.
const LIMIT_KIB: u64 = 600;

#[tokio::test]
async fn a_full_disk_ends_writes_but_not_reads() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path()).await;
    let created = server.send("POST /Tables", &[JSON], r#"{"TableName":"people"}"#);
    assert_eq!(created.await.unwrap().status, 201);
    server.kill();
    server.wait_until_dead().await;

    let server = Server::start_with_file_limit(directory.path(), LIMIT_KIB).await;
    let filler = "x".repeat(3_000);
    let put = async |number: u32| {
        let path = format!("/people(PartitionKey='p',RowKey='{number}')");
        let noise: String = (0..1_000).map(|_| fastrand::alphanumeric()).collect();
        let body = format!(r#"{{"filler":"{filler}","noise":"{noise}"}}"#);
        server
            .send(&format!("PUT {path}"), &[JSON], &body)
            .await
            .unwrap()
    };
    let mut acknowledged = BTreeSet::new();
    let refused = loop {
        let number = u32::try_from(acknowledged.len()).unwrap();
        assert!(number < 10_000, "the limit does not hold");
        let response = put(number).await;
        if response.status != 204 {
            break (number, response);
        }
        acknowledged.insert(number.to_string());
    };
    assert!(acknowledged.len() > 10);
    let (number, response) = refused;
    assert_eq!(response.status, 500, "{response:?}");
    assert!(response.body.contains("InternalError"), "{response:?}");
    // Nothing is written any more, since the effect of the failed write on the files is unknown.
    for _ in 0..3 {
        assert_eq!(put(number).await.status, 500);
    }
    let delete = server.send(
        "DELETE /people(PartitionKey='p',RowKey='0')",
        &["If-Match: *"],
        "",
    );
    assert_eq!(delete.await.unwrap().status, 500);
    // Everything can be read.
    assert_eq!(rows(&server).await, acknowledged);
    server.kill();
    server.wait_until_dead().await;

    // Without the limit, the directory has the same entities and accepts writes again.
    let server = Server::start(directory.path()).await;
    let found = rows(&server).await;
    let mut with_refused = acknowledged.clone();
    with_refused.insert(number.to_string());
    assert!(found == acknowledged || found == with_refused);
    let line = "PUT /people(PartitionKey='p',RowKey='more')";
    let written = server.send(line, &[JSON], "{}").await.unwrap();
    assert_eq!(written.status, 204);
}

async fn rows(server: &Server) -> BTreeSet<String> {
    let response = server
        .send("GET /people()?$select=RowKey", &[], "")
        .await
        .unwrap();
    assert_eq!(response.status, 200, "{response:?}");
    let page: serde_json::Value = serde_json::from_str(&response.body).unwrap();
    let rows = page["value"].as_array().unwrap().iter();
    rows.map(|row| row["RowKey"].as_str().unwrap().to_owned())
        .collect()
}
