//! Create Table.

use crate::run::{Suite, refused, rule, same};

pub(crate) async fn check(suite: &mut Suite) {
    let name = suite.name();
    rule!(suite, "4.2 a table is created with 201, its URL and itself", {
        let body = format!(r#"{{"TableName":"{name}"}}"#);
        let response = suite.ask("POST /Tables", &[], &body).await;
        same("status", &response.status, &201)?;
        let url = suite.account.url();
        let location = format!("{url}/Tables('{name}')");
        same("Location", &response.header("Location"), &Some(&*location))?;
        same("Preference-Applied", &response.header("Preference-Applied"), &None::<&str>)?;
        let expected = format!(r#"{{"odata.metadata":"{url}/$metadata#Tables/@Element","TableName":"{name}"}}"#);
        same("body", &response.body, &expected)
    });
    for (preference, status) in [("return-content", 201), ("return-no-content", 204)] {
        let name = suite.name();
        rule!(suite, &format!("4.2 Prefer: {preference} is applied"), {
            let header = format!("Prefer: {preference}");
            let body = format!(r#"{{"TableName":"{name}"}}"#);
            let response = suite.ask("POST /Tables", &[&header], &body).await;
            same("status", &response.status, &status)?;
            same("applied", &response.header("Preference-Applied"), &Some(preference))?;
            same("is without body", &response.body.is_empty(), &(status == 204))?;
            if status == 204 {
                same("DataServiceId", &response.header("DataServiceId"), &response.header("Location"))?;
            }
            Ok(())
        });
    }
    let lower = name.to_lowercase();
    rule!(suite, "4.2, 5.1 names that differ in case alone are the same", {
        for name in [&name, &lower] {
            let body = format!(r#"{{"TableName":"{name}"}}"#);
            refused(&suite.ask("POST /Tables", &[], &body).await, 409, "TableAlreadyExists")?;
        }
        Ok(())
    });
    for (rule, name, code) in [
        ("5.1 a name is made of letters and digits", "my_table", "InvalidResourceName"),
        ("5.1 a name has no hyphen", "my-table", "InvalidResourceName"),
        ("5.1 a name starts with a letter", "1table", "InvalidResourceName"),
        ("5.1 a name has no other letters", "tafelgrößen", "InvalidResourceName"),
        ("5.1 a name has 3 characters at least", "ab", "OutOfRangeInput"),
        ("5.1 a name has 63 characters at most", "a123456789b123456789c123456789d123456789e123456789f123456789abcd", "OutOfRangeInput"),
    ] {
        suite.refusals("", &[(rule, "POST /Tables", &[], &format!(r#"{{"TableName":"{name}"}}"#), 400, code)]).await;
    }
    suite.refusals_by_choice("", &[
        ("5.1 the name `tables` is reserved", "POST /Tables", &[], r#"{"TableName":"Tables"}"#, 400, "InvalidResourceName"),
        ("4.2 a name is needed", "POST /Tables", &[], "{}", 400, "PropertiesNeedValue"),
        ("4.2 a name is no number", "POST /Tables", &[], r#"{"TableName":5}"#, 400, "InvalidInput"),
        ("4.2 a body that is no JSON", "POST /Tables", &[], "{", 400, "InvalidInput"),
        ("4.2 a body of another type", "POST /Tables", &["Content-Type: text/plain"], r#"{"TableName":"ConfText"}"#, 415, "MediaTypeNotSupported"),
        ("4.2 a name is no null", "POST /Tables", &[], r#"{"TableName":null}"#, 400, "PropertiesNeedValue"),
    ]).await;
    rule!(suite, "5.1 names of 3 and of 63 characters are allowed", {
        let long = format!("L{:062x}", fastrand::u128(..));
        let short = loop {
            let name = format!("s{:02x}", fastrand::u8(..));
            let response = suite.ask("GET /Tables", &[], "").await;
            if !response.body.contains(&format!("\"{name}\"")) {
                break name;
            }
        };
        for name in [long, short] {
            let body = format!(r#"{{"TableName":"{name}"}}"#);
            same("status", &suite.ask("POST /Tables", &[], &body).await.status, &201)?;
            suite.done(&format!("DELETE /Tables('{name}')"), &[], "").await?;
        }
        Ok(())
    });
}
