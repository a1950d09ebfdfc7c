//! Query Tables with a name: one table.

use crate::run::{Suite, refused, rule, same};

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    rule!(suite, "4.1 one table is returned alone", {
        let response = suite.ask(&format!("GET /Tables('{table}')"), &[], "").await;
        same("status", &response.status, &200)?;
        let url = suite.account.url();
        let expected = format!(r#"{{"odata.metadata":"{url}/$metadata#Tables/@Element","TableName":"{table}"}}"#);
        same("body", &response.body, &expected)
    });
    rule!(suite, "1.2 the case of a table's name is no matter, and is kept", {
        let line = format!("GET /Tables('{}')", table.to_uppercase());
        same("name", &suite.done(&line, &[], "").await?.json()["TableName"].as_str(), &Some(&*table))
    });
    rule!(suite, "4.1 a missing table is ResourceNotFound", {
        refused(&suite.ask("GET /Tables('ConfMissing')", &[], "").await, 404, "ResourceNotFound")
    });
    rule!(suite, "4.1 full metadata adds type, id and link", {
        let accept = "Accept: application/json;odata=fullmetadata";
        let response = suite.done(&format!("GET /Tables('{table}')"), &[accept], "").await?;
        let json = response.json();
        let account = &suite.account;
        let id = format!("{}/Tables('{table}')", account.url());
        same("type", &json["odata.type"].as_str(), &Some(&*format!("{}.Tables", account.name)))?;
        same("id", &json["odata.id"].as_str(), &Some(&*id))?;
        same("link", &json["odata.editLink"].as_str(), &Some(&*format!("Tables('{table}')")))
    });
}
