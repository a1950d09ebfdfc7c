//! Query Tables.

use serde_json::Value as Json;

use crate::run::{Suite, choice, rule, same};
use crate::sign::percent;

fn names(json: &Json) -> Vec<String> {
    let tables = json["value"].as_array().cloned().unwrap_or_default();
    let name = |table: &Json| table["TableName"].as_str().unwrap_or("-").to_owned();
    tables.iter().map(name).collect()
}

pub(crate) async fn check(suite: &mut Suite) {
    let mut tables = Vec::new();
    for _ in 0..4 {
        tables.push(suite.table().await);
    }
    tables.sort_by_key(|name| name.to_lowercase());
    let [first, second, third, last] = &*tables else {
        unreachable!("there are four");
    };
    let ours = format!("TableName ge '{first}' and TableName le '{last}'");
    let filter = percent(&ours);
    rule!(suite, "4.1 a filter on TableName finds tables, in the order of their names", {
        let response = suite.done(&format!("GET /Tables?$filter={filter}"), &[], "").await?;
        let found: Vec<_> = names(&response.json());
        let found: Vec<_> = found.iter().filter(|name| tables.contains(name)).collect();
        same("names", &found, &tables.iter().collect::<Vec<_>>())?;
        let metadata = format!("{}/$metadata#Tables", suite.account.url());
        same("metadata", &response.json()["odata.metadata"].as_str(), &Some(&*metadata))
    });
    for (rule, text, expected) in [
        ("4.1 TableName eq", format!("TableName eq '{second}'"), vec![second]),
        ("4.1 a literal may stand on the left", format!("'{second}' eq TableName"), vec![second]),
        ("4.1 or", format!("TableName eq '{third}' or TableName eq '{first}'"), vec![first, third]),
        ("4.1 not", format!("not (TableName lt '{last}') and TableName le '{last}'"), vec![last]),
        ("4.1 parentheses", format!("(TableName eq '{second}')"), vec![second]),
        ("4.1 nothing", "TableName eq 'x'".to_owned(), vec![]),
        ("F.10 a name in lower case", format!("TableName eq '{}'", second.to_lowercase()), vec![second]),
        ("F.10 a name in upper case", format!("TableName eq '{}'", second.to_uppercase()), vec![second]),
        (
            "F.10 a beginning in upper case",
            format!("TableName ge '{0}' and TableName lt '{0}{{'", third.to_uppercase()),
            vec![third],
        ),
    ] {
        rule!(suite, rule, {
            let line = format!("GET /Tables?$filter={}", percent(&text));
            same("names", &names(&suite.done(&line, &[], "").await?.json()).iter().collect::<Vec<_>>(), &expected)
        });
    }
    let base = suite.name();
    let mixed = ["a", "B", "c", "D"].map(|end| format!("{base}{end}"));
    choice!(suite, "4.1 the order of tables is that of their names in lower case", {
        for name in mixed.iter().rev() {
            suite.done("POST /Tables", &[], &format!(r#"{{"TableName":"{name}"}}"#)).await?;
        }
        let filter = percent(&format!("TableName ge '{base}A' and TableName le '{base}z'"));
        for top in ["", "&$top=4"] {
            let response = suite.done(&format!("GET /Tables?$filter={filter}{top}"), &[], "").await?;
            same("names", &names(&response.json()), &mixed)?;
            same("token", &response.header("x-ms-continuation-NextTableName"), &None::<&str>)?;
        }
        for name in &mixed {
            suite.done(&format!("DELETE /Tables('{name}')"), &[], "").await?;
        }
        Ok(())
    });
    rule!(suite, "4.1 $top ends a page, whose token starts the next one", {
        let mut found = Vec::new();
        let mut next = String::new();
        for _ in 0..10 {
            let response = suite.done(&format!("GET /Tables?$top=1&$filter={filter}{next}"), &[], "").await?;
            let page = names(&response.json());
            same("is within $top", &(page.len() <= 1), &true)?;
            found.extend(page);
            let Some(token) = response.header("x-ms-continuation-NextTableName") else {
                break;
            };
            same("is no empty token", &token.is_empty(), &false)?;
            next = format!("&NextTableName={}", percent(token));
        }
        found.retain(|name| tables.contains(name));
        same("names", &found, &tables)
    });
    rule!(suite, "4.1 a token for a table that is gone continues after it", {
        let line = format!("GET /Tables?$top=1&$filter={}", percent(&ours));
        let response = suite.done(&line, &[], "").await?;
        let token = response.header("x-ms-continuation-NextTableName").ok_or("no token")?;
        let token = percent(token);
        let second = format!("{second}x");
        suite.done("POST /Tables", &[], &format!(r#"{{"TableName":"{second}"}}"#)).await?;
        suite.done(&format!("DELETE /Tables('{second}')"), &[], "").await?;
        same("names", &names(&suite.done(&format!("{line}&NextTableName={token}"), &[], "").await?.json()).len(), &1)
    });
    rule!(suite, "6.4 $top=0 is an empty list", {
        same("names", &names(&suite.done("GET /Tables?$top=0", &[], "").await?.json()).len(), &0)
    });
    rule!(suite, "11.2 an empty list has its member, and no token", {
        let response = suite.done("GET /Tables?$filter=TableName%20eq%20'x'", &[], "").await?;
        same("value", &response.json()["value"], &Json::Array(Vec::new()))?;
        let token = response.header("x-ms-continuation-NextTableName");
        same("token", &token, &None::<&str>)
    });
    rule!(suite, "11.1 the dollar of an option may be percent-encoded", {
        let line = format!("GET /Tables()?%24filter={}&%24top=1", percent(&format!("TableName eq '{second}'")));
        same("names", &names(&suite.done(&line, &[], "").await?.json()), &vec![second.clone()])
    });
    suite.refusals("", &[
        ("6.4 $top above 1,000", "GET /Tables?$top=1001", &[], "", 400, "InvalidInput"),
        ("6.4 a negative $top", "GET /Tables?$top=-1", &[], "", 400, "InvalidInput"),
        ("6.4 a $top that is no number", "GET /Tables?$top=x", &[], "", 400, "InvalidInput"),
        ("6.5 a malformed token", "GET /Tables?NextTableName=x", &[], "", 400, "InvalidInput"),
        ("6.5 an empty token", "GET /Tables?NextTableName=", &[], "", 400, "InvalidInput"),
        ("6.1 a malformed filter", "GET /Tables?$filter=TableName%20eq", &[], "", 400, "InvalidInput"),
    ]).await;
}
