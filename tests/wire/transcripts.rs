//! Requests and answers as the service's documentation and recordings have them, apart from what differs each time.

use tablesdk_server::TableServer;

use crate::raw::{Answer, send};

const JSON: &str = "Content-Type: application/json";

async fn people() -> TableServer {
    let server = TableServer::start().await.unwrap();
    let created = send(
        &server,
        true,
        "POST /Tables",
        &[JSON],
        r#"{"TableName":"people"}"#,
    )
    .await;
    assert_eq!(created.status, 201, "{created:?}");
    server
}

/// The answer with timestamps and the server's address replaced.
fn fixed(server: &TableServer, answer: &Answer) -> String {
    let mut body = answer.body.replace(server.endpoint(), "BASE");
    for (before, after) in [("datetime'", "'\\\""), ("\"Timestamp\":\"", "\"")] {
        let mut rest = body.as_str();
        let mut replaced = String::new();
        while let Some((start, tail)) = rest.split_once(before) {
            let (_, end) = tail.split_once(after).unwrap();
            replaced += &format!("{start}{before}TIME{after}");
            rest = end;
        }
        body = replaced + rest;
    }
    body
}

#[tokio::test]
async fn create_table() {
    let server = TableServer::start().await.unwrap();
    let answer = send(
        &server,
        true,
        "POST /Tables",
        &[JSON, "Accept: application/json;odata=nometadata"],
        r#"{"TableName":"people"}"#,
    )
    .await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (201, r#"{"TableName":"people"}"#)
    );
    assert_eq!(
        answer.header("Location"),
        Some(&*format!("{}/Tables('people')", server.endpoint()))
    );
    assert_eq!(answer.header("Preference-Applied"), None);
    let answer = send(
        &server,
        true,
        "POST /Tables",
        &[JSON, "Prefer: return-no-content"],
        r#"{"TableName":"more"}"#,
    )
    .await;
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    assert_eq!(answer.header("DataServiceId"), answer.header("Location"));
    assert_eq!(
        answer.header("Preference-Applied"),
        Some("return-no-content")
    );
}

#[tokio::test]
async fn insert_and_get_at_every_level_of_metadata() {
    let server = people().await;
    let entity = r#"{"PartitionKey":"p'k","RowKey":"r k","age":39,"married":true,"ratio":3.1,"even@odata.type":"Edm.Double","even":3,"birthday@odata.type":"Edm.DateTime","birthday":"1970-10-04T00:00:00.0000000Z","binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","clsid@odata.type":"Edm.Guid","clsid":"C9DA6455-213D-42C9-9A79-3E9149A57833","big":"255","big@odata.type":"Edm.Int64","none":null}"#;
    let answer = send(&server, true, "POST /people", &[JSON], entity).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let minimal = r#"{"odata.metadata":"BASE/$metadata#people/@Element","odata.etag":"W/\"datetime'TIME'\"","PartitionKey":"p'k","RowKey":"r k","Timestamp":"TIME","age":39,"married":true,"ratio":3.1,"even":3.0,"birthday@odata.type":"Edm.DateTime","birthday":"1970-10-04T00:00:00Z","binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","clsid@odata.type":"Edm.Guid","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833","big@odata.type":"Edm.Int64","big":"255"}"#;
    assert_eq!(fixed(&server, &answer), minimal);
    let path = "/people(PartitionKey='p''k',RowKey='r%20k')";
    assert_eq!(
        answer.header("Location"),
        Some(&*format!("{}{path}", server.endpoint()))
    );

    let get = |level: &'static str| {
        let server = &server;
        async move {
            let accept = format!("Accept: application/json;odata={level}");
            let answer = send(server, true, &format!("GET {path}"), &[&accept], "").await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let content_type =
                format!("application/json;odata={level};streaming=true;charset=utf-8");
            assert_eq!(answer.header("Content-Type"), Some(&*content_type));
            assert!(answer.header("ETag").unwrap().starts_with("W/\"datetime'"));
            fixed(server, &answer)
        }
    };
    assert_eq!(get("minimalmetadata").await, minimal);
    assert_eq!(
        get("nometadata").await,
        r#"{"PartitionKey":"p'k","RowKey":"r k","Timestamp":"TIME","age":39,"married":true,"ratio":3.1,"even":3.0,"birthday":"1970-10-04T00:00:00Z","binary":"YmluYXJ5","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833","big":"255"}"#
    );
    let account = server.credential().account().to_owned();
    assert!(get("fullmetadata").await.starts_with(&format!(
        r#"{{"odata.metadata":"BASE/$metadata#people/@Element","odata.type":"{account}.people","odata.id":"BASE/people(PartitionKey='p''k',RowKey='r%20k')","odata.etag":"W/\"datetime'TIME'\"","odata.editLink":"people(PartitionKey='p''k',RowKey='r%20k')","PartitionKey":"p'k","RowKey":"r k","Timestamp@odata.type":"Edm.DateTime","Timestamp":"TIME","age":39"#
    )));
}

#[tokio::test]
async fn query_with_paging() {
    let server = people().await;
    for row in ["rk1", "rk2", "rk3"] {
        let entity = format!(r#"{{"PartitionKey":"pk","RowKey":"{row}"}}"#);
        assert_eq!(
            send(&server, true, "POST /people", &[JSON], &entity)
                .await
                .status,
            201
        );
    }
    let accept = "Accept: application/json;odata=nometadata";
    let query = "GET /people()?$top=2&$select=RowKey&$filter=PartitionKey%20eq%20'pk'";
    let page = send(&server, true, query, &[accept], "").await;
    assert_eq!(
        page.body,
        r#"{"value":[{"RowKey":"rk1"},{"RowKey":"rk2"}]}"#
    );
    assert_eq!(
        page.header("x-ms-continuation-NextPartitionKey"),
        Some("1!4!cGs-")
    );
    assert_eq!(
        page.header("x-ms-continuation-NextRowKey"),
        Some("1!4!cmsz")
    );
    let query = format!("{query}&NextPartitionKey=1%214%21cGs-&NextRowKey=1%214%21cmsz");
    let page = send(&server, true, &query, &[accept], "").await;
    assert_eq!(page.body, r#"{"value":[{"RowKey":"rk3"}]}"#);
    assert_eq!(page.header("x-ms-continuation-NextPartitionKey"), None);
}

#[tokio::test]
async fn a_selected_property_that_is_missing_is_null() {
    let server = people().await;
    let entity = r#"{"PartitionKey":"pk","RowKey":"rk","age":39}"#;
    send(&server, true, "POST /people", &[JSON], entity).await;
    let path = "GET /people(PartitionKey='pk',RowKey='rk')?$select=age,nope";
    let answer = send(
        &server,
        true,
        path,
        &["Accept: application/json;odata=nometadata"],
        "",
    )
    .await;
    assert_eq!(answer.body, r#"{"age":39,"nope":null}"#);
}

#[tokio::test]
async fn ids_and_versions_are_echoed() {
    let server = people().await;
    let headers = [
        "x-ms-version: 2020-12-06",
        "x-ms-client-request-id: my-request",
    ];
    let answer = send(&server, true, "GET /Tables", &headers, "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-ms-version"), Some("2020-12-06"));
    assert_eq!(answer.header("x-ms-client-request-id"), Some("my-request"));
    assert_eq!(answer.header("Cache-Control"), Some("no-cache"));
    assert_eq!(answer.header("X-Content-Type-Options"), Some("nosniff"));
    assert!(answer.header("x-ms-request-id").is_some());
    assert!(answer.header("Date").is_some());
}

#[tokio::test]
async fn merge_comes_as_its_own_verb_and_through_post() {
    let server = people().await;
    let entity = r#"{"PartitionKey":"pk","RowKey":"rk","a":1}"#;
    send(&server, true, "POST /people", &[JSON], entity).await;
    let path = "/people(PartitionKey='pk',RowKey='rk')";
    for (verb, tunnel) in [
        ("MERGE", None),
        ("PATCH", None),
        ("POST", Some("X-HTTP-Method: MERGE")),
    ] {
        let mut headers = vec![JSON, "If-Match: *"];
        headers.extend(tunnel);
        let answer = send(
            &server,
            true,
            &format!("{verb} {path}"),
            &headers,
            r#"{"b":2}"#,
        )
        .await;
        assert_eq!((answer.status, answer.body.as_str()), (204, ""), "{verb}");
        assert!(answer.header("ETag").is_some());
    }
    let answer = send(
        &server,
        true,
        &format!("GET {path}?$select=a,b"),
        &["Accept: application/json;odata=nometadata"],
        "",
    )
    .await;
    assert_eq!(answer.body, r#"{"a":1,"b":2}"#);
}
