//! Shared Key and Shared Key Lite.

use time::{Duration, OffsetDateTime};

use crate::client::{Account, Credential, http_date};
use crate::run::{Suite, same};

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    let lines = [
        "GET /Tables?$top=5".to_owned(),
        format!("GET /{table}()?$filter=PartitionKey%20eq%20'a%2Fb'"),
        format!("PUT /{table}(PartitionKey='O''Brien%20%26%20co',RowKey='r%2B1')"),
        format!("PUT /{table}%28PartitionKey=%27pk%27%2CRowKey=%27rk%27%29"),
        format!("GET /{table}?comp=acl&timeout=30"),
        "GET /?restype=service&comp=properties".to_owned(),
        "GET /?comp=properties&restype=service".to_owned(),
    ];
    for credential in [Credential::SharedKey, Credential::SharedKeyLite] {
        for line in &lines {
            let body = if line.starts_with("PUT") { "{}" } else { "" };
            suite
                .rule(&format!("3.2–3.4 {credential:?} of {line}"), async |suite| {
                    let answer = suite.account.send(credential, line, &[], body).await;
                    same("is accepted", &(answer.status < 300), &true)
                })
                .await;
        }
        suite
            .rule(&format!("3.10 {credential:?} of another request"), async |suite| {
                let account = Account {
                    key: "c2VjcmV0".to_owned(),
                    ..suite.account.clone()
                };
                let answer = account.send(credential, "GET /Tables", &[], "").await;
                same("status", &answer.status, &403)
            })
            .await;
        suite
            .choice(&format!("3.10 the code for {credential:?} of another request"), async |suite| {
                let account = Account {
                    key: "c2VjcmV0".to_owned(),
                    ..suite.account.clone()
                };
                let answer = account.send(credential, "GET /Tables", &[], "").await;
                same("code", &answer.code(), &"AuthenticationFailed")?;
                same("header", &answer.header("x-ms-error-code"), &Some("AuthenticationFailed"))
            })
            .await;
        suite
            .choice(&format!("3.6 {credential:?} of another day"), async |suite| {
                let header = "x-ms-date: Fri, 15 Mar 2024 10:20:30 GMT";
                let answer = suite.account.send(credential, "GET /Tables", &[header], "").await;
                same("status", &answer.status, &403)
            })
            .await;
    }
    for credential in [Credential::SharedKey, Credential::SharedKeyLite] {
        suite
            .rule(&format!("3.2 {credential:?} takes x-ms-date where there is a Date, too"), async |suite| {
                let header = "Date: Fri, 15 Mar 2024 10:20:30 GMT";
                let answer = suite.account.send(credential, "GET /Tables?$top=1", &[header], "").await;
                same("status", &answer.status, &200)
            })
            .await;
        suite
            .choice(&format!("3.6 {credential:?} of a quarter of an hour ago, or ahead"), async |suite| {
                for (minutes, status) in [(-16, 403), (-14, 200), (14, 200), (16, 403)] {
                    let date = http_date(OffsetDateTime::now_utc() + Duration::minutes(minutes));
                    let header = format!("x-ms-date: {date}");
                    let answer = suite.account.send(credential, "GET /Tables?$top=1", &[&header], "").await;
                    same(format!("{minutes} minutes"), &answer.status, &status)?;
                }
                Ok(())
            })
            .await;
    }
    suite
        .rule("3.10 no credential", async |suite| {
            for line in ["GET /Tables", "GET /ConfMissing()", "POST /$batch"] {
                let answer = suite.account.send(Credential::None, line, &[], "").await;
                same("is refused", &[401, 403].contains(&answer.status), &true)?;
            }
            Ok(())
        })
        .await;
    suite
        .choice("3.10 no credential, since there are challenges", async |suite| {
            let version = "x-ms-version: 2020-12-06";
            let answer = suite.account.send(Credential::None, "GET /Tables", &[version], "").await;
            same("status", &answer.status, &401)?;
            let challenge = answer.header("WWW-Authenticate").unwrap_or_default();
            same("challenge", &challenge.starts_with("Bearer "), &true)
        })
        .await;
    for value in ["SharedKey", "SharedKey x", "SharedKeyLite devstoreaccount1:", "Basic eDp5", "x"] {
        suite
            .rule(&format!("3.10 the credential {value:?}"), async |suite| {
                let header = format!("Authorization: {value}");
                let answer = suite.account.send(Credential::SharedKey, "GET /Tables", &[&header], "").await;
                same("is refused", &[400, 401, 403].contains(&answer.status), &true)
            })
            .await;
    }
    for (version, status) in [("2019-07-07", 403), ("2020-12-06", 401)] {
        suite
            .choice(&format!("0.1, 3.7 a malformed token, version {version}"), async |suite| {
                let headers = [format!("x-ms-version: {version}"), "Authorization: Bearer x".to_owned()];
                let headers: Vec<_> = headers.iter().map(String::as_str).collect();
                let answer = suite.account.send(Credential::None, "GET /Tables", &headers, "").await;
                same("status", &answer.status, &status)
            })
            .await;
    }
}
