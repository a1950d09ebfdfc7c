//! URLs, hosts, verbs, and the rules of HTTP that hold for every request.

use crate::client::Credential;
use crate::run::{Suite, same};

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    suite.insert(&table, r#""PartitionKey":"p","RowKey":"r""#).await.unwrap();
    suite
        .rule("1.2 a slash at the end of the account", async |suite| {
            suite.done("GET /?restype=service&comp=properties", &["Accept: application/xml"], "").await.map(drop)
        })
        .await;
    suite
        .rule("1.2 doubled slashes", async |suite| {
            suite.done("GET //Tables", &[], "").await?;
            suite.done(&format!("GET //{table}()"), &[], "").await.map(drop)
        })
        .await;
    suite
        .rule("1.2 the set of tables with parentheses", async |suite| {
            suite.done("GET /Tables()", &[], "").await.map(drop)
        })
        .await;
    suite
        .rule("11.1 unknown headers and options are ignored", async |suite| {
            let headers = ["traceparent: 00-0-0-00", "Accept-Charset: UTF-8", "x-ms-whatever: 1"];
            suite.done(&format!("GET /{table}()?whatever=1&timeout=20"), &headers, "").await.map(drop)
        })
        .await;
    suite
        .rule("11.1 a chunked body", async |suite| {
            let body = r#"{"PartitionKey":"p","RowKey":"chunked"}"#;
            let chunks = format!("{:x}\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n", 10, &body[..10], body.len() - 10, &body[10..]);
            let answer = suite.ask(&format!("POST /{table}"), &["Transfer-Encoding: chunked"], &chunks).await;
            same("status", &answer.status, &201)
        })
        .await;
    suite
        .rule("2.3 Expect: 100-continue", async |suite| {
            let body = r#"{"PartitionKey":"p","RowKey":"expect"}"#;
            let answer = suite.ask(&format!("POST /{table}"), &["Expect: 100-continue"], body).await;
            // Whoever sends the body at once may be told to go on, or be answered.
            let ok = answer.status == 201 || answer.status == 100 && answer.body.contains("201 Created");
            same("is answered", &ok, &true)
        })
        .await;
    suite
        .rule("11.1 several requests on one connection", async |suite| {
            let account = &suite.account;
            let date = "Fri, 15 Mar 2024 10:20:30 GMT";
            let one = format!("GET {}/Tables HTTP/1.1\r\nHost: {}\r\nx-ms-date: {date}\r\nContent-Length: 0\r\n", account.path, account.authority);
            let answer = account.exchange(&format!("{one}\r\n{one}Connection: close\r\n\r\n")).await;
            same("answers", &(answer.body.matches("HTTP/1.1 ").count() + 1), &2)
        })
        .await;
    suite
        .rule("11.1 the port of the Host is the one of the URLs in answers", async |suite| {
            let body = r#"{"PartitionKey":"p","RowKey":"host"}"#;
            let answer = suite.ask(&format!("POST /{table}"), &["Host: 127.0.0.1:4711"], body).await;
            let location = answer.header("Location").unwrap_or_default();
            same("Location", &location.starts_with("http://127.0.0.1:4711/"), &true)
        })
        .await;
    suite
        .rule("1.1 the account in the host", async |suite| {
            let account = &suite.account;
            let host = format!("Host: {}.table.localhost:10002", account.name);
            let answer = account.send_to(Credential::SharedKeyLite, "GET", "/Tables", &[&host], "").await;
            same("status", &answer.status, &200)?;
            let url = format!("http://{}.table.localhost:10002/$metadata#Tables", account.name);
            same("metadata", &answer.json()["odata.metadata"].as_str(), &Some(&*url))
        })
        .await;
    suite
        .rule("1.1 the secondary of a path is read", async |suite| {
            let target = format!("{}-secondary/{table}()", suite.account.path);
            let answer = suite.account.send_to(Credential::SharedKeyLite, "GET", &target, &[], "").await;
            same("status", &answer.status, &200)
        })
        .await;
    suite
        .rule("3.10 the secondary is not written to", async |suite| {
            let target = format!("{}-secondary/{table}", suite.account.path);
            let body = r#"{"PartitionKey":"p","RowKey":"s"}"#;
            let answer = suite.account.send_to(Credential::SharedKeyLite, "POST", &target, &[], body).await;
            same("status", &answer.status, &403)
        })
        .await;
    suite
        .refusals(&table, &[
            ("1.2 Tables behind a table, POST", "POST /TABLE/Tables", &[], r#"{"TableName":"x"}"#, 400, "PropertiesNeedValue"),
            ("1.2 Tables behind a missing table, POST", "POST /ConfMissing/Tables", &[], r#"{"TableName":"x"}"#, 404, "TableNotFound"),
            ("1.2 Tables behind a table, DELETE", "DELETE /TABLE/Tables('x')", &[], "", 400, "InvalidInput"),
            ("1.2 Tables behind a missing table, DELETE", "DELETE /ConfMissing/Tables('x')", &[], "", 404, "TableNotFound"),
            ("1.2 Tables behind a table, GET", "GET /TABLE/Tables", &[], "", 501, "NotImplemented"),
            ("1.2 service properties behind a table", "GET /TABLE/?restype=service&comp=properties", &[], "", 400, "InvalidQueryParameterValue"),
            ("1.2 a batch behind a table", "POST /TABLE/$batch", &[], "", 415, "MediaTypeNotSupported"),
        ])
        .await;
    suite
        .refusals_by_choice(&table, &[
            ("4.12 PUT of a set", "PUT /TABLE", &[], "{}", 405, "MethodNotAllowed"),
            ("4.12 DELETE of a set", "DELETE /Tables", &[], "", 405, "MethodNotAllowed"),
            ("4.12 an unknown verb", "BREW /TABLE", &[], "", 405, "UnsupportedHttpVerb"),
            ("4.12 conditions on tables", "DELETE /Tables('TABLE')", &["If-Match: *"], "", 400, "InvalidInput"),
        ])
        .await;
}
