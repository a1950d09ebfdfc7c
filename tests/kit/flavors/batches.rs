//! Differences of batches.

use harness::raw::Response;

use super::{Subject, code, differences, outcome};

/// Sends changes, each a request line with its body.
async fn send(subject: &Subject, changes: &[(&str, &str)]) -> Response {
    let (address, account) = (subject.client.address, subject.client.key.account());
    let base = format!("http://{address}/{account}");
    let mut body =
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n".to_owned();
    for (line, entity) in changes {
        let (method, path) = line.split_once(' ').unwrap();
        body += "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
        body += &format!("{method} {base}{path} HTTP/1.1\r\nContent-Type: application/json\r\n");
        body += "Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n";
        body += &format!("Prefer: return-no-content\r\n\r\n{entity}\r\n");
    }
    body += "--changeset_1--\r\n--batch_1--\r\n";
    let content_type = ["Content-Type: multipart/mixed; boundary=batch_1"];
    subject.send("POST /$batch", &content_type, &body).await
}

/// The status of the last response in a batch, and its error.
fn inner(response: &Response) -> String {
    if response.status != 202 {
        return format!("all of it {}", outcome(response));
    }
    let status = response.body.split("HTTP/1.1 ").last().unwrap();
    let status = status.split(' ').next().unwrap();
    let code = code("", &response.body);
    format!("{status} {code}").trim_end().to_owned()
}

/// The names of the headers of the last response in a batch.
fn headers(response: &Response) -> Vec<&str> {
    let (_, part) = response.body.rsplit_once("HTTP/1.1 ").unwrap();
    let (head, _) = part.split_once("\r\n\r\n").unwrap();
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(name, _)| name).collect()
}

differences! {
    "`PATCH` in a batch":
    async fn a_patch(subject: &Subject) -> ["204", "all of it 400 InvalidInput", "204"] {
        let patch = ("PATCH /People(PartitionKey='p',RowKey='r')", r#"{"A":2}"#);
        inner(&send(subject, &[patch]).await)
    }

    "A batch for a missing table":
    async fn a_missing_table(subject: &Subject) -> ["404 TableNotFound", "404 ResourceNotFound", "404 TableNotFound"] {
        let insert = ("POST /Missing", r#"{"PartitionKey":"p","RowKey":"r"}"#);
        inner(&send(subject, &[insert]).await)
    }

    "The case of the table's name in a batch":
    async fn the_case_of_a_name(subject: &Subject) -> ["204", "404 ResourceNotFound", "404 TableNotFound"] {
        let insert = ("POST /people", r#"{"PartitionKey":"p","RowKey":"2"}"#);
        inner(&send(subject, &[insert]).await)
    }

    "A batch with changes of several partitions":
    async fn several_partitions(subject: &Subject) -> ["400 CommandsInBatchActOnDifferentPartitions", "400 CommandsInBatchActOnDifferentPartitions", "204"] {
        let insert = |key: &str| format!(r#"{{"PartitionKey":"{key}","RowKey":"r"}}"#);
        let (a, b, stored) = (insert("a"), insert("b"), insert("p"));
        // They are applied together, or not at all.
        let refused = send(subject, &[("POST /People", &*a), ("POST /People", &*stored)]).await;
        assert!(inner(&refused).starts_with('4'), "{refused:?}");
        inner(&send(subject, &[("POST /People", &*a), ("POST /People", &*b)]).await)
    }

    "A batch with the same entity twice":
    async fn an_entity_twice(subject: &Subject) -> ["400 InvalidDuplicateRow", "all of it 400 InvalidDuplicateRow"] {
        let merge = ("MERGE /People(PartitionKey='p',RowKey='r')", r#"{"A":2}"#);
        let response = send(subject, &[merge, merge]).await;
        assert!(response.body.contains(r#""value":"1:The batch request contains"#), "{response:?}");
        inner(&response)
    }

    "A batch of more than 2 MiB":
    async fn a_large_batch(subject: &Subject) -> ["202", "413 RequestBodyTooLarge", "202"] {
        let part = "x".repeat(30 * 1024);
        let entities: Vec<_> = (0..80)
            .map(|row| format!(r#"{{"PartitionKey":"p","RowKey":"{row}","P":"{part}"}}"#))
            .collect();
        let inserts: Vec<_> = entities.iter().map(|entity| ("POST /People", &**entity)).collect();
        outcome(&send(subject, &inserts).await)
    }

    "The line ends in the response to a batch":
    async fn line_ends(subject: &Subject) -> ["CR LF", "LF, in heads CR LF", "CR LF"] {
        let insert = ("POST /People", r#"{"PartitionKey":"p","RowKey":"new"}"#);
        let response = send(subject, &[insert]).await;
        assert_eq!(inner(&response), "204");
        let has = |text: &str| response.body.contains(text);
        assert!(has("HTTP/1.1 204 No Content\r\n"), "{response:?}");
        if has("Content-Transfer-Encoding: binary\n\nHTTP/1.1") && has("--\n--batchresponse") {
            "LF, in heads CR LF"
        } else {
            assert!(has("Content-Transfer-Encoding: binary\r\n\r\nHTTP/1.1"), "{response:?}");
            "CR LF"
        }
        .to_owned()
    }

    "Headers of a response in a batch":
    async fn headers_of_a_part(subject: &Subject) -> [
        "X-Content-Type-Options, Cache-Control, DataServiceVersion, ETag",
        "ETag, Content-Type, Content-ID"
    ] {
        let upsert = ("MERGE /People(PartitionKey='p',RowKey='new')", r#"{"A":2}"#);
        headers(&send(subject, &[upsert]).await).join(", ")
    }

    "Headers of an error in a batch":
    async fn headers_of_a_refused_part(subject: &Subject) -> [
        "X-Content-Type-Options, Cache-Control, Preference-Applied, DataServiceVersion, Content-Type",
        "Content-Type"
    ] {
        let insert = ("POST /People", r#"{"PartitionKey":"p","RowKey":"r"}"#);
        headers(&send(subject, &[insert]).await).join(", ")
    }
}
