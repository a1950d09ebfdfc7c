//! Delete Table.

use crate::run::{Suite, refused, same};

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    suite
        .rule("4.3 a table is deleted with 204, and what it held", async |suite| {
            suite.insert(&table, r#""PartitionKey":"p","RowKey":"r""#).await?;
            let response = suite.ask(&format!("DELETE /Tables('{table}')"), &[], "").await;
            same("status", &response.status, &204)?;
            same("body", &response.body, &String::new())?;
            let response = suite.ask(&format!("GET /{table}()"), &[], "").await;
            refused(&response, 404, "TableNotFound")?;
            let line = format!("GET /Tables?$filter=TableName%20eq%20'{table}'");
            let response = suite.done(&line, &[], "").await?;
            same("is listed", &response.body.contains(&table), &false)
        })
        .await;
    suite
        .rule("0.1, 4.3 deleting a missing table is ResourceNotFound", async |suite| {
            let response = suite.ask(&format!("DELETE /Tables('{table}')"), &[], "").await;
            refused(&response, 404, "ResourceNotFound")
        })
        .await;
    suite
        .rule("1.2 the case of the name is no matter", async |suite| {
            let body = format!(r#"{{"TableName":"{table}"}}"#);
            suite.done("POST /Tables", &[], &body).await?;
            let line = format!("DELETE /Tables('{}')", table.to_lowercase());
            suite.done(&line, &[], "").await.map(drop)
        })
        .await;
    suite
        .choice("4.3 a table of a deleted one's name starts empty", async |suite| {
            let body = format!(r#"{{"TableName":"{table}"}}"#);
            suite.done("POST /Tables", &[], &body).await?;
            same("rows", &suite.rows(&table, "").await?, &Vec::<String>::new())
        })
        .await;
    suite
        .refusals("", &[
            ("5.1 a bad name in the URL", "DELETE /Tables('a-b')", &[], "", 400, "InvalidResourceName"),
            ("5.1 a short name in the URL", "DELETE /Tables('a')", &[], "", 400, "OutOfRangeInput"),
        ])
        .await;
}
