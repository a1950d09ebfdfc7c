//! Bearer tokens: the operations that each action permits, and the responses to invalid tokens.

use super::*;
use crate::{TokenAction, TokenGrant, TokenRefusal};

const POINT: &str = "people(PartitionKey='p',RowKey='r')";
const SERVICE: &str = "?restype=service&comp=properties";
const ACTIONS: [(&str, TokenAction); 9] = [
    ("add", TokenAction::AddEntities),
    ("create", TokenAction::CreateTables),
    ("delete", TokenAction::DeleteEntities),
    ("drop", TokenAction::DeleteTables),
    ("read", TokenAction::ReadEntities),
    ("service", TokenAction::ReadService),
    ("list", TokenAction::ReadTables),
    ("update", TokenAction::UpdateEntities),
    ("configure", TokenAction::WriteService),
];

/// A token consists of the names of its actions, and is valid in one account.
fn verify(account: &str, token: &str) -> Result<TokenGrant, TokenRefusal> {
    if account != "acct" {
        return Err(TokenRefusal::Forbidden);
    }
    let mut grant = TokenGrant::none();
    for word in token.split('+') {
        grant = match ACTIONS.iter().find(|(name, _)| *name == word) {
            Some((_, action)) => grant.with(*action),
            None if word == "all" => TokenGrant::all(),
            None => return Err(TokenRefusal::Invalid),
        };
    }
    Ok(grant)
}

/// A table with one entity, and tokens.
fn client(over_http: bool) -> Client {
    let tokens = Tokens {
        verifier: Some(Arc::new(verify)),
        over_http,
    };
    let client = Client::with(|options| options.tokens = tokens).and_table();
    client.insert("p", "r", 1);
    client
}

fn ask(
    client: &Client,
    token: &str,
    method: &str,
    resource: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response<Bytes> {
    let credential = format!("Bearer {token}");
    let mut all = vec![
        ("authorization", credential.as_str()),
        ("x-ms-version", "2020-12-06"),
        ("x-ms-date", ""),
    ];
    all.extend(headers);
    client.call(client.request(method, &format!("/acct/{resource}"), &all, body))
}

#[test]
fn tokens_permit_the_actions_of_their_grant() {
    let any = [("if-match", "*")];
    let document = "<StorageServiceProperties><Cors /></StorageServiceProperties>";
    for (method, resource, headers, content, needed) in [
        ("GET", "Tables", &[][..], "", &["list"][..]),
        ("GET", "Tables('people')", &[], "", &["list"]),
        (
            "POST",
            "Tables",
            &[],
            r#"{"TableName":"more"}"#,
            &["create"],
        ),
        ("DELETE", "Tables('people')", &[], "", &["drop"]),
        ("GET", "people()", &[], "", &["read"]),
        ("GET", POINT, &[], "", &["read"]),
        (
            "POST",
            "people",
            &[],
            r#"{"PartitionKey":"p","RowKey":"s"}"#,
            &["add"],
        ),
        ("PUT", POINT, &any, "{}", &["update"]),
        ("MERGE", POINT, &any, "{}", &["update"]),
        ("PUT", POINT, &[], "{}", &["add", "update"]),
        ("PATCH", POINT, &[], "{}", &["add", "update"]),
        ("DELETE", POINT, &any, "", &["delete"]),
        ("GET", SERVICE, &[], "", &["service"]),
        ("GET", "$metadata", &[], "", &["service"]),
        ("PUT", SERVICE, &[], document, &["configure"]),
    ] {
        let without = |left_out: &[&str]| {
            let names = ACTIONS.iter().map(|(name, _)| *name);
            let names: Vec<_> = names.filter(|name| !left_out.contains(name)).collect();
            names.join("+")
        };
        for left_out in needed {
            let token = without(&[*left_out]);
            let response = ask(&client(true), &token, method, resource, headers, content);
            let expected = (403, "AuthorizationPermissionMismatch");
            assert_eq!(
                status_and_code(&response),
                expected,
                "{token} {method} {resource}"
            );
        }
        for token in [needed.join("+").as_str(), "all"] {
            let response = ask(&client(true), token, method, resource, headers, content);
            assert!(
                response.status().is_success(),
                "{token} {method} {resource}"
            );
        }
    }
}

#[test]
fn batches_need_the_action_of_each_change() {
    let client = client(true);
    let change = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nDELETE http://h/acct/people(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n--c--\r\n--b--\r\n";
    let multipart = [("content-type", "multipart/mixed; boundary=b")];
    let refused = ask(
        &client,
        "read+add+update",
        "POST",
        "$batch",
        &multipart,
        change,
    );
    let expected = (403, "AuthorizationPermissionMismatch");
    assert_eq!(status_and_code(&refused), expected);
    let done = ask(&client, "delete", "POST", "$batch", &multipart, change);
    assert_eq!(done.status(), 202);
    assert!(
        body(&done).contains("HTTP/1.1 204 No Content"),
        "{}",
        body(&done)
    );
}

#[test]
fn invalid_tokens_are_refused_by_version() {
    let client = client(true);
    for (version, expected) in [
        ("2020-12-06", (401, "InvalidAuthenticationInfo")),
        ("2019-12-12", (401, "InvalidAuthenticationInfo")),
        ("2019-07-07", (403, "AuthenticationFailed")),
        ("", (403, "AuthenticationFailed")),
    ] {
        let headers = [("x-ms-version", version)];
        let response = ask(&client, "unknown", "GET", "Tables", &headers, "");
        assert_eq!(status_and_code(&response), expected, "{version}");
        let challenge = header(&response, "www-authenticate");
        let expected = "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize resource_id=https://storage.azure.com";
        assert_eq!(challenge, (response.status() == 401).then_some(expected));
    }
    let headers = [("authorization", "Bearer all")];
    let other = client.call(client.request("GET", "/second/Tables", &headers, ""));
    assert_eq!(status_and_code(&other), (403, "AuthorizationFailure"));
    // Without a token, the header is malformed.
    let headers = [("authorization", "Bearer")];
    let none = client.call(client.request("GET", "/acct/Tables", &headers, ""));
    assert_eq!(status_and_code(&none), (400, "InvalidAuthenticationInfo"));
}

#[test]
fn policies_do_not_exist_for_tokens() {
    let client = client(true);
    for method in ["GET", "PUT"] {
        let response = ask(&client, "all", method, "people?comp=acl", &[], "");
        assert_eq!(status_and_code(&response), (404, "ResourceNotFound"));
    }
}

#[test]
fn tokens_are_refused_over_plain_http() {
    let client = client(false);
    let response = ask(&client, "all", "GET", "Tables", &[], "");
    assert_eq!(status_and_code(&response), (403, "AuthenticationFailed"));
    let message = "Authentication scheme Bearer is not allowed with HTTP.";
    assert!(body(&response).contains(message), "{}", body(&response));
    let headers = [("authorization", "Bearer all")];
    let secure = client.request("GET", "https://127.0.0.1/acct/Tables", &headers, "");
    assert_eq!(client.call(secure).status(), 200);
}

#[test]
fn grants_print_their_actions() {
    let grant = TokenGrant::none().with(TokenAction::ReadTables);
    assert_eq!(format!("{grant:?}"), "{ReadTables}");
    for (_, action) in ACTIONS {
        assert!(TokenGrant::all().allows(action));
        assert!(!TokenGrant::none().allows(action));
    }
}
