//! Insert Entity.

use crate::run::{Suite, refused, rule, same};

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    rule!(suite, "4.10 an insert returns 201 with the entity, its ETag and URL", {
        let body = r#"{"PartitionKey":"p","RowKey":"1","age":39}"#;
        let response = suite.ask(&format!("POST /{table}"), &[], body).await;
        same("status", &response.status, &201)?;
        let url = format!("{}/{table}(PartitionKey='p',RowKey='1')", suite.account.url());
        same("Location", &response.header("Location"), &Some(&*url))?;
        same("applied", &response.header("Preference-Applied"), &None::<&str>)?;
        let json = response.json();
        same("age", &json["age"], &serde_json::json!(39))?;
        same("ETag", &json["odata.etag"].as_str(), &response.header("ETag"))?;
        let timestamp = json["Timestamp"].as_str().ok_or("no Timestamp")?;
        let etag = format!("W/\"datetime'{}'\"", timestamp.replace(':', "%3A"));
        same("4.13 the ETag is the Timestamp", &response.header("ETag"), &Some(&*etag))?;
        let fraction = timestamp.trim_end_matches('Z').split('.').nth(1).unwrap_or("1");
        same("4.13 has trailing zeros", &fraction.ends_with('0'), &false)
    });
    rule!(suite, "4.10 Prefer: return-no-content returns 204 with ETag and URL twice", {
        let body = r#"{"PartitionKey":"p","RowKey":"2"}"#;
        let response = suite.ask(&format!("POST /{table}"), &["Prefer: return-no-content"], body).await;
        same("status", &response.status, &204)?;
        same("body", &response.body, &String::new())?;
        same("applied", &response.header("Preference-Applied"), &Some("return-no-content"))?;
        same("DataServiceId", &response.header("DataServiceId"), &response.header("Location"))?;
        same("has an ETag", &response.header("ETag").is_some(), &true)
    });
    rule!(suite, "4.10 Prefer: return-content is applied", {
        let body = r#"{"PartitionKey":"p","RowKey":"3"}"#;
        let response = suite.ask(&format!("POST /{table}"), &["Prefer: return-content"], body).await;
        same("status", &response.status, &201)?;
        same("applied", &response.header("Preference-Applied"), &Some("return-content"))
    });
    rule!(suite, "1.2 the name of the table may be in other letters", {
        let line = format!("POST /{}", table.to_uppercase());
        let body = r#"{"PartitionKey":"p","RowKey":"4"}"#;
        suite.done(&line, &[], body).await?;
        suite.entity(&table, "p", "4").await.map(drop)
    });
    rule!(suite, "5.3 members of metadata, nulls and Timestamp are not stored", {
        let body = r#""PartitionKey":"p","RowKey":"5","PartitionKey@odata.type":"Edm.String","odata.etag":"W/\"x\"","odata.metadata":"m","odata.type":"t","odata.id":"i","odata.editLink":"e","Timestamp":null,"ETag":null,"none":null,"timestamp":"mine","a":1"#;
        suite.insert(&table, body).await?;
        let expected = serde_json::json!({"PartitionKey":"p","RowKey":"5","timestamp":"mine","a":1});
        same("entity", &suite.entity(&table, "p", "5").await?, &expected)
    });
    rule!(suite, "5.3 a Timestamp of the client's is ignored", {
        let body = r#""PartitionKey":"p","RowKey":"6","Timestamp":"2001-01-01T00:00:00Z","Timestamp@odata.type":"Edm.DateTime""#;
        suite.insert(&table, body).await?;
        let response = suite.done(&format!("GET /{table}(PartitionKey='p',RowKey='6')"), &[], "").await?;
        let time = response.json()["Timestamp"].as_str().unwrap_or_default().to_owned();
        same("is the client's", &time.starts_with("2001"), &false)
    });
    rule!(suite, "5.5 names of properties that differ in case are different ones", {
        suite.insert(&table, r#""PartitionKey":"p","RowKey":"7","ETag":"1","etag":"2","Etag":"3""#).await?;
        let entity = suite.entity(&table, "p", "7").await?;
        let found = ["ETag", "etag", "Etag"].map(|name| entity[name].as_str().unwrap_or("-").to_owned());
        same("values", &found, &["1", "2", "3"])
    });
    rule!(suite, "0.1 an annotation may follow its value", {
        suite.insert(&table, r#""PartitionKey":"p","RowKey":"8","n":"5","n@odata.type":"Edm.Int64""#).await?;
        let line = format!("GET /{table}(PartitionKey='p',RowKey='8')");
        same("type", &suite.done(&line, &[], "").await?.json()["n@odata.type"].as_str(), &Some("Edm.Int64"))
    });
    rule!(suite, "2.5 keys in URLs keep quotes, doubled, and escape all else", {
        let body = r#"{"PartitionKey":"A'aaa\"_bbbb2","RowKey":"x"}"#;
        let response = suite.ask(&format!("POST /{table}"), &[], body).await;
        let url = format!("{}/{table}(PartitionKey='A''aaa%22_bbbb2',RowKey='x')", suite.account.url());
        same("Location", &response.header("Location"), &Some(&*url))
    });
    rule!(suite, "4.10 an entity is inserted once", {
        let body = r#"{"PartitionKey":"p","RowKey":"1"}"#;
        refused(&suite.ask(&format!("POST /{table}"), &[], body).await, 409, "EntityAlreadyExists")?;
        same("kept", &suite.entity(&table, "p", "1").await?["age"], &serde_json::json!(39))
    });
    suite.refusals(&table, &[
        ("0.1 an insert in a missing table", "POST /ConfMissing", &[], r#"{"PartitionKey":"p","RowKey":"r"}"#, 404, "TableNotFound"),
        ("4.10 a missing RowKey", "POST /TABLE", &[], r#"{"PartitionKey":"p"}"#, 400, "PropertiesNeedValue"),
        ("4.10 a missing PartitionKey", "POST /TABLE", &[], r#"{"RowKey":"p"}"#, 400, "PropertiesNeedValue"),
        ("4.10 a null RowKey", "POST /TABLE", &[], r#"{"PartitionKey":"p","RowKey":null}"#, 400, "PropertiesNeedValue"),
        ("5.1 a key that is a number", "POST /TABLE", &[], r#"{"PartitionKey":1,"RowKey":"r"}"#, 400, "InvalidInput"),
        ("5.1 a key with another type", "POST /TABLE", &[], r#"{"PartitionKey":"2020-01-01T00:00:00Z","PartitionKey@odata.type":"Edm.DateTime","RowKey":"r"}"#, 400, "InvalidInput"),
        ("5.1 a body that is no JSON", "POST /TABLE", &[], "{", 400, "InvalidInput"),
        ("5.1 a body that is no object", "POST /TABLE", &[], "[]", 400, "InvalidInput"),
        ("5.1 a nested value", "POST /TABLE", &[], r#"{"PartitionKey":"p","RowKey":"x","a":{"b":1}}"#, 400, "InvalidInput"),
        ("5.1 a list", "POST /TABLE", &[], r#"{"PartitionKey":"p","RowKey":"x","a":[1]}"#, 400, "InvalidInput"),
        ("5.1 a bad table name in the URL", "POST /a_b", &[], r#"{"PartitionKey":"p","RowKey":"x"}"#, 400, "InvalidResourceName"),
        ("5.1 a short table name in the URL", "POST /ab", &[], r#"{"PartitionKey":"p","RowKey":"x"}"#, 400, "OutOfRangeInput"),
    ]).await;
    suite.refusals_by_choice(&table, &[
        ("5.1 a property given twice", "POST /TABLE", &[], r#"{"PartitionKey":"p","RowKey":"x","a":1,"a":2}"#, 400, "DuplicatePropertiesSpecified"),
        ("4.10 the body is read before the table is looked up", "POST /ConfMissing", &[], "{", 400, "InvalidInput"),
        ("4.10 the table is looked up before the keys", "POST /ConfMissing", &[], "{}", 404, "TableNotFound"),
        ("5.1 a key in the URL with #", "GET /TABLE(PartitionKey='p',RowKey='a%23b')", &[], "", 400, "OutOfRangeInput"),
        ("5.1 a key given twice", "POST /TABLE", &[], r#"{"PartitionKey":"p","RowKey":"x","RowKey":"y"}"#, 400, "DuplicatePropertiesSpecified"),
        ("5.1 a body of another kind", "POST /TABLE", &["Content-Type: text/plain"], r#"{"PartitionKey":"p","RowKey":"x"}"#, 415, "MediaTypeNotSupported"),
    ]).await;
}
