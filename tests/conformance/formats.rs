//! Metadata, versions and ids: section 2.

use serde_json::json;

use crate::run::{Suite, holds, refused, same};

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    suite.insert(&table, r#""PartitionKey":"p","RowKey":"r","n":"5","n@odata.type":"Edm.Int64","s":"t""#).await.unwrap();
    let path = format!("/{table}(PartitionKey='p',RowKey='r')");
    for (rule, accept, option, level) in [
        ("nometadata", "application/json;odata=nometadata", "", "nometadata"),
        ("minimal", "application/json;odata=minimalmetadata", "", "minimalmetadata"),
        ("full", "application/json;odata=fullmetadata", "", "fullmetadata"),
        ("blanks", "application/json; odata=nometadata", "", "nometadata"),
        ("JSON alone is minimal", "application/json", "", "minimalmetadata"),
        ("$format comes first", "application/json;odata=nometadata", "?$format=application/json;odata=fullmetadata", "fullmetadata"),
        ("$format percent-encoded", "application/json", "?%24format=application%2Fjson%3Bodata%3Dnometadata", "nometadata"),
        ("the most precise of several", "application/json, application/json;odata=nometadata", "", "nometadata"),
    ] {
        suite
            .rule(&format!("2.5 {rule}"), async |suite| {
                let headers = [format!("Accept: {accept}"), "DataServiceVersion: 3.0".to_owned()];
                let headers: Vec<_> = headers.iter().map(String::as_str).collect();
                let answer = suite.done(&format!("GET {path}{option}"), &headers, "").await?;
                let expected = format!("application/json;odata={level};streaming=true;charset=utf-8");
                same("Content-Type", &answer.header("Content-Type"), &Some(&*expected))?;
                let json = answer.json();
                same("metadata", &json["odata.metadata"].is_string(), &(level != "nometadata"))?;
                same("ETag", &json["odata.etag"].is_string(), &(level != "nometadata"))?;
                same("type", &json["odata.type"].is_string(), &(level == "fullmetadata"))?;
                same("link", &json["odata.editLink"].is_string(), &(level == "fullmetadata"))?;
                same("Int64", &json["n@odata.type"].is_string(), &(level != "nometadata"))?;
                same("Timestamp", &json["Timestamp@odata.type"].is_string(), &(level == "fullmetadata"))?;
                same("String", &json["s@odata.type"].is_string(), &false)?;
                same("key", &json["RowKey@odata.type"].is_string(), &false)
            })
            .await;
    }
    suite
        .rule("2.6 an entity at full metadata", async |suite| {
            let answer = suite.done(&format!("GET {path}"), &["Accept: application/json;odata=fullmetadata"], "").await?;
            let json = answer.json();
            let account = &suite.account;
            same("type", &json["odata.type"], &json!(format!("{}.{table}", account.name)))?;
            same("id", &json["odata.id"], &json!(format!("{}{path}", account.url())))?;
            same("link", &json["odata.editLink"], &json!(path.trim_start_matches('/')))
        })
        .await;
    suite
        .rule("2.4 the headers of every answer", async |suite| {
            let id = "x-ms-client-request-id: 12345-abc";
            let answer = suite.done(&format!("GET {path}"), &[id, "x-ms-version: 2020-12-06"], "").await?;
            same("version", &answer.header("x-ms-version"), &Some("2020-12-06"))?;
            same("client's id", &answer.header("x-ms-client-request-id"), &Some("12345-abc"))?;
            same("Cache-Control", &answer.header("Cache-Control"), &Some("no-cache"))?;
            same("nosniff", &answer.header("X-Content-Type-Options"), &Some("nosniff"))?;
            holds("an id", answer.header("x-ms-request-id").is_some())?;
            holds("a date", answer.header("Date").is_some())
        })
        .await;
    suite
        .rule("0.1 an OData error has its code in the body alone", async |suite| {
            let answer = suite.ask("GET /ConfMissing()", &[], "").await;
            refused(&answer, 404, "TableNotFound")?;
            same("header", &answer.header("x-ms-error-code"), &None::<&str>)
        })
        .await;
    suite
        .rule("8.1 a message ends with the id of the request and the time", async |suite| {
            let answer = suite.ask("GET /ConfMissing()", &[], "").await;
            let message = answer.message();
            let id = answer.header("x-ms-request-id").unwrap_or_default();
            let lines: Vec<_> = message.split('\n').collect();
            same("first", &lines.first(), &Some(&"The table specified does not exist."))?;
            same("second", &lines.get(1), &Some(&&*format!("RequestId:{id}")))?;
            holds("third", lines.get(2).is_some_and(|line| line.starts_with("Time:") && line.ends_with('Z')))
        })
        .await;
    suite
        .rule("11.2 an error is on one line", async |suite| {
            let answer = suite.ask("GET /ConfMissing()", &[], "").await;
            same("lines", &answer.body.trim_end().lines().count(), &1)
        })
        .await;
    for level in ["nometadata", "minimalmetadata", "fullmetadata"] {
        suite
            .choice(&format!("8.1 an error in the format of {level}"), async |suite| {
                let header = format!("Accept: application/json;odata={level}");
                let answer = suite.ask("GET /ConfMissing()", &[&header], "").await;
                let kind = format!("application/json;odata={level};streaming=true;charset=utf-8");
                same("Content-Type", &answer.header("Content-Type"), &Some(&*kind))
            })
            .await;
    }
    suite
        .rule("1.2 the metadata document has the three properties that all entities have", async |suite| {
            let answer = suite.done("GET /$metadata", &["Accept: application/xml"], "").await?;
            for name in ["PartitionKey", "RowKey", "Timestamp"] {
                holds(name, answer.body.contains(&format!("Name=\"{name}\"")))?;
            }
            Ok(())
        })
        .await;
    for version in ["2013-08-15", "2017-11-09", "2019-02-02", "2020-12-06", "2022-11-02", "2026-10-06"] {
        suite
            .choice(&format!("2.1, 11.1 version {version}"), async |suite| {
                let header = format!("x-ms-version: {version}");
                let answer = suite.done(&format!("GET {path}"), &[&header], "").await?;
                same("version", &answer.header("x-ms-version"), &Some(version))
            })
            .await;
    }
    suite
        .refusals_by_choice("", &[
            ("2.1 a malformed version", "GET /Tables", &["x-ms-version: newest"], "", 400, "InvalidHeaderValue"),
            ("2.5 Atom", "GET /Tables", &["Accept: application/atom+xml"], "", 415, "AtomFormatNotSupported"),
            ("2.5 verbose JSON", "GET /Tables", &["Accept: application/json;odata=verbose"], "", 415, "JsonVerboseFormatNotSupported"),
            ("2.5 JSON before there was JSON", "GET /Tables", &["x-ms-version: 2012-02-12", "Accept: application/json"], "", 415, "JsonFormatNotSupported"),
            ("2.3 a checksum of something else", "POST /Tables", &["Content-MD5: AAAAAAAAAAAAAAAAAAAAAA=="], r#"{"TableName":"ConfSum"}"#, 400, "Md5Mismatch"),
        ])
        .await;
}
