//! Authentication of requests, the errors for rejected requests, and the common headers of all responses.
//!
//! Each credential here has one error. The operations on authenticated requests are tested in the other files of this directory.

use proptest::prelude::*;

use super::*;

#[test]
fn both_schemes_and_every_key_of_the_account_are_accepted() {
    let mut client = Client::new();
    for key in ["c2VjcmV0", "b3RoZXI="] {
        client.key = SharedKey::new("acct", key).unwrap();
        for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
            for path in [
                "/acct/Tables",
                "//acct//Tables?$top=5",
                "http://h:1/acct/Tables",
            ] {
                let mut request = client.request("GET", path, &[], "");
                client.sign(&mut request, scheme);
                assert_eq!(client.call(request).status(), 200, "{path} {scheme:?}");
            }
        }
    }
    // `Date` counts where `x-ms-date` is absent.
    let date = client.clock.now().to_http_date();
    let headers = [("x-ms-date", ""), ("date", date.as_str())];
    assert_eq!(client.send("GET", "Tables", &headers, "").status(), 200);
}

#[test]
fn a_credential_that_does_not_hold_is_refused() {
    let client = Client::new();
    let signed = |path: &str, headers: &[(&str, &str)]| {
        let mut request = client.request("GET", path, headers, "");
        client.sign(&mut request, Scheme::SharedKey);
        request
    };
    let with = |credential: &str| {
        let headers = [("authorization", credential)];
        client.request("GET", "/acct/Tables", &headers, "")
    };
    let at = |seconds: i64| {
        let ticks = client.clock.now().unix_ticks() + seconds * 10_000_000;
        let date = Timestamp::from_unix_ticks(ticks).unwrap().to_http_date();
        signed("/acct/Tables", &[("x-ms-date", &date)])
    };
    let mut other_path = signed("/acct/Tables", &[]);
    *other_path.uri_mut() = "/acct/people()".parse().unwrap();
    let mut other_account = signed("/acct/Tables", &[]);
    *other_account.uri_mut() = "/second/Tables".parse().unwrap();
    let mut two = with("SharedKey acct:c2ln");
    two.headers_mut()
        .append("authorization", HeaderValue::from_static("x y:z"));

    let failed = (403, "AuthenticationFailed");
    let malformed = (400, "InvalidAuthenticationInfo");
    for (request, expected) in [
        (with("SharedKey acct:c2ln"), failed),
        (with("SharedKeyLite acct:c2ln"), failed),
        (with("SharedKey second:c2ln"), failed),
        (with("SharedKey nobody:c2ln"), failed),
        (other_path, failed),
        (other_account, failed),
        (at(-901), failed),
        (at(901), failed),
        (
            signed("/acct/Tables", &[("x-ms-date", "yesterday")]),
            failed,
        ),
        (signed("/acct/Tables", &[("x-ms-date", "")]), failed),
        (client.request("GET", "/acct/Tables", &[], ""), failed),
        (
            client.request("GET", "/acct/Tables", &[("x-ms-version", "")], ""),
            failed,
        ),
        (
            client.request("GET", "/acct/Tables", &[("x-ms-version", "2019-12-12")], ""),
            (401, "NoAuthenticationInformation"),
        ),
        // Even if the URL has errors: an unauthenticated client does not learn what a URL means.
        (
            client.request("GET", "/acct/a/b/c?$filter=%FF", &[], ""),
            failed,
        ),
        (with("SharedKey"), malformed),
        (with("SharedKey acct"), malformed),
        (with("SharedKey acct:"), malformed),
        (with("SharedKey :c2ln"), malformed),
        (with("Basic acct:c2ln"), malformed),
        (two, malformed),
        (with("Bearer token"), failed),
        (
            client.request(
                "GET",
                "/acct/Tables",
                &[
                    ("authorization", "Bearer token"),
                    ("x-ms-version", "2020-12-06"),
                ],
                "",
            ),
            (401, "InvalidAuthenticationInfo"),
        ),
        (
            client.request("GET", "/acct/Tables?sv=2019-02-02&sig=c2ln", &[], ""),
            failed,
        ),
    ] {
        let text = format!("{} {:?}", request.uri(), request.headers());
        let response = client.call(request);
        assert_eq!(status_and_code(&response), expected, "{text}");
        assert_eq!(header(&response, "x-ms-error-code"), Some(expected.1));
        assert_eq!(header(&response, "content-type"), Some("application/json"));
        assert_eq!(header(&response, "x-ms-version"), None);
        let challenge = header(&response, "www-authenticate");
        assert_eq!(challenge.is_some(), expected.0 == 401);
        assert!(challenge.is_none_or(|challenge| {
            challenge.starts_with("Bearer authorization_uri=https://")
                && challenge.ends_with(" resource_id=https://storage.azure.com")
        }));
    }
    for seconds in [-900, 900] {
        assert_eq!(client.call(at(seconds)).status(), 200);
    }
}

#[test]
fn stored_access_policies_do_not_exist_for_tokens() {
    let client = Client::with_table();
    for version in ["2019-02-02", "2020-12-06"] {
        let headers = [("authorization", "Bearer token"), ("x-ms-version", version)];
        let response = client.call(client.request("GET", "/acct/people?comp=acl", &headers, ""));
        assert_eq!(status_and_code(&response), (404, "ResourceNotFound"));
    }
}

#[test]
fn a_secondary_is_read_under_every_spelling_of_its_signature() {
    let client = Client::with_table();
    for (path, signed) in [
        ("/acct-secondary/Tables", "/acct-secondary/Tables"),
        ("/acct-secondary/Tables", "/acct/Tables"),
        ("/acct-secondary/acct/Tables", "/acct-secondary/acct/Tables"),
        ("/acct-secondary/acct/Tables", "/acct/acct/Tables"),
        ("/acct-secondary/acct/Tables", "/acct/Tables"),
    ] {
        for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
            let mut request = client.request("GET", signed, &[], "");
            client.sign(&mut request, scheme);
            *request.uri_mut() = path.parse().unwrap();
            let response = client.call(request);
            assert_eq!(response.status(), 200, "{path} as {signed}");
            assert_eq!(body(&response), r#"{"value":[{"TableName":"people"}]}"#);
        }
    }
    for (path, signed, expected) in [
        // Only the secondary has several spellings.
        (
            "/acct/Tables",
            "/acct-secondary/Tables",
            (403, "AuthenticationFailed"),
        ),
        (
            "/acct/acct/Tables",
            "/acct/acct/Tables",
            (404, "TableNotFound"),
        ),
        // Without more behind it, the name is a table's.
        (
            "/acct-secondary/acct",
            "/acct-secondary/acct",
            (404, "TableNotFound"),
        ),
        (
            "/second-secondary/Tables",
            "/second-secondary/Tables",
            (403, "AuthenticationFailed"),
        ),
        (
            "/nobody-secondary/Tables",
            "/nobody-secondary/Tables",
            (404, "ResourceNotFound"),
        ),
    ] {
        let mut request = client.request("GET", signed, &[], "");
        client.sign(&mut request, Scheme::SharedKey);
        *request.uri_mut() = path.parse().unwrap();
        assert_eq!(status_and_code(&client.call(request)), expected, "{path}");
    }
}

#[test]
fn a_secondary_is_not_written_to() {
    let client = Client::with_table();
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    client.send("POST", "people", &[], entity);
    let point = "people(PartitionKey='p',RowKey='r')";
    let any = [("if-match", "*")];
    for (method, resource, headers, content) in [
        ("POST", "Tables", &[][..], r#"{"TableName":"more"}"#),
        ("DELETE", "Tables('people')", &[], ""),
        (
            "POST",
            "people",
            &[],
            r#"{"PartitionKey":"p","RowKey":"s"}"#,
        ),
        ("PUT", point, &[], r#"{"a":1}"#),
        ("MERGE", point, &any, r#"{"a":1}"#),
        ("DELETE", point, &any, ""),
        ("PUT", "people?comp=acl", &[], ""),
        (
            "PUT",
            "?restype=service&comp=properties",
            &[],
            "<StorageServiceProperties><Cors /></StorageServiceProperties>",
        ),
    ] {
        let path = format!("/acct-secondary/{resource}");
        let mut request = client.request(method, &path, headers, content);
        client.sign(&mut request, Scheme::SharedKey);
        let response = client.call(request);
        let expected = (403, "InsufficientAccountPermissions");
        assert_eq!(status_and_code(&response), expected, "{method} {resource}");
        assert!(body(&response).contains("Write operations are not allowed."));
    }
    let tables = client.send("GET", "Tables", &[], "");
    assert_eq!(body(&tables), r#"{"value":[{"TableName":"people"}]}"#);
    let entities = client.send("GET", "people()?$select=PartitionKey,RowKey,a", &[], "");
    assert_eq!(
        body(&entities),
        r#"{"value":[{"PartitionKey":"p","RowKey":"r","a":null}]}"#
    );
}

#[test]
fn answers_have_the_common_headers() {
    let client = Client::new();
    let id = ("x-ms-client-request-id", "client-1");
    let found = client.send("GET", "Tables", &[id], "");
    let missing = client.send("GET", "people()", &[id], "");
    for response in [&found, &missing] {
        for (name, value) in [
            ("cache-control", "no-cache"),
            ("x-content-type-options", "nosniff"),
            ("x-ms-version", "2019-02-02"),
            ("x-ms-client-request-id", "client-1"),
            (
                "content-type",
                "application/json;odata=nometadata;streaming=true;charset=utf-8",
            ),
        ] {
            assert_eq!(header(response, name), Some(value));
        }
        let server = header(response, "server").unwrap();
        assert!(server.starts_with("Windows-Azure-Table/1.0 "), "{server}");
        assert_eq!(header(response, "x-ms-error-code"), None);
    }
    let id = header(&missing, "x-ms-request-id").unwrap();
    assert_ne!(header(&found, "x-ms-request-id"), Some(id));
    let expected = format!(
        r#"{{"odata.error":{{"code":"TableNotFound","message":{{"lang":"en-US","value":"The table specified does not exist.\nRequestId:{id}\nTime:{NOW}"}}}}}}"#
    );
    assert_eq!(body(&missing), expected);
}

#[test]
fn what_cannot_be_served_is_named() {
    let client = Client::with_table();
    for (method, resource, headers, expected) in [
        (
            "GET",
            "Tables",
            [("x-ms-version", "soon")],
            (400, "InvalidHeaderValue"),
        ),
        ("GET", "", NONE, (400, "InvalidUri")),
        ("GET", "people/more", NONE, (400, "InvalidUri")),
        ("GET", "a-b", NONE, (400, "InvalidResourceName")),
        ("HEAD", "people()", NONE, (405, "MethodNotAllowed")),
        ("HEAD", "Tables", NONE, (405, "MethodNotAllowed")),
        ("BREW", "people()", NONE, (405, "UnsupportedHttpVerb")),
        ("PUT", "Tables", NONE, (405, "MethodNotAllowed")),
        ("DELETE", "people()", NONE, (405, "MethodNotAllowed")),
        (
            "GET",
            "Tables",
            [("accept", "application/atom+xml")],
            (415, "AtomFormatNotSupported"),
        ),
        ("GET", "Tables?$filter=%FF", NONE, (400, "InvalidInput")),
    ] {
        let response = client.send(method, resource, &headers, "");
        assert_eq!(status_and_code(&response), expected, "{method} {resource}");
    }
    let unknown = client.request("GET", "/nobody/Tables", &[], "");
    assert_eq!(
        status_and_code(&client.call(unknown)),
        (404, "ResourceNotFound")
    );
}

#[test]
fn the_front_refuses_in_the_same_form() {
    let client = Client::new();
    let request = client.request("PUT", "/acct/people", &[], "");
    let (head, _) = request.into_parts();
    let code = tablesdk_protocol::ErrorCode::RequestBodyTooLarge;
    let response = client.service.refuse_head(&head, &code.into());
    assert_eq!(status_and_code(&response), (413, "RequestBodyTooLarge"));
    assert_eq!(header(&response, "x-ms-version"), Some("2019-02-02"));
}

proptest! {
    #[test]
    fn whatever_is_asked_is_answered(
        method in "GET|PUT|POST|PATCH|MERGE|DELETE|HEAD|OPTIONS",
        resource in "(people/)?(people|Tables|\\$batch|\\$metadata|\\$MetricsCapacityBlob|)(\\(|\\(\\)|\\(PartitionKey='[a-z%0-9]{0,4}',RowKey='[a-z']{0,3}'\\))?",
        query in "(\\$filter|\\$top|\\$select|\\$format|NextPartitionKey|NextRowKey|comp|timeout)?=[a-zA-Z0-9%'!()*-]{0,12}",
        header in "if-match|if-none-match|prefer|accept|x-http-method|x-ms-version|content-type|host|origin|access-control-request-method|content-md5|dataserviceversion|authorization",
        value in "[ -~]{0,12}",
        body in r#"[{}"\[\]:,a-zA-Z0-9@. -]{0,30}|\{"PartitionKey":"[a-z/]{0,2}","RowKey":"[a-z]{0,2}","[a-z]{0,2}":[0-9.e"]{0,4}\}"#,
    ) {
        let client = Client::with_table();
        let response = client.send(&method, &format!("{resource}?{query}"), &[(&header, value.trim())], &body);
        let status = response.status().as_u16();
        prop_assert!((200..500).contains(&status) || status == 501, "{status}");
        prop_assert!(response.headers().contains_key("x-ms-request-id"));
    }
}

const NONE: [(&str, &str); 1] = [("x-unknown", "ignored")];
