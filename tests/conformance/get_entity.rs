//! Query Entities with both keys.

use crate::run::{NO_METADATA, Suite, entity_path, refused, rule, same};

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    rule!(suite, "4.9 an entity is returned with its ETag", {
        let etag = suite.insert(&table, r#""PartitionKey":"p","RowKey":"r","a":1"#).await?;
        let response = suite.ask(&format!("GET /{table}(PartitionKey='p',RowKey='r')"), &[], "").await;
        same("status", &response.status, &200)?;
        same("ETag", &response.header("ETag"), &Some(&*etag))?;
        let json = response.json();
        same("odata.etag", &json["odata.etag"].as_str(), &Some(&*etag))?;
        let metadata = format!("{}/$metadata#{table}/@Element", suite.account.url());
        same("metadata", &json["odata.metadata"].as_str(), &Some(&*metadata))
    });
    for (rule, path) in [
        ("1.2 a space after the comma", "/TABLE(PartitionKey='p',%20RowKey='r')"),
        ("1.2 the other order of the keys", "/TABLE(RowKey='r',PartitionKey='p')"),
        ("1.2 percent-encoded quotes", "/TABLE(PartitionKey=%27p%27,RowKey=%27r%27)"),
        ("1.2 everything percent-encoded", "/TABLE%28PartitionKey%3D%27p%27%2CRowKey%3D%27r%27%29"),
        ("1.2 doubled slashes", "//TABLE(PartitionKey='p',RowKey='r')"),
    ] {
        rule!(suite, rule, {
            suite.done(&format!("GET {}", path.replace("TABLE", &table)), &[], "").await.map(drop)
        });
    }
    let keys = [
        "", " ", "a b", "O'Brien", "''", "a,b", "(x)", "x',RowKey='y", "100%", "%41", "%2F", "a+b", "a&b=c",
        "a;b:c@d!e*f~g$h", "\"<[{|}]>^`", "Zürich", "東京", "🦀", "Ａ", "a'b,c)d(e", "..", ".",
    ];
    for (index, key) in keys.iter().enumerate() {
        let row = keys[(index + 7) % keys.len()];
        rule!(suite, &format!("1.2 the keys ({key:?}, {row:?}), there and back"), {
            let body = serde_json::json!({"PartitionKey": key, "RowKey": row, "n": index});
            suite.done(&format!("POST /{table}"), &[], &body.to_string()).await?;
            same("entity", &suite.entity(&table, key, row).await?, &body)?;
            suite.done(&format!("DELETE {}", entity_path(&table, key, row)), &["If-Match: *"], "").await?;
            let line = format!("GET {}", entity_path(&table, key, row));
            refused(&suite.ask(&line, &[], "").await, 404, "ResourceNotFound")
        });
    }
    for (names, expected) in [
        ("a", r#"{"a":1}"#),
        ("RowKey,a", r#"{"RowKey":"r","a":1}"#),
        ("a,%20RowKey", r#"{"RowKey":"r","a":1}"#),
        ("a,missing", r#"{"a":1,"missing":null}"#),
        ("etag", r#"{"etag":null}"#),
        ("A", r#"{"A":null}"#),
    ] {
        rule!(suite, &format!("6.3 $select={names}"), {
            let line = format!("GET /{table}(PartitionKey='p',RowKey='r')?$select={names}");
            let response = suite.done(&line, &[NO_METADATA], "").await?;
            let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
            same("entity", &response.json(), &expected)
        });
    }
    rule!(suite, "6.3 the ETag is returned whatever is selected", {
        let line = format!("GET /{table}(PartitionKey='p',RowKey='r')?$select=a");
        same("has it", &suite.done(&line, &[], "").await?.json()["odata.etag"].is_string(), &true)
    });
    for names in ["", "*"] {
        rule!(suite, &format!("6.3 $select={names} selects everything"), {
            let line = format!("GET /{table}(PartitionKey='p',RowKey='r')?$select={names}");
            let response = suite.done(&line, &[NO_METADATA], "").await?;
            let json = response.json();
            let members = json.as_object().map(serde_json::Map::len);
            same("members", &members, &Some(4))
        });
    }
    rule!(suite, "4.9 conditions mean nothing on a read", {
        let line = format!("GET /{table}(PartitionKey='p',RowKey='r')");
        let etag = suite.ask(&line, &[], "").await;
        let header = format!("If-None-Match: {}", etag.header("ETag").unwrap_or_default());
        same("status", &suite.ask(&line, &[&header], "").await.status, &200)
    });
    suite.refusals(&table, &[
        ("0.1 a missing entity", "GET /TABLE(PartitionKey='p',RowKey='none')", &[], "", 404, "ResourceNotFound"),
        ("0.1 a missing table", "GET /ConfMissing(PartitionKey='p',RowKey='r')", &[], "", 404, "TableNotFound"),
    ]).await;
    suite.refusals_by_choice(&table, &[
        ("6.3 $select of the annotation of a property", "GET /TABLE(PartitionKey='p',RowKey='r')?$select=a@odata.type", &[], "", 400, "InvalidInput"),
        ("6.3 $select of the ETag's member", "GET /TABLE(PartitionKey='p',RowKey='r')?$select=odata.etag", &[], "", 400, "InvalidInput"),
        ("6.3 $select of metadata after a property", "GET /TABLE(PartitionKey='p',RowKey='r')?$select=a,odata.metadata", &[], "", 400, "InvalidInput"),
        ("1.2 one key alone", "GET /TABLE(PartitionKey='p')", &[], "", 400, "InvalidInput"),
        ("1.2 a quote that is not closed", "GET /TABLE(PartitionKey='p,RowKey='r')", &[], "", 400, "InvalidUri"),
    ]).await;
}
