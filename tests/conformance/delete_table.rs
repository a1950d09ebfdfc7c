//! Delete Table.

use crate::run::{Suite, choice, refused, rule, same};

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    rule!(suite, "4.3 a table is deleted with 204, and what it held", {
        suite.insert(&table, r#""PartitionKey":"p","RowKey":"r""#).await?;
        let response = suite.ask(&format!("DELETE /Tables('{table}')"), &[], "").await;
        same("status", &response.status, &204)?;
        same("body", &response.body, &String::new())?;
        let response = suite.ask(&format!("GET /{table}()"), &[], "").await;
        refused(&response, 404, "TableNotFound")?;
        let line = format!("GET /Tables?$filter=TableName%20eq%20'{table}'");
        let response = suite.done(&line, &[], "").await?;
        same("is listed", &response.body.contains(&table), &false)
    });
    rule!(suite, "0.1, 4.3 deleting a missing table is ResourceNotFound", {
        let response = suite.ask(&format!("DELETE /Tables('{table}')"), &[], "").await;
        refused(&response, 404, "ResourceNotFound")
    });
    rule!(suite, "1.2 the case of the name is no matter", {
        let body = format!(r#"{{"TableName":"{table}"}}"#);
        suite.done("POST /Tables", &[], &body).await?;
        let line = format!("DELETE /Tables('{}')", table.to_lowercase());
        suite.done(&line, &[], "").await.map(drop)
    });
    choice!(suite, "4.3 a table of a deleted one's name starts empty", {
        let body = format!(r#"{{"TableName":"{table}"}}"#);
        suite.done("POST /Tables", &[], &body).await?;
        same("rows", &suite.rows(&table, "").await?, &Vec::<String>::new())
    });
    suite
        .refusals("", &[
            ("5.1 a bad name in the URL", "DELETE /Tables('a-b')", &[], "", 400, "InvalidResourceName"),
            ("5.1 a short name in the URL", "DELETE /Tables('a')", &[], "", 400, "OutOfRangeInput"),
        ])
        .await;
}
