//! Entity group transactions.

use serde_json::json;

use crate::client::Response;
use crate::run::{Outcome, Suite, choice, entity_path, holds, refused, rule, same};

/// A change: verb, path below the account, headers and body.
type Change = (&'static str, String, &'static str, String);

fn insert(table: &str, row: &str) -> Change {
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}","a":1}}"#);
    ("POST", format!("/{table}"), "Prefer: return-no-content\r\n", body)
}

fn on(verb: &'static str, table: &str, row: &str, headers: &'static str, body: &str) -> Change {
    (verb, entity_path(table, "p", row), headers, body.to_owned())
}

async fn send(suite: &Suite, changes: &[Change]) -> Response {
    let url = suite.account.url();
    let parts = changes.iter().map(|(verb, path, headers, content)| {
        part("changeset_1", &format!(
            "{verb} {url}{path} HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n\
             Content-Type: application/json\r\n{headers}\r\n{content}"
        ))
    });
    suite.ask("POST /$batch", &[MULTIPART], &batch_of(&parts.collect::<String>())).await
}

/// The statuses of the parts.
fn statuses(response: &Response) -> Vec<u16> {
    let parts = response.body.split("HTTP/1.1 ").skip(1);
    parts.map(|part| part.split(' ').next().unwrap().parse().unwrap()).collect()
}

/// Checks that one change was refused, and that nothing was applied.
fn part_refused(response: &Response, index: usize, status: u16, code: &str) -> Outcome {
    same("outer status", &response.status, &202)?;
    same("statuses", &statuses(response), &vec![status])?;
    let json = response.body.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let error = &json["odata.error"];
    same("code", &error["code"].as_str(), &Some(code))?;
    let message = error["message"]["value"].as_str().unwrap_or_default();
    holds(format!("the message starts with {index}: {message}"), message.starts_with(&format!("{index}:")))
}

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    rule!(suite, "7.3 all kinds of changes, with responses in order", {
        for row in ["delete", "merge", "replace"] {
            suite.insert(&table, &format!(r#""PartitionKey":"p","RowKey":"{row}","a":1,"b":1"#)).await?;
        }
        let response = send(suite, &[
            insert(&table, "new"),
            on("DELETE", &table, "delete", "If-Match: *\r\n", ""),
            on("PATCH", &table, "merge", "If-Match: *\r\n", r#"{"a":2}"#),
            on("PUT", &table, "replace", "If-Match: *\r\n", r#"{"a":2}"#),
            on("MERGE", &table, "upsert", "", r#"{"a":2}"#),
            on("PUT", &table, "upsert2", "", r#"{"a":"}\r\n--c"}"#),
        ])
        .await;
        same("outer status", &response.status, &202)?;
        same("statuses", &statuses(&response), &vec![204; 6])?;
        same("ETags", &response.body.matches("\r\nETag: W/\"").count(), &5)?;
        let outer = response.header("Content-Type").unwrap_or_default();
        holds(outer, outer.starts_with("multipart/mixed; boundary=batchresponse_"))?;
        same("merged", &suite.entity(&table, "p", "merge").await?, &json!({"PartitionKey":"p","RowKey":"merge","a":2,"b":1}))?;
        same("replaced", &suite.entity(&table, "p", "replace").await?, &json!({"PartitionKey":"p","RowKey":"replace","a":2}))?;
        refused(&suite.ask(&format!("GET {}", entity_path(&table, "p", "delete")), &[], "").await, 404, "ResourceNotFound")
    });
    rule!(suite, "7.3 an empty change set", {
        let response = send(suite, &[]).await;
        same("outer status", &response.status, &202)?;
        same("statuses", &statuses(&response).len(), &0)?;
        let sets = response.body.matches("Content-Type: multipart/mixed; boundary=changesetresponse_").count();
        same("change sets", &sets, &1)
    });
    rule!(suite, "7.3 what surrounds the parts, as parsers of SDKs want it", {
        let response = send(suite, &[insert(&table, "framed")]).await;
        let body = &response.body;
        let start = body.split("\r\n").take(3).collect::<Vec<_>>();
        holds(format!("{start:?}"), start[0].starts_with("--batchresponse_"))?;
        holds(format!("{start:?}"), start[1].starts_with("Content-Type: multipart/mixed; boundary=changesetresponse_"))?;
        holds("the end", body.trim_end().ends_with("--"))?;
        same("lines end in CRLF", &body.matches('\n').count(), &body.matches("\r\n").count())?;
        holds("Location", body.contains(&format!("\r\nLocation: {}{}\r\n", suite.account.url(), format_args!("/{table}(PartitionKey='p',RowKey='framed')"))))?;
        holds("DataServiceId", body.contains("\r\nDataServiceId: "))?;
        holds("DataServiceVersion", body.contains("\r\nDataServiceVersion: 3.0;\r\n"))
    });
    rule!(suite, "7.3 content is returned where it is wanted", {
        let (verb, path, _, body) = insert(&table, "content");
        let response = send(suite, &[(verb, path, "Prefer: return-content\r\n", body)]).await;
        same("statuses", &statuses(&response), &vec![201])?;
        holds("the entity", response.body.contains(r#""RowKey":"content""#))
    });
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
        ("a delete without a condition", on("DELETE", &table, "merge", "", ""), 400, "InvalidInput"),
        ("the same insert twice", insert(&table, "first"), 400, "InvalidDuplicateRow"),
        ("a query", ("GET", format!("/{table}()"), "", String::new()), 400, "InvalidInput"),
        ("a read", on("GET", &table, "merge", "", ""), 400, "InvalidInput"),
        ("a table", ("POST", "/Tables".to_owned(), "", r#"{"TableName":"ConfMore"}"#.to_owned()), 400, "InvalidInput"),
        ("a verb of another resource", ("PUT", format!("/{table}"), "", "{}".to_owned()), 405, "MethodNotAllowed"),
        ("a value that is too large", on("PUT", &table, "x", "", &format!(r#"{{"a":"{}"}}"#, "x".repeat(32 * 1024 + 1))), 400, "PropertyValueTooLarge"),
        ("a key with a slash", on("PUT", &table, "a/b", "", "{}"), 400, "OutOfRangeInput"),
    ];
    for (rule, change, status, code) in failures {
        rule!(suite, &format!("7.4 {rule}: the change is named, and nothing happens"), {
            let before = suite.rows(&table, "").await?;
            let later = [insert(&table, "last"), insert(&table, "new"), ("GET", "/".to_owned(), "", String::new())];
            // Later changes are not read, valid or not.
            for later in [&later[..0], &later[..1], &later[1..]] {
                let response = send(suite, &[&[insert(&table, "first"), change.clone()], later].concat()).await;
                part_refused(&response, 1, status, code)?;
                same("rows", &suite.rows(&table, "").await?, &before)?;
            }
            Ok(())
        });
        // What was written all the same must not fail the rules that follow.
        for row in ["first", "last", "x"] {
            suite.ask(&format!("DELETE {}", entity_path(&table, "p", row)), &["If-Match: *"], "").await;
        }
    }
    rule!(suite, "7.2 an entity without properties of its own", {
        let response = send(suite, &[on("PUT", &table, "bare", "", "{}"), insert(&table, "bare2")]).await;
        same("outer status", &response.status, &202)?;
        same("statuses", &statuses(&response), &vec![204; 2])
    });
    choice!(suite, "7.4 the messages of refused changes", {
        for (change, message) in [
            (insert(&table, "new"), "The specified entity already exists."),
            (on("DELETE", &table, "none", "If-Match: *\r\n", ""), "The specified resource does not exist."),
            (on("DELETE", &table, "merge", stale, ""), "The update condition specified in the request was not satisfied."),
            (on("DELETE", &table, "merge", "", ""), "One of the request inputs is not valid."),
            (on("PUT", &table, "first", "", "{}"), "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."),
            (("POST", format!("/{table}"), "", elsewhere.clone()), "All commands in a batch must operate on same entity group."),
            (("PUT", format!("/{table}"), "", "{}".to_owned()), "The requested method is not allowed on the specified resource."),
            (("POST", format!("/{table}"), "", r#"{"PartitionKey":"p"}"#.to_owned()), "The values are not specified for all properties in the entity."),
            (on("PUT", &table, "x", "", r#"{"a-b":1}"#), "The property name is invalid."),
            (on("PUT", &table, "a/b", "", "{}"), "The 'RowKey' parameter of value 'a/b' is out of range."),
        ] {
            let response = send(suite, &[insert(&table, "first"), change]).await;
            holds(&response.body, response.body.contains(&format!(r#""1:{message}\nRequestId:"#)))?;
        }
        Ok(())
    });
    choice!(suite, "7.4 the first change that cannot be applied is named, although a later one is malformed", {
        let malformed = ("POST", format!("/{table}"), "", "{".to_owned());
        part_refused(&send(suite, &[insert(&table, "new"), malformed]).await, 0, 409, "EntityAlreadyExists")
    });
    rule!(suite, "F.2 the error of the only change has no index if the entity is not as it needs it", {
        for (change, status, code) in [
            (on("DELETE", &table, "none", "If-Match: *\r\n", ""), 404, "ResourceNotFound"),
            (on("PUT", &table, "merge", stale, "{}"), 412, "UpdateConditionNotSatisfied"),
        ] {
            let response = send(suite, &[change]).await;
            same("statuses", &statuses(&response), &vec![status])?;
            let message = format!(r#""code":"{code}","message":{{"lang":"en-US","value":"The "#);
            holds(&response.body, response.body.contains(&message))?;
            holds("Cache-Control", response.body.contains("\r\nCache-Control: no-cache\r\n"))?;
        }
        let response = send(suite, &[insert(missing, "x")]).await;
        part_refused(&response, 0, 404, "TableNotFound")?;
        holds("Cache-Control", !response.body.contains("Cache-Control"))?;
        holds("Preference-Applied", !response.body.contains("Preference-Applied"))
    });
    rule!(suite, "F.5 the Content-ID of a change is the first header of its response", {
        let names = ["Content-ID: 7\r\n", "content-id: a b\r\n", "", "Content-ID: 7\r\n"];
        let changes: Vec<_> = names.into_iter().enumerate().map(|(row, name)| on("PUT", &table, &format!("name{row}"), name, "{}")).collect();
        let first = |response: &Response| -> Vec<String> {
            let parts = response.body.split("HTTP/1.1 ").skip(1);
            parts.map(|part| part.lines().nth(1).unwrap_or_default().to_owned()).collect()
        };
        let response = send(suite, &changes).await;
        let expected = ["Content-ID: 7", "Content-ID: a b", "X-Content-Type-Options: nosniff", "Content-ID: 7"];
        same("names", &first(&response), &expected.map(str::to_owned).to_vec())?;
        let refused = on("PUT", &table, "none", "Content-ID: 9\r\nIf-Match: *\r\n", "{}");
        let response = send(suite, &[changes[0].clone(), refused]).await;
        part_refused(&response, 1, 404, "ResourceNotFound")?;
        same("name", &first(&response), &vec!["Content-ID: 9".to_owned()])
    });
    rule!(suite, "7.4 a missing table is the fault of the first change", {
        let response = send(suite, &[insert(missing, "x"), insert(missing, "y")]).await;
        part_refused(&response, 0, 404, "TableNotFound")
    });
    choice!(suite, "7.4 another table", {
        let response = send(suite, &[insert(&table, "first"), insert(missing, "y")]).await;
        part_refused(&response, 1, 400, "CommandsInBatchActOnDifferentPartitions")
    });
    rule!(suite, "7.1 100 changes", {
        let changes: Vec<_> = (0..100).map(|n| insert(&table, &format!("h{n}"))).collect();
        same("statuses", &statuses(&send(suite, &changes).await), &vec![204; 100])
    });
    rule!(suite, "0.1, 7.4 101 changes are refused at 99", {
        let changes: Vec<_> = (0..101).map(|n| insert(&table, &format!("i{n}"))).collect();
        let response = send(suite, &changes).await;
        let message = "99:The batch request operation exceeds the maximum 100 changes per change set.";
        holds(&response.body, response.body.contains(message))?;
        part_refused(&response, 99, 400, "InvalidInput")?;
        same("rows", &suite.rows(&table, "$filter=RowKey%20ge%20'i'%20and%20RowKey%20lt%20'j'").await?.len(), &0)
    });
    rule!(suite, "7.1 a query stands alone", {
        let body = query(&format!("{}{}", suite.account.url(), entity_path(&table, "p", "new")));
        let response = suite.done("POST /$batch", &[MULTIPART], &body).await?;
        same("statuses", &statuses(&response), &vec![200])?;
        holds("the entity", response.body.contains(r#""RowKey":"new""#))
    });
    rule!(suite, "7.2 line feeds alone, and an end without its dashes", {
        let body = format!(
            "--batch_1\nContent-Type: multipart/mixed; boundary=changeset_1\n\n--changeset_1\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\nPUT {}{} HTTP/1.1\ncontent-type: application/json\n\n{{\"n\":1}}\n--changeset_1--\n--batch_1\n",
            suite.account.url(),
            entity_path(&table, "p", "feeds")
        );
        let response = suite.done("POST /$batch", &["Content-Type: multipart/mixed; boundary=batch_1", "Accept: */*"], &body).await?;
        same("statuses", &statuses(&response), &vec![204])
    });
    rule!(suite, "7.2 any boundary", {
        let path = entity_path(&table, "p", "boundary");
        let url = suite.account.url();
        let body = format!("--x'()+_,-./:=?y\r\nContent-Type: multipart/mixed; boundary=z\r\n\r\n--z\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPUT {url}{path} HTTP/1.1\r\ncontent-type: application/json\r\n\r\n{{\"n\":1}}\r\n--z--\r\n--x'()+_,-./:=?y--\r\n");
        let content_type = "Content-Type: multipart/mixed; boundary=\"x'()+_,-./:=?y\"";
        same("statuses", &statuses(&suite.done("POST /$batch", &[content_type], &body).await?), &vec![204])
    });
    for (rule, url) in [("another host", "https://elsewhere.example:1"), ("no host", "")] {
        rule!(suite, &format!("7.2 URLs of {rule}"), {
            let path = format!("{}{}", suite.account.path, entity_path(&table, "p", "hosts"));
            let body = format!("--batch_1\r\nContent-Type: multipart/mixed; boundary=\"changeset_1 1\"\r\n\r\n--changeset_1 1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPUT {url}{path} HTTP/1.1\r\ncontent-type: application/json\r\n\r\n{{\"n\":1}}\r\n--changeset_1 1--\r\n--batch_1--\r\n");
            let response = suite.done("POST /$batch", &["Content-Type: multipart/mixed; boundary=\"batch_1\""], &body).await?;
            same("statuses", &statuses(&response), &vec![204])
        });
    }
    rule!(suite, "7.2 empty versions with a change, as the Go client sends them", {
        let empty = "DataServiceVersion: \r\nx-ms-version: \r\n";
        let (verb, path, _, body) = insert(&table, "versions");
        let changes = [(verb, path, empty, body), on("PATCH", &table, "versions2", empty, r#"{"a":2}"#)];
        same("statuses", &statuses(&send(suite, &changes).await), &vec![201, 204])
    });
    rule!(suite, "7.2 keys and values that look like framing", {
        let row = "x',RowKey='y";
        let response = send(suite, &[on("PUT", &table, row, "", r#"{"a":"}{%7D --changeset_1 \r\n--batch_1-- HTTP/1.1"}"#)]).await;
        same("statuses", &statuses(&response), &vec![204])?;
        same("value", &suite.entity(&table, "p", row).await?["a"], &json!("}{%7D --changeset_1 \r\n--batch_1-- HTTP/1.1"))
    });
    rule!(suite, "0.1, 7.5 a batch of more than 4 MiB", {
        let filler = "x".repeat(4 * 1024 * 1024);
        let response = send(suite, &[on("PUT", &table, "big", "", &format!("{{\"a\":\"{filler}\"}}"))]).await;
        refused(&response, 413, "RequestBodyTooLarge")
    });
    queries(suite, &table).await;
    framing(suite, &table).await;
    access(suite, &table).await;
}

/// A batch of one change set with these parts.
pub(crate) fn batch_of(parts: &str) -> String {
    change_set(parts) + "--batch_1--\r\n"
}

/// A batch of one query.
fn query(target: &str) -> String {
    part("batch_1", &format!("GET {target} HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\n\r\n")) + "--batch_1--\r\n"
}

/// The framing of a change set with these parts, without its end.
fn change_set(parts: &str) -> String {
    format!("--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n{parts}--changeset_1--\r\n\r\n")
}

pub(crate) fn part(boundary: &str, request: &str) -> String {
    format!("--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{request}\r\n")
}

pub(crate) const MULTIPART: &str = "Content-Type: multipart/mixed; boundary=batch_1";

/// Queries in a batch.
async fn queries(suite: &mut Suite, table: &str) {
    choice!(suite, "7.1 a query in a batch has pages and errors", {
        let url = suite.account.url();
        let body = query(&format!("{url}/{table}()?$filter=RowKey%20ge%20'h1'&$top=1&$select=RowKey"));
        let response = suite.done("POST /$batch", &[MULTIPART], &body).await?;
        same("statuses", &statuses(&response), &[200])?;
        holds("the page", response.body.contains(r#"{"value":[{"RowKey":"h1"}]}"#))?;
        holds("the token", response.body.contains("\r\nx-ms-continuation-NextRowKey: 1!4!"))?;
        same("change sets", &response.body.contains("changesetresponse"), &false)?;
        for (target, status, code) in [
            (&*format!("/{table}(PartitionKey='p',RowKey='none')"), 404, "ResourceNotFound"),
            ("/ConfMissing()", 404, "TableNotFound"),
            (&format!("/{table}()?$filter=a%20b"), 400, "InvalidInput"),
            (&format!("/{table}()?$orderby=a"), 501, "NotImplemented"),
        ] {
            let response = suite.done("POST /$batch", &[MULTIPART], &query(target)).await?;
            same(target, &statuses(&response), &[status])?;
            holds(&response.body, response.body.contains(&format!(r#"{{"odata.error":{{"code":"{code}""#)))?;
        }
        Ok(())
    });
}

/// The parts around the changes, and the headers of the batch.
async fn framing(suite: &mut Suite, table: &str) {
    let put = part("changeset_1", &format!("PUT /{table}(PartitionKey='p',RowKey='framing') HTTP/1.1\r\n\r\n"));
    let whole = batch_of(&put);
    suite.refusals_by_choice("", &[
        ("7.5 no boundary", "POST /$batch", &["Content-Type: multipart/mixed"], &whole, 400, "InvalidInput"),
        ("7.5 another boundary", "POST /$batch", &["Content-Type: multipart/mixed; boundary=other"], &whole, 400, "InvalidInput"),
        ("7.5 no framing", "POST /$batch", &[MULTIPART], "nothing", 400, "InvalidInput"),
        ("7.5 no content", "POST /$batch", &[MULTIPART], "", 400, "InvalidInput"),
        ("7.5 no part", "POST /$batch", &[MULTIPART], "--batch_1--", 400, "InvalidInput"),
        ("7.5 a part that is no request", "POST /$batch", &[MULTIPART], &batch_of(&part("changeset_1", "nothing")), 400, "InvalidInput"),
        ("7.5 a batch without its end", "POST /$batch", &[MULTIPART], &change_set(&put), 400, "InvalidInput"),
        ("7.5 a change set without its end", "POST /$batch", &[MULTIPART], &whole.replace("--changeset_1--", ""), 400, "InvalidInput"),
        ("7.5 another type", "POST /$batch", &["Content-Type: application/json"], "{}", 415, "MediaTypeNotSupported"),
        ("7.5 another verb", "GET /$batch", &[], "", 405, "MethodNotAllowed"),
        ("7.5 another verb with a batch", "PUT /$batch", &[MULTIPART], &whole, 405, "MethodNotAllowed"),
        ("7.5 nothing of a malformed batch is applied", &format!("GET /{table}(PartitionKey='p',RowKey='framing')"), &[], "", 404, "ResourceNotFound"),
    ]).await;
    choice!(suite, "7.1 of two change sets the second is refused", {
        let second = change_set(&put.replace("framing", "second"));
        let response = suite.done("POST /$batch", &[MULTIPART], &(change_set(&put) + &second + "--batch_1--\r\n")).await?;
        same("statuses", &statuses(&response), &[204, 400])?;
        suite.entity(table, "p", "framing").await?;
        suite.expect(&format!("GET {}", entity_path(table, "p", "second")), &[], "", (404, "ResourceNotFound")).await
    });
}

/// The credential of a batch, and what it allows.
async fn access(suite: &mut Suite, table: &str) {
    let elsewhere = r#"{"PartitionKey":"q","RowKey":"access"}"#;
    let json = "Content-Type: application/json\r\n";
    let insert = part("changeset_1", &format!("POST /{table} HTTP/1.1\r\n{json}\r\n{{\"PartitionKey\":\"p\",\"RowKey\":\"access\"}}"));
    let change = |verb: &str, row: &str, headers: &str| {
        part("changeset_1", &format!("{verb} /{table}(PartitionKey='p',RowKey='{row}') HTTP/1.1\r\n{headers}\r\n"))
    };
    let all = change_set(&[insert, change("PUT", "new", "If-Match: *\r\n"), change("PUT", "merge", ""), change("DELETE", "none", "If-Match: *\r\n")].concat());
    let upsert = change_set(&change("MERGE", "new", ""));
    let outside = change_set(&part("changeset_1", &format!("POST /{table} HTTP/1.1\r\n{json}\r\n{elsewhere}")));
    let query = part("batch_1", &format!("GET /{table}() HTTP/1.1\r\n\r\n"));
    let read = part("batch_1", &format!("GET /{table}(PartitionKey='p',RowKey='h1') HTTP/1.1\r\n\r\n"));
    let time = [("sv", "2019-02-02"), ("se", "2099-01-01T00:00:00Z")];
    let tables = |permissions| [("tn", table), ("sp", permissions)];
    let account = |types, permissions| [("ss", "t"), ("srt", types), ("sp", permissions)];
    let range = [("tn", table), ("sp", "raud"), ("spk", "p"), ("srk", "new"), ("epk", "p")];
    let permission = "AuthorizationPermissionMismatch";
    for (rule, fields, body, status, code) in [
        ("all changes without deletes", &tables("rau")[..], &all, 403, permission),
        ("all changes without updates", &tables("rad"), &all, 403, permission),
        ("all changes without inserts", &tables("rud"), &all, 403, permission),
        ("an upsert without updates", &tables("ra"), &upsert, 403, permission),
        ("an upsert without inserts", &tables("ru"), &upsert, 403, permission),
        ("all changes by an account's", &account("o", "au"), &all, 403, permission),
        ("an upsert by an account's", &account("o", "a"), &upsert, 403, permission),
        ("another type of resource", &account("c", "raud"), &upsert, 403, "AuthorizationResourceTypeMismatch"),
        ("another table", &[("tn", "ConfMissing"), ("sp", "raud")], &upsert, 403, "AuthorizationFailure"),
        ("keys out of range", &range, &all, 403, "AuthorizationFailure"),
        ("a key in a body out of range", &range, &outside, 403, "AuthorizationFailure"),
        ("a query without reads", &tables("aud"), &query, 403, permission),
        ("a read out of range", &range, &read, 202, "404"),
        ("a query in a range", &range, &query, 202, "200"),
        ("an upsert", &tables("au"), &upsert, 202, "204"),
        ("an upsert in a range", &range, &upsert, 202, "204"),
        ("an upsert by an account's that has both", &account("o", "au"), &upsert, 202, "204"),
        ("all changes", &tables("raud"), &all, 202, "404"),
    ] {
        choice!(suite, &format!("3.9, 7.5 a batch by a signature: {rule}"), {
            let fields = [fields, &time].concat();
            let is_account = fields[0].0 == "ss";
            let sas = if is_account { suite.account_sas(&fields) } else { suite.table_sas(&fields) };
            let before = suite.ask(&format!("GET /{table}()"), &[], "").await.body;
            let response = suite.ask_with(&sas, "POST /$batch", &[MULTIPART], &format!("{body}--batch_1--\r\n")).await;
            if status == 403 {
                refused(&response, status, code)?;
                return same("entities", &suite.ask(&format!("GET /{table}()"), &[], "").await.body, &before);
            }
            same("statuses", &statuses(&response), &[code.parse::<u16>().unwrap()])
        });
    }
    choice!(suite, "7.5 the batch alone is authenticated", {
        let without = suite.account.send(crate::client::Credential::None, "POST /$batch", &[MULTIPART], &all).await;
        same("without a credential", &without.status, &403)?;
        let headers = "Authorization: SharedKey unknown:d3Jvbmc=\r\nx-ms-date: x\r\n";
        let inner = batch_of(&part("changeset_1", &format!("PUT /{table}(PartitionKey='p',RowKey='inner')?sv=1&sig=wrong HTTP/1.1\r\n{headers}\r\n")));
        same("statuses", &statuses(&suite.done("POST /$batch", &[MULTIPART], &inner).await?), &[204])?;
        let other = batch_of(&part("changeset_1", &format!("POST http://h/unknown/{table} HTTP/1.1\r\n{json}\r\n{elsewhere}")));
        let response = suite.done("POST /$batch", &[MULTIPART], &other).await?;
        part_refused(&response, 0, 400, "InvalidUri")
    });
}
