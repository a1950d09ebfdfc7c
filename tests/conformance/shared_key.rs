//! Shared Key and Shared Key Lite.

use time::{Duration, OffsetDateTime};

use crate::client::{Account, Credential, http_date};
use crate::run::{Suite, choice, refused, rule, same};
use crate::sign::signature;

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
            rule!(suite, &format!("3.2–3.4 {credential:?} of {line}"), {
                let response = suite.account.send(credential, line, &[], body).await;
                same("is accepted", &(response.status < 300), &true)
            });
        }
        let other = |suite: &Suite| Account { key: "c2VjcmV0".to_owned(), ..suite.account.clone() };
        rule!(suite, &format!("3.10 {credential:?} of another request"), {
            same("status", &other(suite).send(credential, "GET /Tables", &[], "").await.status, &403)
        });
        choice!(suite, &format!("3.10 the code for {credential:?} of another request"), {
            let response = other(suite).send(credential, "GET /Tables", &[], "").await;
            same("code", &response.code(), &"AuthenticationFailed")?;
            same("header", &response.header("x-ms-error-code"), &Some("AuthenticationFailed"))
        });
        choice!(suite, &format!("3.6 {credential:?} of another day"), {
            let header = "x-ms-date: Fri, 15 Mar 2024 10:20:30 GMT";
            same("status", &suite.account.send(credential, "GET /Tables", &[header], "").await.status, &403)
        });
        rule!(suite, &format!("3.2 {credential:?} takes x-ms-date where there is a Date, too"), {
            let header = "Date: Fri, 15 Mar 2024 10:20:30 GMT";
            same("status", &suite.account.send(credential, "GET /Tables?$top=1", &[header], "").await.status, &200)
        });
        choice!(suite, &format!("3.6 {credential:?} of a quarter of an hour ago, or ahead"), {
            for (minutes, status) in [(-16, 403), (-14, 200), (14, 200), (16, 403)] {
                let date = http_date(OffsetDateTime::now_utc() + Duration::minutes(minutes));
                let header = format!("x-ms-date: {date}");
                let response = suite.account.send(credential, "GET /Tables?$top=1", &[&header], "").await;
                same(format!("{minutes} minutes"), &response.status, &status)?;
            }
            Ok(())
        });
    }
    rule!(suite, "3.10 no credential", {
        for line in ["GET /Tables", "GET /ConfMissing()", "POST /$batch"] {
            let response = suite.account.send(Credential::None, line, &[], "").await;
            same("is refused", &[401, 403].contains(&response.status), &true)?;
        }
        Ok(())
    });
    choice!(suite, "3.10 no credential, since there are challenges", {
        let version = "x-ms-version: 2020-12-06";
        let response = suite.account.send(Credential::None, "GET /Tables", &[version], "").await;
        same("status", &response.status, &401)?;
        let challenge = response.header("WWW-Authenticate").unwrap_or_default();
        same("challenge", &challenge.starts_with("Bearer "), &true)
    });
    for value in ["SharedKey", "SharedKey x", "SharedKeyLite devstoreaccount1:", "Basic eDp5", "x"] {
        rule!(suite, &format!("3.10 the credential {value:?}"), {
            let header = format!("Authorization: {value}");
            let response = suite.account.send(Credential::SharedKey, "GET /Tables", &[&header], "").await;
            same("is refused", &[400, 401, 403].contains(&response.status), &true)
        });
    }
    signed_resources(suite, &table).await;
    malformed_credentials(suite).await;
    for (version, status) in [("2019-07-07", 403), ("2020-12-06", 401)] {
        choice!(suite, &format!("0.1, 3.7 a malformed token, version {version}"), {
            let headers = [&*format!("x-ms-version: {version}"), "Authorization: Bearer x"];
            same("status", &suite.account.send(Credential::None, "GET /Tables", &headers, "").await.status, &status)
        });
    }
}

/// The resource that is signed: path and account, in each form of a URL.
async fn signed_resources(suite: &mut Suite, table: &str) {
    let name = suite.account.name.clone();
    let in_host = format!("{name}.table.localhost:10002");
    let in_path = suite.account.authority.clone();
    let failed = (403, "AuthenticationFailed");
    let missing = (404, "TableNotFound");
    // `NAME` stands for the account, `TABLE` for the table.
    for (host, path, resource, expected) in [
        (&in_host, "/Tables?$top=5", "/NAME/Tables", (200, "")),
        (&in_host, "/TABLE?comp=acl", "/NAME/TABLE?comp=acl", (200, "")),
        (&in_host, "/Tables", "/NAME/NAME/Tables", failed),
        (&in_path, "/NAME/Tables", "/NAME/NAME/Tables", (200, "")),
        (&in_path, "/NAME/Tables", "/NAME/Tables", failed),
        (&in_path, "/NAME/TABLE()", "/NAME/NAME/Tables", failed),
        // The clients spell the secondary in several ways.
        (&in_path, "/NAME-secondary/Tables", "/NAME/NAME-secondary/Tables", (200, "")),
        (&in_path, "/NAME-secondary/Tables", "/NAME/NAME/Tables", (200, "")),
        (&in_path, "/NAME-secondary/NAME/Tables", "/NAME/NAME-secondary/NAME/Tables", (200, "")),
        (&in_path, "/NAME-secondary/NAME/Tables", "/NAME/NAME/NAME/Tables", (200, "")),
        (&in_path, "/NAME-secondary/NAME/Tables", "/NAME/NAME/Tables", (200, "")),
        (&in_path, "/NAME/Tables", "/NAME/NAME-secondary/Tables", failed),
        (&in_path, "/NAME/NAME/Tables", "/NAME/NAME/NAME/Tables", missing),
        // Without more after it, the name is a table's.
        (&in_path, "/NAME-secondary/NAME", "/NAME/NAME-secondary/NAME", missing),
        (&in_path, "/unknown-secondary/Tables", "/NAME/unknown-secondary/Tables", (404, "ResourceNotFound")),
    ] {
        let named = |text: &str| text.replace("NAME", &name).replace("TABLE", table);
        choice!(suite, &format!("3.3 {path} of {}, signed as {resource}", host.replace(&in_path, "HOST")), {
            let date = http_date(OffsetDateTime::now_utc());
            let signature = signature(&suite.account.key, &format!("GET\n\n\n{date}\n{}", named(resource)));
            let credential = format!("Authorization: SharedKey {name}:{signature}");
            let headers = [&*format!("Host: {host}"), &format!("x-ms-date: {date}"), &credential];
            let response = suite.account.send_to(Credential::None, "GET", &named(path), &headers, "").await;
            refused(&response, expected.0, expected.1)
        });
    }
}

/// Status, code and headers for each credential that is not accepted.
async fn malformed_credentials(suite: &mut Suite) {
    let account = suite.account.name.clone();
    let malformed = (400, "InvalidAuthenticationInfo");
    let failed = (403, "AuthenticationFailed");
    for (rule, line, headers, expected) in [
        ("a wrong signature", "GET /Tables", &["Authorization: SharedKey NAME:c2ln"][..], failed),
        ("another account", "GET /Tables", &["Authorization: SharedKey unknown:c2ln"], failed),
        ("no account", "GET /Tables", &["Authorization: SharedKey :c2ln"], malformed),
        ("no signature", "GET /Tables", &["Authorization: SharedKey NAME:"], malformed),
        ("no colon", "GET /Tables", &["Authorization: SharedKey NAME"], malformed),
        ("a scheme alone", "GET /Tables", &["Authorization: SharedKey"], malformed),
        ("an unknown scheme", "GET /Tables", &["Authorization: Basic NAME:c2ln"], malformed),
        ("two", "GET /Tables", &["Authorization: SharedKey NAME:c2ln", "Authorization: x y:z"], malformed),
        ("a token without challenges", "GET /Tables", &["Authorization: Bearer x"], failed),
        ("a token", "GET /Tables", &["x-ms-version: 2020-12-06", "Authorization: Bearer x"], (401, "InvalidAuthenticationInfo")),
        ("none", "GET /Tables", &[], failed),
        ("none, since there are challenges", "GET /Tables", &["x-ms-version: 2019-12-12"], (401, "NoAuthenticationInformation")),
        ("none, and a malformed URL", "GET /a/b/c?$filter=%FF", &[], failed),
        ("none, and an unknown verb", "BREW /x", &[], failed),
        ("none, and a large body", "POST /x", &["Content-Length: 4194305"], failed),
        ("a malformed date", "GET /Tables", &["x-ms-date: yesterday", "Authorization: SharedKey NAME:c2ln"], failed),
    ] {
        choice!(suite, &format!("3.10 the response to a credential: {rule}"), {
            let headers: Vec<_> = headers.iter().map(|header| header.replace("NAME", &account)).collect();
            let headers: Vec<_> = headers.iter().map(String::as_str).collect();
            let response = suite.account.send(Credential::None, line, &headers, "").await;
            refused(&response, expected.0, expected.1)?;
            same("code", &response.header("x-ms-error-code"), &Some(expected.1))?;
            same("Content-Type", &response.header("Content-Type"), &Some("application/json"))?;
            same("version", &response.header("x-ms-version"), &None::<&str>)?;
            let challenge = "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize resource_id=https://storage.azure.com";
            same("challenge", &response.header("WWW-Authenticate"), &(expected.0 == 401).then_some(challenge))
        });
    }
    choice!(suite, "3.6 a malformed date, signed", {
        let response = suite.account.send(Credential::SharedKey, "GET /Tables", &["x-ms-date: yesterday"], "").await;
        refused(&response, 403, "AuthenticationFailed")
    });
    choice!(suite, "3.7 policies do not exist for tokens", {
        for version in ["2019-02-02", "2020-12-06"] {
            let headers = [&*format!("x-ms-version: {version}"), "Authorization: Bearer x"];
            let response = suite.account.send(Credential::None, "GET /ConfMissing?comp=acl", &headers, "").await;
            refused(&response, 404, "ResourceNotFound")?;
        }
        Ok(())
    });
}
