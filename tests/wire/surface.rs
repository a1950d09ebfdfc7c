//! The parts of requests that all operations share, as bytes: hosts, origins, verbs, versions, formats, checksums, time and tokens.
//!
//! Every rule is also tested inside the server. These tests show what a client sees that has no library for the service.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, Method, Uri};
use tablesdk::transport::Clock;
use tablesdk::{SharedKey, Timestamp};
use tablesdk_protocol::auth::{Scheme, string_to_sign};
use tablesdk_server::{TableServer, TokenAction, TokenGrant, TokenRefusal};

use crate::raw::{Answer, exchange, send};

const JSON: &str = "Content-Type: application/json";
const NO_METADATA: &str = "Accept: application/json;odata=nometadata";

/// A server with a table.
async fn people() -> TableServer {
    let server = TableServer::start().await.unwrap();
    create(&server, "people").await;
    server
}

async fn create(server: &TableServer, name: &str) {
    let table = format!(r#"{{"TableName":"{name}"}}"#);
    let answer = send(server, true, "POST /Tables", &[JSON], &table).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap()
}

/// Sends a request with this host and target, signed with that key if there is one.
async fn ask(
    server: &TableServer,
    key: Option<&SharedKey>,
    host: &str,
    request_line: &str,
    headers: &[&str],
    body: &str,
) -> Answer {
    let (method, target) = request_line.split_once(' ').unwrap();
    let mut lines = vec![format!("Host: {host}"), "Connection: close".to_owned()];
    lines.extend(headers.iter().map(|line| (*line).to_owned()));
    if let Some(key) = key {
        lines.push(format!("x-ms-date: {}", now().to_http_date()));
        let mut signed = HeaderMap::new();
        for line in &lines {
            let (name, value) = line.split_once(": ").unwrap();
            let name: HeaderName = name.parse().unwrap();
            signed.append(name, value.parse().unwrap());
        }
        let uri: Uri = target.parse().unwrap();
        let method: Method = method.parse().unwrap();
        let text = string_to_sign(Scheme::SharedKey, key.account(), &method, &uri, &signed);
        let signature = key.sign(&text);
        lines.push(format!(
            "Authorization: SharedKey {}:{}",
            key.account(),
            signature.expose()
        ));
    }
    lines.push(format!("Content-Length: {}", body.len()));
    let head = lines.join("\r\n");
    let request = format!("{method} {target} HTTP/1.1\r\n{head}\r\n\r\n{body}");
    exchange(server, request.as_bytes()).await
}

/// Status and code, which is empty for a success.
fn outcome(answer: &Answer) -> (u16, String) {
    let json = answer.body.split_once(r#"{"odata.error":{"code":""#);
    let xml = answer.body.split_once("<m:code>");
    let code = json
        .or(xml)
        .and_then(|(_, rest)| rest.split(['"', '<']).next());
    (answer.status, code.unwrap_or_default().to_owned())
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn accounts_are_named_by_hosts_and_by_paths() {
    let one = SharedKey::new("one", "b25l").unwrap();
    let two = SharedKey::new("two", "dHdv").unwrap();
    let builder = TableServer::builder().account(one.clone());
    let server = builder.account(two.clone()).start().await.unwrap();
    let full = "Accept: application/json;odata=fullmetadata";
    for (key, host, path, base) in [
        (
            &one,
            "one.table.localhost:1",
            "",
            "http://one.table.localhost:1",
        ),
        (
            &two,
            "two.table.localhost",
            "",
            "http://two.table.localhost",
        ),
        (&two, "localhost:7", "/two", "http://localhost:7/two"),
        (&one, "[::1]:7", "/one", "http://[::1]:7/one"),
        (
            &one,
            "tables.example:7",
            "/one",
            "http://tables.example:7/one",
        ),
    ] {
        let name = key.account();
        let line = format!("POST {path}/Tables");
        let table = r#"{"TableName":"people"}"#;
        let created = ask(&server, Some(key), host, &line, &[JSON, full], table).await;
        let location = format!("{base}/Tables('people')");
        let expected = format!(
            r#"{{"odata.metadata":"{base}/$metadata#Tables/@Element","odata.type":"{name}.Tables","odata.id":"{location}","odata.editLink":"Tables('people')","TableName":"people"}}"#
        );
        assert_eq!(
            (created.status, &*created.body),
            (201, &*expected),
            "{host}"
        );
        assert_eq!(created.header("Location"), Some(&*location));
        let line = format!("DELETE {path}/Tables('people')");
        let deleted = ask(&server, Some(key), host, &line, &[], "").await;
        assert_eq!(deleted.status, 204, "{host}");
    }
    let stranger = ask(
        &server,
        Some(&one),
        "two.table.localhost",
        "GET /Tables",
        &[],
        "",
    )
    .await;
    assert_eq!(outcome(&stranger), refused(403, "AuthenticationFailed"));
    let secondary = "one-secondary.table.localhost";
    let stats = "GET /?restype=service&comp=stats";
    assert_eq!(
        ask(&server, Some(&one), secondary, stats, &[], "")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn browsers_are_told_what_the_rules_say() {
    let server = people().await;
    let account = server.credential().account().to_owned();
    let rules = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://www.xyz.com</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-meta-data*,x-ms-meta-xyz</AllowedHeaders><ExposedHeaders>x-ms-request-id</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
    let set = "PUT /?restype=service&comp=properties";
    let answer = send(
        &server,
        true,
        set,
        &["Content-Type: application/xml"],
        rules,
    )
    .await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let preflight = format!("OPTIONS /{account}/people");
    let origin = "Origin: http://www.xyz.com";
    let get = "Access-Control-Request-Method: GET";
    let headers = "Access-Control-Request-Headers: x-ms-meta-xyz,X-MS-Meta-Data2";
    let answer = ask(
        &server,
        None,
        "localhost",
        &preflight,
        &[origin, get, headers],
        "",
    )
    .await;
    assert_eq!((answer.status, &*answer.body), (200, ""), "{answer:?}");
    for (name, value) in [
        ("Access-Control-Allow-Origin", "http://www.xyz.com"),
        ("Access-Control-Allow-Methods", "GET"),
        (
            "Access-Control-Allow-Headers",
            "x-ms-meta-xyz,X-MS-Meta-Data2",
        ),
        ("Access-Control-Max-Age", "500"),
        ("Access-Control-Allow-Credentials", "true"),
        ("Content-Length", "0"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{answer:?}");
    }
    for (headers, expected) in [
        (
            vec!["Origin: http://else", get],
            refused(403, "CorsPreflightFailure"),
        ),
        (
            vec![origin, "Access-Control-Request-Method: POST"],
            refused(403, "CorsPreflightFailure"),
        ),
        (vec![origin], refused(400, "InvalidHeaderValue")),
        (vec![get], refused(400, "InvalidHeaderValue")),
        (vec![], refused(403, "AuthenticationFailed")),
    ] {
        let answer = ask(&server, None, "localhost", &preflight, &headers, "").await;
        assert_eq!(outcome(&answer), expected, "{headers:?}");
        assert_eq!(answer.header("Access-Control-Allow-Origin"), None);
    }
    for (origin, allowed, exposed) in [
        (
            Some(origin),
            Some("http://www.xyz.com"),
            Some("x-ms-request-id"),
        ),
        (Some("Origin: http://else"), None, None),
        (None, None, None),
    ] {
        let headers: Vec<_> = origin.into_iter().collect();
        let answer = send(&server, true, "GET /people()", &headers, "").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("Access-Control-Allow-Origin"), allowed);
        assert_eq!(answer.header("Access-Control-Expose-Headers"), exposed);
        assert_eq!(answer.header("Vary"), Some("Origin"));
        let credentials = answer.header("Access-Control-Allow-Credentials");
        assert_eq!(credentials, allowed.and(Some("true")));
    }
}

#[tokio::test]
async fn what_is_asked_for_wrongly_is_told_so() {
    let server = people().await;
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    assert_eq!(
        send(&server, true, "POST /people", &[JSON], entity)
            .await
            .status,
        201
    );
    let point = "/people(PartitionKey='p',RowKey='r')";
    let put = format!("PUT {point}");
    let post = format!("POST {point}");
    let delete = format!("DELETE {point}");
    let multipart = "Content-Type: multipart/mixed; boundary=b";
    for (line, headers, body, status, code) in [
        // Verbs.
        ("OPTIONS /people", vec![], "", 405, "MethodNotAllowed"),
        ("BREW /people", vec![], "", 405, "UnsupportedHttpVerb"),
        ("TRACE /Tables", vec![], "", 405, "UnsupportedHttpVerb"),
        ("GET /$batch", vec![], "", 405, "MethodNotAllowed"),
        ("DELETE /$metadata", vec![], "", 405, "MethodNotAllowed"),
        (
            &post,
            vec![JSON, "X-HTTP-Method: MERGE", "X-HTTP-Method: PUT"],
            "{}",
            400,
            "XMethodIncorrectCount",
        ),
        (
            &post,
            vec![JSON, "X-HTTP-Method: GET"],
            "{}",
            400,
            "XMethodIncorrectValue",
        ),
        // Resources behind a table.
        (
            "POST /people/Tables",
            vec![JSON],
            r#"{"TableName":"x"}"#,
            400,
            "PropertiesNeedValue",
        ),
        (
            "POST /missing/Tables",
            vec![JSON],
            r#"{"TableName":"x"}"#,
            404,
            "TableNotFound",
        ),
        (
            "DELETE /people/Tables('x')",
            vec![],
            "",
            400,
            "InvalidInput",
        ),
        ("GET /people/Tables", vec![], "", 501, "NotImplemented"),
        (
            "GET /people/?restype=service&comp=properties",
            vec![],
            "",
            400,
            "InvalidQueryParameterValue",
        ),
        (
            "PUT /people/?restype=service&comp=properties",
            vec![],
            "",
            400,
            "InvalidQueryParameterValue",
        ),
        (
            "POST /people/$batch",
            vec![multipart],
            "--b--",
            415,
            "MediaTypeNotSupported",
        ),
        // Conditions.
        ("GET /Tables", vec!["If-Match: *"], "", 400, "InvalidInput"),
        (
            "DELETE /Tables('people')",
            vec!["If-None-Match: *"],
            "",
            400,
            "InvalidInput",
        ),
        (
            &put,
            vec![JSON, "If-None-Match: *"],
            "{}",
            400,
            "InvalidInput",
        ),
        (
            &delete,
            vec!["If-Match: *", "If-None-Match: *"],
            "",
            400,
            "InvalidInput",
        ),
        (&delete, vec!["If-Match: "], "", 400, "InvalidInput"),
        (
            &delete,
            vec!["If-Match: W/\"a\"", "If-Match: W/\"b\""],
            "",
            400,
            "InvalidInput",
        ),
        (&delete, vec!["If-Match: test"], "", 400, "InvalidInput"),
        (&delete, vec![], "", 400, "InvalidInput"),
        // Checksums.
        (
            "POST /people",
            vec![JSON, "Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg=="],
            entity,
            400,
            "Md5Mismatch",
        ),
        (
            "POST /people",
            vec![JSON, "Content-MD5: short"],
            entity,
            400,
            "InvalidMd5",
        ),
        // Options.
        (
            "GET /people()?timeout=soon",
            vec![],
            "",
            400,
            "InvalidQueryParameterValue",
        ),
        ("GET /people()?$top=%2B5", vec![], "", 400, "InvalidInput"),
        // Versions and formats.
        (
            "GET /people()",
            vec!["x-ms-version: newest"],
            "",
            400,
            "InvalidHeaderValue",
        ),
        (
            "GET /people()",
            vec!["x-ms-version: 2012-02-12"],
            "",
            415,
            "JsonFormatNotSupported",
        ),
        (
            "GET /people()?$select=a",
            vec!["DataServiceVersion: 1.0"],
            "",
            400,
            "InvalidInput",
        ),
        (
            "GET /people()",
            vec!["Accept: application/atom+xml,application/xml"],
            "",
            415,
            "AtomFormatNotSupported",
        ),
        (
            "GET /people()",
            vec!["Accept: application/json;odata=verbose"],
            "",
            415,
            "JsonVerboseFormatNotSupported",
        ),
        // The service's own tables.
        (
            "POST /$MetricsHourPrimaryTransactionsTable",
            vec![JSON],
            entity,
            403,
            "InsufficientAccountPermissions",
        ),
    ] {
        let answer = send(&server, true, line, &headers, body).await;
        assert_eq!(
            outcome(&answer),
            refused(status, code),
            "{line} {headers:?}"
        );
    }
    // Nothing of it was carried out.
    let rows = send(
        &server,
        true,
        "GET /people()?$select=RowKey",
        &[NO_METADATA],
        "",
    )
    .await;
    assert_eq!(rows.body, r#"{"value":[{"RowKey":"r"}]}"#);
}

#[tokio::test]
async fn what_is_unusual_but_right_is_carried_out() {
    let server = people().await;
    let full = "application/json;odata=fullmetadata;streaming=true;charset=utf-8";
    for (line, headers, content_type) in [
        ("HEAD /people?comp=acl", vec![], "application/xml"),
        ("GET /$metadata", vec![], "application/xml"),
        (
            "GET /people()?timeout=600",
            vec!["Accept: application/json, application/json;odata=fullmetadata"],
            full,
        ),
        (
            "GET /people()?$format=application/json;odata=fullmetadata",
            vec!["Accept: application/atom+xml"],
            full,
        ),
        (
            "GET /Tables",
            vec![
                "Accept: */*",
                "Accept: application/json;odata=fullmetadata",
                "Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==",
            ],
            full,
        ),
        (
            "GET /$MetricsHourPrimaryTransactionsTable()",
            vec![
                "Accept: application/json;odata=fullmetadata",
                "DataServiceVersion: 1.0",
                "MaxDataServiceVersion: 3.0;NetFx",
            ],
            full,
        ),
    ] {
        let answer = send(&server, true, line, &headers, "").await;
        assert_eq!(answer.status, 200, "{line} {answer:?}");
        assert_eq!(answer.header("Content-Type"), Some(content_type), "{line}");
    }
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let prefer = ["Prefer: respond-async, Return-No-Content;x=1", JSON];
    let answer = send(&server, true, "POST /people", &prefer, entity).await;
    assert_eq!((answer.status, &*answer.body), (204, ""));
    let applied = answer.header("Preference-Applied");
    assert_eq!(applied, Some("return-no-content"));
}

#[tokio::test]
async fn answers_say_which_request_they_answer() {
    let server = people().await;
    let id = "x-ms-client-request-id: !a~1";
    for version in ["2013-08-15", "2019-02-02", "2031-01-31"] {
        let version_line = format!("x-ms-version: {version}");
        let headers = [version_line.as_str(), id];
        for line in ["GET /people()", "GET /missing()"] {
            let answer = send(&server, true, line, &headers, "").await;
            for (name, value) in [
                ("x-ms-version", version),
                ("x-ms-client-request-id", "!a~1"),
                ("Cache-Control", "no-cache"),
                ("X-Content-Type-Options", "nosniff"),
            ] {
                assert_eq!(answer.header(name), Some(value), "{line} {answer:?}");
            }
            let product = answer.header("Server").unwrap();
            assert!(product.starts_with("Windows-Azure-Table/1.0 "), "{product}");
            assert_eq!(answer.header("x-ms-request-id").unwrap().len(), 36);
            assert_eq!(answer.header("Vary"), None);
        }
    }
    let long = format!("x-ms-client-request-id: {}", "x".repeat(1025));
    for id in [&*long, "x-ms-client-request-id: two words"] {
        let answer = send(&server, true, "GET /people()", &[id], "").await;
        assert_eq!(
            (answer.status, answer.header("x-ms-client-request-id")),
            (200, None)
        );
    }
}

/// The time of this machine, and how far ahead of it.
#[derive(Clone, Debug, Default)]
struct Ahead(Arc<AtomicU64>);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        now().saturating_add(Duration::from_secs(self.0.load(Ordering::Relaxed)))
    }
}

#[tokio::test]
async fn the_name_of_a_deleted_table_is_free_after_a_while() {
    let clock = Ahead::default();
    let builder = TableServer::builder().clock(clock.clone());
    let hold = Duration::from_secs(40);
    let server = builder.deleted_table_name_hold(hold).start().await.unwrap();
    create(&server, "people").await;
    let delete = "DELETE /Tables('people')";
    assert_eq!(send(&server, true, delete, &[], "").await.status, 204);
    let body = r#"{"TableName":"People"}"#;
    for (line, body, expected) in [
        ("POST /Tables", body, refused(409, "TableBeingDeleted")),
        ("GET /people()", "", refused(404, "TableNotFound")),
        (delete, "", refused(404, "ResourceNotFound")),
    ] {
        let answer = send(&server, true, line, &[JSON], body).await;
        assert_eq!(outcome(&answer), expected, "{line}");
    }
    let tables = send(&server, true, "GET /Tables", &[NO_METADATA], "").await;
    assert_eq!(tables.body, r#"{"value":[]}"#);
    clock.0.store(60, Ordering::Relaxed);
    create(&server, "people").await;
}

#[tokio::test]
async fn a_token_is_good_where_somebody_says_so() {
    let verify = |account: &str, token: &str| match token {
        "lister" if account == "devstoreaccount1" => {
            Ok(TokenGrant::none().with(TokenAction::ReadTables))
        }
        _ => Err(TokenRefusal::Invalid),
    };
    let builder = || TableServer::builder().token_verifier(verify);
    let insecure = builder().start().await.unwrap();
    let behind_proxy = builder().tokens_over_http().start().await.unwrap();
    let nobody = TableServer::start().await.unwrap();
    let newer = "x-ms-version: 2020-12-06";
    let older = "x-ms-version: 2019-07-07";
    for (server, token, line, version, expected) in [
        (
            &behind_proxy,
            "lister",
            "GET /Tables",
            newer,
            refused(200, ""),
        ),
        (
            &behind_proxy,
            "lister",
            "GET /people()",
            newer,
            refused(403, "AuthorizationPermissionMismatch"),
        ),
        (
            &behind_proxy,
            "lister",
            "GET /people?comp=acl",
            newer,
            refused(404, "ResourceNotFound"),
        ),
        (
            &behind_proxy,
            "other",
            "GET /Tables",
            newer,
            refused(401, "InvalidAuthenticationInfo"),
        ),
        (
            &behind_proxy,
            "other",
            "GET /Tables",
            older,
            refused(403, "AuthenticationFailed"),
        ),
        (
            &insecure,
            "lister",
            "GET /Tables",
            newer,
            refused(403, "AuthenticationFailed"),
        ),
        (
            &nobody,
            "lister",
            "GET /Tables",
            newer,
            refused(401, "InvalidAuthenticationInfo"),
        ),
        (
            &nobody,
            "lister",
            "GET /Tables",
            older,
            refused(403, "AuthenticationFailed"),
        ),
        (
            &nobody,
            "lister",
            "GET /people?comp=acl",
            newer,
            refused(404, "ResourceNotFound"),
        ),
    ] {
        let credential = format!("Authorization: Bearer {token}");
        let answer = send(server, false, line, &[&credential, version], "").await;
        assert_eq!(outcome(&answer), expected, "{line} {version}");
        let challenge = answer.header("WWW-Authenticate").unwrap_or_default();
        assert_eq!(
            challenge.starts_with("Bearer authorization_uri=https://"),
            expected.0 == 401
        );
        assert_eq!(
            challenge.ends_with(" resource_id=https://storage.azure.com"),
            expected.0 == 401
        );
    }
    for (headers, expected) in [
        (vec![older], refused(403, "AuthenticationFailed")),
        (vec![newer], refused(401, "NoAuthenticationInformation")),
        (
            vec![newer, "Authorization: nonsense"],
            refused(400, "InvalidAuthenticationInfo"),
        ),
    ] {
        let answer = send(&nobody, false, "GET /Tables", &headers, "").await;
        assert_eq!(outcome(&answer), expected, "{headers:?}");
    }
}

#[tokio::test]
async fn an_account_without_a_name_is_no_account() {
    for name in ["", "ab", "Upper", "with-hyphen"] {
        let account = SharedKey::new(name, "c2VjcmV0").unwrap();
        let error = TableServer::builder()
            .account(account)
            .start()
            .await
            .unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
        assert!(!error.to_string().contains("c2VjcmV0"), "{error}");
    }
}
