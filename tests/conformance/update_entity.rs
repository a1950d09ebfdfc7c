//! Update, Merge, Insert Or Replace and Insert Or Merge Entity.

use serde_json::json;

use crate::run::{NO_METADATA, Suite, choice, holds, refused, rule, same};

const STALE: &str = "If-Match: W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"";

/// The spellings of a merge: verb and tunnelled verb.
const MERGES: [(&str, &[&str]); 3] = [
    ("PATCH", &[]),
    ("MERGE", &[]),
    ("POST", &["X-HTTP-Method: MERGE"]),
];

/// The ETag with seven digits of its second.
fn padded(etag: &str) -> String {
    let (instant, end) = etag.split_once('Z').unwrap_or((etag, ""));
    let (second, fraction) = instant.split_once('.').unwrap_or((instant, ""));
    format!("{second}.{fraction:0<7}Z{end}")
}

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    let path = format!("/{table}(PartitionKey='p',RowKey='r')");
    rule!(suite, "4.12 Insert Or Replace inserts, and replaces all properties", {
        for body in [r#"{"a":1,"b":1}"#, r#"{"a":2}"#] {
            let response = suite.ask(&format!("PUT {path}"), &[], body).await;
            same("status", &response.status, &204)?;
            same("body", &response.body, &String::new())?;
            same("has an ETag", &response.header("ETag").is_some(), &true)?;
        }
        same("entity", &suite.entity(&table, "p", "r").await?, &json!({"PartitionKey":"p","RowKey":"r","a":2}))
    });
    for (verb, tunnel) in MERGES {
        rule!(suite, &format!("4.12 Insert Or Merge by {verb} inserts, and keeps what it does not name"), {
            suite.ask(&format!("DELETE {path}"), &["If-Match: *"], "").await;
            for body in [r#"{"a":1,"b":1}"#, r#"{"a":2,"b":null}"#] {
                same("status", &suite.ask(&format!("{verb} {path}"), tunnel, body).await.status, &204)?;
            }
            same("entity", &suite.entity(&table, "p", "r").await?, &json!({"PartitionKey":"p","RowKey":"r","a":2,"b":1}))
        });
        rule!(suite, &format!("4.12 Merge by {verb} needs the entity and the version"), {
            let etag = suite.done(&format!("PUT {path}"), &[], r#"{"a":1}"#).await?;
            let etag = format!("If-Match: {}", etag.header("ETag").ok_or("no ETag")?);
            let with = |header| [tunnel, &[header]].concat();
            let line = format!("{verb} {path}");
            refused(&suite.ask(&line, &with(STALE), "{}").await, 412, "UpdateConditionNotSatisfied")?;
            same("status", &suite.ask(&line, &with(&etag), r#"{"b":2}"#).await.status, &204)?;
            refused(&suite.ask(&line, &with(&etag), "{}").await, 412, "UpdateConditionNotSatisfied")?;
            same("status", &suite.ask(&line, &with("If-Match: *"), r#"{"c":3}"#).await.status, &204)?;
            same("entity", &suite.entity(&table, "p", "r").await?, &json!({"PartitionKey":"p","RowKey":"r","a":1,"b":2,"c":3}))
        });
    }
    rule!(suite, "4.12 Update needs the entity and the version, and replaces", {
        let line = format!("PUT {path}");
        let etag = suite.done(&line, &[], r#"{"a":1}"#).await?;
        let etag = format!("If-Match: {}", etag.header("ETag").ok_or("no ETag")?);
        refused(&suite.ask(&line, &[STALE], "{}").await, 412, "UpdateConditionNotSatisfied")?;
        same("status", &suite.ask(&line, &[&etag], r#"{"b":2}"#).await.status, &204)?;
        refused(&suite.ask(&line, &[&etag], "{}").await, 412, "UpdateConditionNotSatisfied")?;
        same("status", &suite.ask(&line, &["If-Match: *"], r#"{"c":3}"#).await.status, &204)?;
        same("entity", &suite.entity(&table, "p", "r").await?, &json!({"PartitionKey":"p","RowKey":"r","c":3}))
    });
    rule!(suite, "F.1 a merge and a replace store an integer beyond Int32 as a Double", {
        for verb in ["PATCH", "PUT"] {
            suite.done(&format!("{verb} {path}"), &[], r#"{"v":5454161346626}"#).await?;
            let response = suite.done(&format!("GET {path}"), &[], "").await?;
            holds("the value", response.body.contains(r#""v":5454161346626.0"#))?;
        }
        Ok(())
    });
    rule!(suite, "F.18 an update, a merge and an upsert sort the properties, an insert does not", {
        let order = async |row: &str| -> Result<String, String> {
            let line = format!("GET /{table}(PartitionKey='p',RowKey='{row}')");
            let response = suite.done(&line, &[NO_METADATA], "").await?;
            let (_, own) = response.body.split_once("Z\",").ok_or("no Timestamp")?;
            Ok(own.trim_end_matches('}').to_owned())
        };
        suite.insert(&table, r#""PartitionKey":"p","RowKey":"order","b":1,"a":1,"B":1"#).await?;
        same("after an insert", &order("order").await?, &r#""b":1,"a":1,"B":1"#.to_owned())?;
        let path = format!("/{table}(PartitionKey='p',RowKey='order')");
        suite.done(&format!("PATCH {path}"), &["If-Match: *"], r#"{"c":2,"a":2}"#).await?;
        same("after a merge", &order("order").await?, &r#""B":1,"a":2,"b":1,"c":2"#.to_owned())?;
        suite.done(&format!("PUT {path}"), &["If-Match: *"], r#"{"c":3,"b":3}"#).await?;
        same("after an update", &order("order").await?, &r#""b":3,"c":3"#.to_owned())?;
        for verb in ["PATCH", "PUT"] {
            suite.done(&format!("{verb} /{table}(PartitionKey='p',RowKey='{verb}')"), &[], r#"{"b":1,"a":1}"#).await?;
            same(verb, &order(verb).await?, &r#""a":1,"b":1"#.to_owned())?;
        }
        Ok(())
    });
    rule!(suite, "F.7 the condition of a write is an instant, in any form", {
        let forms: [fn(&str) -> String; 3] = [str::to_owned, padded, |etag| etag.replace("%3A", ":")];
        let mut etag = suite.done(&format!("PUT {path}"), &[], "{}").await?.header("ETag").ok_or("no ETag")?.to_owned();
        // One in ten instants has a zero at its end.
        for (form, verb) in std::iter::repeat_n(forms, 20).flatten().zip(["PUT", "PATCH"].iter().cycle()) {
            let header = format!("If-Match: {}", form(&etag));
            let missing = format!("{verb} /{table}(PartitionKey='p',RowKey='none')");
            refused(&suite.ask(&missing, &[&header], "{}").await, 404, "ResourceNotFound")?;
            let written = suite.ask(&format!("{verb} {path}"), &[&header], "{}").await;
            same(&header, &written.status, &204)?;
            written.header("ETag").ok_or("no ETag")?.clone_into(&mut etag);
        }
        refused(&suite.ask(&format!("PUT {path}"), &[STALE], "{}").await, 412, "UpdateConditionNotSatisfied")?;
        for none in ["W/\"datetime''2017-07-13T00%3A00%3A00.0000000Z''\"", "W/\"0x8D\"", "W/\"\""] {
            let header = format!("If-Match: {none}");
            let response = suite.ask(&format!("PUT {path}"), &[&header], "{}").await;
            refused(&response, 412, "ConditionNotMet")?;
            same("Cache-Control", &response.header("Cache-Control"), &None)?;
        }
        Ok(())
    });
    rule!(suite, "4.13 every write changes the version, one that changes nothing, too", {
        let mut etags = Vec::new();
        for _ in 0..50 {
            let response = suite.done(&format!("MERGE {path}"), &["If-Match: *"], "{}").await?;
            etags.push(response.header("ETag").unwrap_or_default().to_owned());
        }
        let sorted = etags.is_sorted_by(|a, b| time(a) < time(b));
        same("strictly increasing", &sorted, &true)
    });
    rule!(suite, "0.1 the keys are those of the URL; those of the body may be of any type", {
        for body in [
            r#"{"PartitionKey":"other","RowKey":"x","k":1}"#,
            r#"{"PartitionKey@odata.type":"Edm.DateTime","PartitionKey":"2020-01-01T00:00:00Z","k":1}"#,
        ] {
            suite.done(&format!("PUT {path}"), &[], body).await?;
            same("entity", &suite.entity(&table, "p", "r").await?, &json!({"PartitionKey":"p","RowKey":"r","k":1}))?;
        }
        Ok(())
    });
    rule!(suite, "4.12 a merge without a body changes nothing but the version", {
        suite.done(&format!("PUT {path}"), &[], r#"{"k":1}"#).await?;
        suite.done(&format!("MERGE {path}"), &["If-Match: *"], "").await?;
        same("entity", &suite.entity(&table, "p", "r").await?, &json!({"PartitionKey":"p","RowKey":"r","k":1}))
    });
    rule!(suite, "4.12 Prefer means nothing", {
        same("status", &suite.done(&format!("PUT {path}"), &["Prefer: return-content"], "{}").await?.status, &204)
    });
    for line in ["PUT", "PATCH", "MERGE"] {
        let none = format!("{line} /TABLE(PartitionKey='p',RowKey='none')");
        let missing = format!("{line} /ConfMissing(PartitionKey='p',RowKey='r')");
        let there = format!("{line} {path}");
        suite.refusals(&table, &[
            ("4.12 a missing entity", &none, &["If-Match: *"], "{}", 404, "ResourceNotFound"),
            ("4.12 existence comes before the version", &none, &[STALE], "{}", 404, "ResourceNotFound"),
            ("4.12 a missing table", &missing, &["If-Match: *"], "{}", 404, "TableNotFound"),
            ("4.12 an upsert in a missing table", &missing, &[], "{}", 404, "TableNotFound"),
            ("4.12 a foreign ETag", &there, &["If-Match: W/\"0x8D\""], "{}", 412, "ConditionNotMet"),
            ("4.12 a malformed ETag", &there, &["If-Match: test"], "{}", 400, "InvalidInput"),
        ]).await;
        suite.refusals_by_choice(&table, &[
            ("4.12 If-None-Match", &there, &["If-None-Match: *"], "{}", 400, "InvalidInput"),
            ("4.12 both conditions", &there, &["If-Match: *", "If-None-Match: *"], "{}", 400, "InvalidInput"),
            ("5.1 a list", &there, &["If-Match: *"], r#"{"a":[]}"#, 400, "InvalidInput"),
            ("5.1 a name with a blank", &there, &["If-Match: *"], r#"{"a b":1}"#, 400, "PropertyNameInvalid"),
        ]).await;
    }
    choice!(suite, "4.12 a condition is one weak ETag, or a star", {
        let etag = suite.done(&format!("PUT {path}"), &[], "{}").await?;
        let etag = etag.header("ETag").unwrap_or_default();
        let (current, lower) = (format!("If-Match: {etag}"), format!("If-Match: {}", etag.to_lowercase()));
        let without = format!("If-None-Match: {etag}");
        let invalid = (400, "InvalidInput");
        for (verb, headers, expected) in [
            ("PUT", &[&*without][..], invalid),
            ("MERGE", &["If-None-Match: W/\"0x8D\""], invalid),
            ("DELETE", &[&current, "If-None-Match: W/\"0x8D\""], invalid),
            ("PUT", &["If-Match: \"0x8D\""], invalid),
            ("PUT", &["If-Match: 0x8D"], invalid),
            ("PUT", &["If-Match: W/0x8D"], invalid),
            ("PUT", &["If-Match: W/\"0x8D"], invalid),
            ("PUT", &["If-Match: W/\"a\", W/\"b\""], invalid),
            ("PUT", &["If-Match: *, *"], invalid),
            ("PUT", &["If-Match: *", "If-Match: *"], invalid),
            ("PUT", &["If-Match: "], invalid),
            ("DELETE", &["If-Match: \u{e9}"], invalid),
            // Neither is an instant.
            ("MERGE", &[&lower], (412, "ConditionNotMet")),
            ("DELETE", &["If-Match: w/\"\""], (412, "ConditionNotMet")),
            ("PUT", &[&current], (204, "")),
        ] {
            suite.expect(&format!("{verb} {path}"), headers, "{}", expected).await?;
        }
        let response = suite.ask(&format!("PUT {path}"), &["If-Match: test"], "{}").await;
        let message = "The etag value 'test' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.";
        holds(response.message(), response.message().starts_with(message))
    });
    suite.refusals_by_choice(&table, &[
        ("4.12 X-HTTP-Method without POST", "PUT /TABLE(PartitionKey='p',RowKey='r')", &["X-HTTP-Method: MERGE"], "{}", 400, "XMethodNotUsingPost"),
        ("4.12 X-HTTP-Method twice", "POST /TABLE(PartitionKey='p',RowKey='r')", &["X-HTTP-Method: MERGE", "X-HTTP-Method: PUT"], "{}", 400, "XMethodIncorrectCount"),
        ("4.12 an unknown X-HTTP-Method", "POST /TABLE(PartitionKey='p',RowKey='r')", &["X-HTTP-Method: BREW"], "{}", 400, "XMethodIncorrectValue"),
    ]).await;
}

/// The time in an ETag, in a form that sorts.
fn time(etag: &str) -> (String, String) {
    let text = etag.trim_start_matches("W/\"datetime'").trim_end_matches("Z'\"");
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    (seconds.to_owned(), format!("{fraction:0<7}"))
}
