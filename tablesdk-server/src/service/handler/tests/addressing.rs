//! Accounts in the host and in the path: the account of a URL, the signature of the URL, and the URLs in responses.

use super::*;

const HOST: &str = "acct.table.localhost:10002";

/// Sends a request with that host and path, signed as it stands.
fn send(
    client: &Client,
    method: &str,
    host: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response<Bytes> {
    let mut all = vec![("host", host)];
    all.extend(headers);
    let mut request = client.request(method, path, &all, body);
    client.sign(&mut request, Scheme::SharedKey);
    client.call(request)
}

#[test]
fn an_account_is_named_by_the_host() {
    let client = Client::new();
    let full = [("accept", "application/json;odata=fullmetadata")];
    let table = r#"{"TableName":"people"}"#;
    let created = send(&client, "POST", HOST, "/Tables", &full, table);
    assert_eq!(created.status(), 201);
    let location = "http://acct.table.localhost:10002/Tables('people')";
    assert_eq!(header(&created, "location"), Some(location));
    assert_eq!(
        body(&created),
        r#"{"odata.metadata":"http://acct.table.localhost:10002/$metadata#Tables/@Element","odata.type":"acct.Tables","odata.id":"http://acct.table.localhost:10002/Tables('people')","odata.editLink":"Tables('people')","TableName":"people"}"#
    );

    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let inserted = send(&client, "POST", HOST, "/people", &full, entity);
    let location = "http://acct.table.localhost:10002/people(PartitionKey='p',RowKey='r')";
    assert_eq!(header(&inserted, "location"), Some(location));
    let id = format!(r#""odata.id":"{location}""#);
    assert!(body(&inserted).contains(&id), "{}", body(&inserted));
    // It is the same account under every name, and the host comes back as it was spelled.
    for (host, base) in [
        (HOST, "http://acct.table.localhost:10002"),
        (
            "Acct.Table.Localhost:41000",
            "http://Acct.Table.Localhost:41000",
        ),
        ("acct.example.com", "http://acct.example.com"),
    ] {
        let read = send(&client, "GET", host, "/people()", &full, "");
        assert_eq!(read.status(), 200, "{host}");
        let metadata = format!(r#"{{"odata.metadata":"{base}/$metadata#people""#);
        assert!(body(&read).starts_with(&metadata), "{}", body(&read));
    }
    let by_path = client.send("GET", "people()?$select=RowKey", &[], "");
    assert_eq!(body(&by_path), r#"{"value":[{"RowKey":"r"}]}"#);
}

#[test]
fn a_host_without_an_account_leaves_it_to_the_path() {
    let client = Client::with_table();
    for host in [
        "127.0.0.1:10002",
        "[::1]:10002",
        "localhost:10002",
        "host.docker.internal:10002",
        "tables",
        "nobody.table.localhost:10002",
    ] {
        let full = [("accept", "application/json;odata=fullmetadata")];
        let read = send(&client, "GET", host, "/acct/Tables", &full, "");
        assert_eq!(read.status(), 200, "{host}");
        let id = format!(r#""odata.id":"http://{host}/acct/Tables('people')""#);
        assert!(body(&read).contains(&id), "{}", body(&read));
    }
}

#[test]
fn every_account_has_its_own_tables() {
    let mut client = Client::with_table();
    let second = "second.table.localhost";
    // Its key is the same text, but its name is signed, too.
    let stranger = send(&client, "GET", second, "/Tables", &[], "");
    assert_eq!(status_and_code(&stranger), (403, "AuthenticationFailed"));
    client.key = SharedKey::new("second", "c2VjcmV0").unwrap();
    let get = |path: &str, host: &str| {
        let mut request = client.request("GET", path, &[("host", host)], "");
        let text = string_to_sign(
            Scheme::SharedKeyLite,
            "second",
            request.method(),
            request.uri(),
            request.headers(),
        );
        let signature = client.key.sign(&text);
        let value = format!("SharedKeyLite second:{}", signature.expose());
        let value = HeaderValue::from_str(&value).unwrap();
        request.headers_mut().insert("authorization", value);
        client.call(request)
    };
    for (path, host) in [("/Tables", second), ("/second/Tables", "127.0.0.1")] {
        let found = get(path, host);
        assert_eq!(
            (found.status().as_u16(), body(&found)),
            (200, r#"{"value":[]}"#)
        );
    }
    // Below a host that names one account, the other's name is a table's.
    let found = get("/acct()", second);
    assert_eq!(status_and_code(&found), (404, "TableNotFound"));
}

#[test]
fn the_resource_that_is_signed_has_the_account_once() {
    let client = Client::with_table();
    let signature = |resource: &str| {
        let date = client.clock.now().to_http_date();
        let text = format!("GET\n\n\n{date}\n{resource}");
        format!("SharedKey acct:{}", client.key.sign(&text).expose())
    };
    for (host, path, resource, status) in [
        (HOST, "/Tables?$top=5", "/acct/Tables", 200),
        (HOST, "/people?comp=acl", "/acct/people?comp=acl", 200),
        (HOST, "/Tables", "/acct/acct/Tables", 403),
        ("127.0.0.1", "/acct/Tables", "/acct/acct/Tables", 200),
        ("127.0.0.1", "/acct/Tables", "/acct/Tables", 403),
    ] {
        let credential = signature(resource);
        let headers = [("host", host), ("authorization", &credential)];
        let response = client.call(client.request("GET", path, &headers, ""));
        assert_eq!(response.status(), status, "{host}{path} as {resource}");
    }
}

#[test]
fn a_secondary_is_named_by_the_host() {
    let client = Client::with_table();
    let host = "acct-secondary.table.localhost:10002";
    let minimal = [("accept", "application/json;odata=minimalmetadata")];
    let read = send(&client, "GET", host, "/Tables", &minimal, "");
    let expected = format!(
        r#"{{"odata.metadata":"http://{host}/$metadata#Tables","value":[{{"TableName":"people"}}]}}"#
    );
    assert_eq!(body(&read), expected);
    let stats = "/?restype=service&comp=stats";
    assert_eq!(send(&client, "GET", host, stats, &[], "").status(), 200);
    assert_eq!(send(&client, "GET", HOST, stats, &[], "").status(), 400);
    let write = send(&client, "DELETE", host, "/Tables('people')", &[], "");
    let expected = (403, "InsufficientAccountPermissions");
    assert_eq!(status_and_code(&write), expected);
}
