//! Entity group transactions.

use serde_json::json;

use crate::client::Answer;
use crate::run::{Outcome, Suite, entity_path, holds, refused, same};

/// A change: verb, path below the account, headers and body.
type Change = (&'static str, String, &'static str, String);

fn insert(table: &str, row: &str) -> Change {
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}","a":1}}"#);
    ("POST", format!("/{table}"), "Prefer: return-no-content\r\n", body)
}

fn on(verb: &'static str, table: &str, row: &str, headers: &'static str, body: &str) -> Change {
    (verb, entity_path(table, "p", row), headers, body.to_owned())
}

async fn send(suite: &Suite, changes: &[Change]) -> Answer {
    let mut body = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n".to_owned();
    for (verb, path, headers, content) in changes {
        let url = suite.account.url();
        body += &format!(
            "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             {verb} {url}{path} HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n\
             Content-Type: application/json\r\n{headers}\r\n{content}\r\n"
        );
    }
    body += "--changeset_1--\r\n\r\n--batch_1--\r\n";
    suite.ask("POST /$batch", &["Content-Type: multipart/mixed; boundary=batch_1"], &body).await
}

/// The statuses of the parts.
fn statuses(answer: &Answer) -> Vec<u16> {
    let parts = answer.body.split("HTTP/1.1 ").skip(1);
    parts.map(|part| part.split(' ').next().unwrap().parse().unwrap()).collect()
}

/// Whether one change was refused, and nothing happened.
fn part_refused(answer: &Answer, index: usize, status: u16, code: &str) -> Outcome {
    same("outer status", &answer.status, &202)?;
    same("statuses", &statuses(answer), &vec![status])?;
    let json = answer.body.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let error = &json["odata.error"];
    same("code", &error["code"].as_str(), &Some(code))?;
    let message = error["message"]["value"].as_str().unwrap_or_default();
    holds(format!("the message starts with {index}: {message}"), message.starts_with(&format!("{index}:")))
}

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    suite
        .rule("7.3 all kinds of changes, answered in order", async |suite| {
            for row in ["delete", "merge", "replace"] {
                suite.insert(&table, &format!(r#""PartitionKey":"p","RowKey":"{row}","a":1,"b":1"#)).await?;
            }
            let answer = send(suite, &[
                insert(&table, "new"),
                on("DELETE", &table, "delete", "If-Match: *\r\n", ""),
                on("PATCH", &table, "merge", "If-Match: *\r\n", r#"{"a":2}"#),
                on("PUT", &table, "replace", "If-Match: *\r\n", r#"{"a":2}"#),
                on("MERGE", &table, "upsert", "", r#"{"a":2}"#),
                on("PUT", &table, "upsert2", "", r#"{"a":"}\r\n--c"}"#),
            ])
            .await;
            same("outer status", &answer.status, &202)?;
            same("statuses", &statuses(&answer), &vec![204; 6])?;
            same("ETags", &answer.body.matches("\r\nETag: W/\"").count(), &5)?;
            let outer = answer.header("Content-Type").unwrap_or_default();
            holds(outer, outer.starts_with("multipart/mixed; boundary=batchresponse_"))?;
            same("merged", &suite.entity(&table, "p", "merge").await?, &json!({"PartitionKey":"p","RowKey":"merge","a":2,"b":1}))?;
            same("replaced", &suite.entity(&table, "p", "replace").await?, &json!({"PartitionKey":"p","RowKey":"replace","a":2}))?;
            refused(&suite.ask(&format!("GET {}", entity_path(&table, "p", "delete")), &[], "").await, 404, "ResourceNotFound")
        })
        .await;
    suite
        .rule("7.3 an empty change set", async |suite| {
            let answer = send(suite, &[]).await;
            same("outer status", &answer.status, &202)?;
            same("statuses", &statuses(&answer).len(), &0)?;
            let sets = answer.body.matches("Content-Type: multipart/mixed; boundary=changesetresponse_").count();
            same("change sets", &sets, &1)
        })
        .await;
    suite
        .rule("7.3 what surrounds the parts, as parsers of SDKs want it", async |suite| {
            let answer = send(suite, &[insert(&table, "framed")]).await;
            let body = &answer.body;
            let start = body.split("\r\n").take(3).collect::<Vec<_>>();
            holds(format!("{start:?}"), start[0].starts_with("--batchresponse_"))?;
            holds(format!("{start:?}"), start[1].starts_with("Content-Type: multipart/mixed; boundary=changesetresponse_"))?;
            holds("the end", body.trim_end().ends_with("--"))?;
            same("lines end in CRLF", &body.matches('\n').count(), &body.matches("\r\n").count())?;
            holds("Location", body.contains(&format!("\r\nLocation: {}{}\r\n", suite.account.url(), format_args!("/{table}(PartitionKey='p',RowKey='framed')"))))?;
            holds("DataServiceId", body.contains("\r\nDataServiceId: "))?;
            holds("DataServiceVersion", body.contains("\r\nDataServiceVersion: 3.0;\r\n"))
        })
        .await;
    suite
        .rule("7.3 content is returned where it is wanted", async |suite| {
            let (verb, path, _, body) = insert(&table, "content");
            let answer = send(suite, &[(verb, path, "Prefer: return-content\r\n", body)]).await;
            same("statuses", &statuses(&answer), &vec![201])?;
            holds("the entity", answer.body.contains(r#""RowKey":"content""#))
        })
        .await;
    let stale = "If-Match: W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"\r\n";
    let elsewhere = r#"{"PartitionKey":"q","RowKey":"x"}"#.to_owned();
    let missing = "ConfMissing";
    let failures: Vec<(&str, Change, u16, &str)> = vec![
        ("an insert of what is there", insert(&table, "new"), 409, "EntityAlreadyExists"),
        ("a stale version", on("PUT", &table, "merge", stale, r#"{"n":1}"#), 412, "UpdateConditionNotSatisfied"),
        ("a merge of a stale version", on("MERGE", &table, "merge", stale, r#"{"n":1}"#), 412, "UpdateConditionNotSatisfied"),
        ("a delete of a stale version", on("DELETE", &table, "merge", stale, ""), 412, "UpdateConditionNotSatisfied"),
        ("a delete of a missing entity", on("DELETE", &table, "none", "If-Match: *\r\n", ""), 404, "ResourceNotFound"),
        ("an update of a missing entity", on("PUT", &table, "none", "If-Match: *\r\n", r#"{"n":1}"#), 404, "ResourceNotFound"),
        ("the same entity twice", on("PUT", &table, "first", "", r#"{"n":1}"#), 400, "InvalidDuplicateRow"),
        ("another partition", ("POST", format!("/{table}"), "", elsewhere.clone()), 400, "CommandsInBatchActOnDifferentPartitions"),
        ("a malformed body", ("POST", format!("/{table}"), "", "{".to_owned()), 400, "InvalidInput"),
        ("an invalid property name", on("PUT", &table, "x", "", r#"{"1a":1}"#), 400, "PropertyNameInvalid"),
        ("a missing RowKey", ("POST", format!("/{table}"), "", r#"{"PartitionKey":"p"}"#.to_owned()), 400, "PropertiesNeedValue"),
        ("a malformed ETag", on("PUT", &table, "merge", "If-Match: test\r\n", r#"{"n":1}"#), 400, "InvalidInput"),
    ];
    for (rule, change, status, code) in failures {
        suite
            .rule(&format!("7.4 {rule}: the change is named, and nothing happens"), async |suite| {
                let before = suite.rows(&table, "").await?;
                let answer = send(suite, &[insert(&table, "first"), change, insert(&table, "last")]).await;
                part_refused(&answer, 1, status, code)?;
                same("rows", &suite.rows(&table, "").await?, &before)
            })
            .await;
        // What was written all the same must not fail the rules that follow.
        for row in ["first", "last", "x"] {
            let line = format!("DELETE {}", entity_path(&table, "p", row));
            suite.ask(&line, &["If-Match: *"], "").await;
        }
    }
    suite
        .rule("7.2 an entity without properties of its own", async |suite| {
            let answer = send(suite, &[on("PUT", &table, "bare", "", "{}"), insert(&table, "bare2")]).await;
            same("outer status", &answer.status, &202)?;
            same("statuses", &statuses(&answer), &vec![204; 2])
        })
        .await;
    suite
        .rule("7.4 a missing table is the fault of the first change", async |suite| {
            let answer = send(suite, &[insert(missing, "x"), insert(missing, "y")]).await;
            part_refused(&answer, 0, 404, "TableNotFound")
        })
        .await;
    suite
        .choice("7.4 another table", async |suite| {
            let answer = send(suite, &[insert(&table, "first"), insert(missing, "y")]).await;
            part_refused(&answer, 1, 400, "CommandsInBatchActOnDifferentPartitions")
        })
        .await;
    suite
        .rule("7.1 100 changes", async |suite| {
            let changes: Vec<_> = (0..100).map(|n| insert(&table, &format!("h{n}"))).collect();
            let answer = send(suite, &changes).await;
            same("statuses", &statuses(&answer), &vec![204; 100])
        })
        .await;
    suite
        .rule("0.1, 7.4 101 changes are refused at 99", async |suite| {
            let changes: Vec<_> = (0..101).map(|n| insert(&table, &format!("i{n}"))).collect();
            part_refused(&send(suite, &changes).await, 99, 400, "InvalidInput")
        })
        .await;
    suite
        .rule("7.1 a query stands alone", async |suite| {
            let body = format!(
                "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nGET {}{} HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\n\r\n\r\n--batch_1--\r\n",
                suite.account.url(),
                entity_path(&table, "p", "new")
            );
            let answer = suite.done("POST /$batch", &["Content-Type: multipart/mixed; boundary=batch_1"], &body).await?;
            same("statuses", &statuses(&answer), &vec![200])?;
            holds("the entity", answer.body.contains(r#""RowKey":"new""#))
        })
        .await;
    suite
        .rule("7.2 line feeds alone, and an end without its dashes", async |suite| {
            let body = format!(
                "--batch_1\nContent-Type: multipart/mixed; boundary=changeset_1\n\n--changeset_1\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\nPUT {}{} HTTP/1.1\ncontent-type: application/json\n\n{{\"n\":1}}\n--changeset_1--\n--batch_1\n",
                suite.account.url(),
                entity_path(&table, "p", "feeds")
            );
            let answer = suite.done("POST /$batch", &["Content-Type: multipart/mixed; boundary=batch_1", "Accept: */*"], &body).await?;
            same("statuses", &statuses(&answer), &vec![204])
        })
        .await;
    suite
        .rule("7.2 any boundary", async |suite| {
            let path = entity_path(&table, "p", "boundary");
            let url = suite.account.url();
            let body = format!("--x'()+_,-./:=?y\r\nContent-Type: multipart/mixed; boundary=z\r\n\r\n--z\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPUT {url}{path} HTTP/1.1\r\ncontent-type: application/json\r\n\r\n{{\"n\":1}}\r\n--z--\r\n--x'()+_,-./:=?y--\r\n");
            let content_type = "Content-Type: multipart/mixed; boundary=\"x'()+_,-./:=?y\"";
            let answer = suite.done("POST /$batch", &[content_type], &body).await?;
            same("statuses", &statuses(&answer), &vec![204])
        })
        .await;
    for (rule, url) in [("another host", "https://elsewhere.example:1"), ("no host", "")] {
        suite
            .rule(&format!("7.2 URLs of {rule}"), async |suite| {
                let path = format!("{}{}", suite.account.path, entity_path(&table, "p", "hosts"));
                let body = format!("--batch_1\r\nContent-Type: multipart/mixed; boundary=\"changeset_1 1\"\r\n\r\n--changeset_1 1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPUT {url}{path} HTTP/1.1\r\ncontent-type: application/json\r\n\r\n{{\"n\":1}}\r\n--changeset_1 1--\r\n--batch_1--\r\n");
                let answer = suite.done("POST /$batch", &["Content-Type: multipart/mixed; boundary=\"batch_1\""], &body).await?;
                same("statuses", &statuses(&answer), &vec![204])
            })
            .await;
    }
    suite
        .rule("7.2 keys and values that look like framing", async |suite| {
            let row = "x',RowKey='y";
            let answer = send(suite, &[on("PUT", &table, row, "", r#"{"a":"}{%7D --changeset_1 \r\n--batch_1-- HTTP/1.1"}"#)]).await;
            same("statuses", &statuses(&answer), &vec![204])?;
            same("value", &suite.entity(&table, "p", row).await?["a"], &json!("}{%7D --changeset_1 \r\n--batch_1-- HTTP/1.1"))
        })
        .await;
    suite
        .rule("0.1, 7.5 a batch of more than 4 MiB", async |suite| {
            let filler = "x".repeat(4 * 1024 * 1024);
            let answer = send(suite, &[on("PUT", &table, "big", "", &format!("{{\"a\":\"{filler}\"}}"))]).await;
            refused(&answer, 413, "RequestBodyTooLarge")
        })
        .await;
    suite
        .refusals_by_choice("", &[
            ("7.5 no boundary", "POST /$batch", &["Content-Type: multipart/mixed"], "--batch_1--", 400, "InvalidInput"),
            ("7.5 no framing", "POST /$batch", &["Content-Type: multipart/mixed; boundary=batch_1"], "nothing", 400, "InvalidInput"),
            ("7.5 another type", "POST /$batch", &["Content-Type: application/json"], "{}", 415, "MediaTypeNotSupported"),
            ("7.5 another verb", "GET /$batch", &[], "", 405, "MethodNotAllowed"),
        ])
        .await;
}
