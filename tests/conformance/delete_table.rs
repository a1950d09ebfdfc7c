//! Delete Table.

use crate::run::{Suite, choice, refused, rule, same};

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    rule!(suite, "4.3 a table is deleted with 204, and what it held", {
        suite.insert(&table, r#""PartitionKey":"p","RowKey":"r""#).await?;
        let response = suite.ask(&format!("DELETE /Tables('{table}')"), &[], "").await;
        same("status", &response.status, &204)?;
        same("body", &response.body, &String::new())?;
        refused(&suite.ask(&format!("GET /{table}()"), &[], "").await, 404, "TableNotFound")?;
        let line = format!("GET /Tables?$filter=TableName%20eq%20'{table}'");
        same("is listed", &suite.done(&line, &[], "").await?.body.contains(&table), &false)
    });
    rule!(suite, "0.1, 4.3 deleting a missing table is ResourceNotFound", {
        refused(&suite.ask(&format!("DELETE /Tables('{table}')"), &[], "").await, 404, "ResourceNotFound")
    });
    rule!(suite, "1.2 the case of the name is no matter", {
        suite.done("POST /Tables", &[], &format!(r#"{{"TableName":"{table}"}}"#)).await?;
        suite.done(&format!("DELETE /Tables('{}')", table.to_lowercase()), &[], "").await.map(drop)
    });
    choice!(suite, "4.3 a table of a deleted one's name starts empty", {
        suite.done("POST /Tables", &[], &format!(r#"{{"TableName":"{table}"}}"#)).await?;
        same("rows", &suite.rows(&table, "").await?, &Vec::<String>::new())
    });
    suite.refusals("", &[
        ("5.1 a bad name in the URL", "DELETE /Tables('a-b')", &[], "", 400, "InvalidResourceName"),
        ("5.1 a short name in the URL", "DELETE /Tables('a')", &[], "", 400, "OutOfRangeInput"),
    ]).await;
}
