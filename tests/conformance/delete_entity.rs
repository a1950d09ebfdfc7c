//! Delete Entity.

use crate::run::{Suite, refused, rule, same};

const STALE: &str = "If-Match: W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"";

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    let path = format!("/{table}(PartitionKey='p',RowKey='r')");
    let line = format!("DELETE {path}");
    rule!(suite, "4.12 a delete returns 204 without an ETag", {
        suite.insert(&table, r#""PartitionKey":"p","RowKey":"r""#).await?;
        let response = suite.ask(&line, &["If-Match: *"], "").await;
        same("status", &response.status, &204)?;
        same("ETag", &response.header("ETag"), &None::<&str>)?;
        same("body", &response.body, &String::new())?;
        refused(&suite.ask(&format!("GET {path}"), &[], "").await, 404, "ResourceNotFound")
    });
    rule!(suite, "4.12 the version that is named is deleted, and no other", {
        let etag = suite.insert(&table, r#""PartitionKey":"p","RowKey":"r""#).await?;
        refused(&suite.ask(&line, &[STALE], "").await, 412, "UpdateConditionNotSatisfied")?;
        let foreign = "If-Match: W/\"0x8DC0FFEE\"";
        refused(&suite.ask(&line, &[foreign], "").await, 412, "ConditionNotMet")?;
        same("status", &suite.ask(&line, &[&format!("If-Match: {etag}")], "").await.status, &204)
    });
    rule!(suite, "4.12 through POST with X-HTTP-Method", {
        suite.insert(&table, r#""PartitionKey":"p","RowKey":"r""#).await?;
        let headers = ["X-HTTP-Method: DELETE", "If-Match: *"];
        same("status", &suite.ask(&format!("POST {path}"), &headers, "").await.status, &204)
    });
    suite.refusals(&table, &[
        ("4.12 a missing entity", "DELETE /TABLE(PartitionKey='p',RowKey='none')", &["If-Match: *"], "", 404, "ResourceNotFound"),
        ("4.12 existence comes before the version", "DELETE /TABLE(PartitionKey='p',RowKey='none')", &[STALE], "", 404, "ResourceNotFound"),
        ("4.12 a missing table", "DELETE /ConfMissing(PartitionKey='p',RowKey='r')", &["If-Match: *"], "", 404, "TableNotFound"),
        ("4.12 a malformed ETag", "DELETE /TABLE(PartitionKey='p',RowKey='none')", &["If-Match: test"], "", 400, "InvalidInput"),
        ("4.12 a strong ETag", "DELETE /TABLE(PartitionKey='p',RowKey='none')", &["If-Match: \"x\""], "", 400, "InvalidInput"),
    ]).await;
    suite.refusals_by_choice(&table, &[
        ("4.12 a delete needs a condition", "DELETE /TABLE(PartitionKey='p',RowKey='none')", &[], "", 400, "InvalidInput"),
        ("4.12 an empty condition", "DELETE /TABLE(PartitionKey='p',RowKey='none')", &["If-Match: "], "", 400, "InvalidInput"),
        ("4.12 If-None-Match", "DELETE /TABLE(PartitionKey='p',RowKey='none')", &["If-None-Match: *"], "", 400, "InvalidInput"),
    ]).await;
}
