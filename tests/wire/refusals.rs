//! Bad input to the server: each request gets the documented status and error code, and a body that clients can read.

use tablesdk_server::TableServer;

use crate::raw::send;

const JSON: &str = "Content-Type: application/json";

async fn people() -> TableServer {
    let server = TableServer::start().await.unwrap();
    send(
        &server,
        true,
        "POST /Tables",
        &[JSON],
        r#"{"TableName":"people"}"#,
    )
    .await;
    server
}

#[tokio::test]
async fn requests_without_a_good_signature_are_refused() {
    let server = people().await;
    let account = server.credential().account().to_owned();
    let now = tablesdk::Timestamp::try_from(std::time::SystemTime::now())
        .unwrap()
        .to_http_date();
    let date = format!("x-ms-date: {now}");
    let wrong = format!("Authorization: SharedKey {account}:d3Jvbmc=");
    let stranger = "Authorization: SharedKey stranger:d3Jvbmc=".to_owned();
    for (headers, status, code) in [
        (vec![&*date], 403, "AuthenticationFailed"),
        (vec![&*date, &*wrong], 403, "AuthenticationFailed"),
        (vec![&*date, &*stranger], 403, "AuthenticationFailed"),
        (vec![&*wrong], 403, "AuthenticationFailed"),
    ] {
        let answer = send(&server, false, "GET /Tables", &headers, "").await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (status, code),
            "{headers:?}"
        );
        assert_eq!(answer.header("x-ms-error-code"), Some(code));
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_with_its_code() {
    let server = people().await;
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    for (request, headers, body, status, code) in [
        // Malformed JSON.
        ("POST /people", vec![JSON], "{", 400, "InvalidInput"),
        ("POST /people", vec![JSON], "[]", 400, "InvalidInput"),
        (
            "POST /people",
            vec![JSON],
            r#"{"PartitionKey":"p","RowKey":"r","a":{}}"#,
            400,
            "InvalidInput",
        ),
        (
            "POST /Tables",
            vec![JSON],
            "{\"TableName\":1}",
            400,
            "InvalidInput",
        ),
        // Missing and forbidden keys.
        (
            "POST /people",
            vec![JSON],
            r#"{"PartitionKey":"p"}"#,
            400,
            "PropertiesNeedValue",
        ),
        (
            "POST /people",
            vec![JSON],
            r#"{"PartitionKey":"p","RowKey":"a/b"}"#,
            400,
            "OutOfRangeInput",
        ),
        (
            "GET /people(PartitionKey='p',RowKey='a%23b')",
            vec![],
            "",
            400,
            "OutOfRangeInput",
        ),
        (
            "GET /people(PartitionKey='p')",
            vec![],
            "",
            400,
            "InvalidInput",
        ),
        // Names of tables.
        (
            "POST /Tables",
            vec![JSON],
            r#"{"TableName":"a-b-c"}"#,
            400,
            "InvalidResourceName",
        ),
        (
            "POST /Tables",
            vec![JSON],
            r#"{"TableName":"ab"}"#,
            400,
            "OutOfRangeInput",
        ),
        ("POST /Tables", vec![JSON], "{}", 400, "PropertiesNeedValue"),
        ("GET /a-b-c()", vec![], "", 400, "InvalidResourceName"),
        ("POST /missing", vec![JSON], entity, 404, "TableNotFound"),
        (
            "DELETE /Tables('missing')",
            vec![],
            "",
            404,
            "ResourceNotFound",
        ),
        // Filters and paging.
        (
            "GET /people()?$filter=aaa%20bbb%20ccc",
            vec![],
            "",
            400,
            "InvalidInput",
        ),
        (
            "GET /people()?$filter=startswith(a,'b')",
            vec![],
            "",
            501,
            "NotImplemented",
        ),
        (
            "GET /people()?$filter=1%20eq%202",
            vec![],
            "",
            501,
            "NotImplemented",
        ),
        (
            "GET /people()?$orderby=a",
            vec![],
            "",
            501,
            "NotImplemented",
        ),
        ("GET /people()?$top=1001", vec![], "", 400, "InvalidInput"),
        ("GET /people()?$top=-1", vec![], "", 400, "InvalidInput"),
        (
            "GET /people()?NextPartitionKey=nonsense",
            vec![],
            "",
            400,
            "InvalidInput",
        ),
        (
            "GET /people()?NextPartitionKey=1!4!cGs-&NextRowKey=",
            vec![],
            "",
            400,
            "InvalidInput",
        ),
        // Conditions.
        (
            "DELETE /people(PartitionKey='p',RowKey='r')",
            vec![],
            "",
            400,
            "InvalidInput",
        ),
        (
            "DELETE /people(PartitionKey='p',RowKey='r')",
            vec!["If-Match: nonsense"],
            "",
            400,
            "InvalidInput",
        ),
        (
            "DELETE /people(PartitionKey='p',RowKey='r')",
            vec!["If-Match: *"],
            "",
            404,
            "ResourceNotFound",
        ),
        (
            "PUT /people(PartitionKey='p',RowKey='r')",
            vec![JSON, "If-Match: *"],
            "{}",
            404,
            "ResourceNotFound",
        ),
        // Media types.
        (
            "POST /people",
            vec!["Content-Type: text/plain"],
            entity,
            415,
            "MediaTypeNotSupported",
        ),
        (
            "GET /people()",
            vec!["Accept: application/atom+xml"],
            "",
            415,
            "AtomFormatNotSupported",
        ),
        // Unknown routes and verbs.
        ("GET /", vec![], "", 400, "InvalidUri"),
        ("GET /people/more/of/it", vec![], "", 400, "InvalidUri"),
        ("PUT /people", vec![JSON], "{}", 405, "MethodNotAllowed"),
        ("BREW /people", vec![], "", 405, "UnsupportedHttpVerb"),
        (
            "PUT /people(PartitionKey='p',RowKey='r')",
            vec![JSON, "X-HTTP-Method: MERGE"],
            "{}",
            400,
            "XMethodNotUsingPost",
        ),
        (
            "POST /people(PartitionKey='p',RowKey='r')",
            vec![JSON, "X-HTTP-Method: BREW"],
            "{}",
            400,
            "XMethodIncorrectValue",
        ),
        // Batches without anything in them, and without boundaries.
        (
            "POST /$batch",
            vec!["Content-Type: multipart/mixed; boundary=b"],
            "--b--",
            400,
            "InvalidInput",
        ),
        (
            "POST /$batch",
            vec!["Content-Type: multipart/mixed"],
            "--b--",
            400,
            "InvalidInput",
        ),
        (
            "POST /$batch",
            vec![JSON],
            "[]",
            415,
            "MediaTypeNotSupported",
        ),
        ("GET /$batch", vec![], "", 405, "MethodNotAllowed"),
    ] {
        let answer = send(&server, true, request, &headers, body).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (status, code),
            "{request} {headers:?} {body}"
        );
        assert!(
            answer.body.contains("\\nRequestId:") && answer.body.contains("\\nTime:"),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn an_unroutable_request_is_refused_only_after_it_is_authenticated() {
    let server = people().await;
    for request in [
        "GET /people/more",
        "BREW /x",
        "GET /people()?$top=x",
        "POST /$batch",
    ] {
        let answer = send(&server, false, request, &[], "").await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (403, "AuthenticationFailed"),
            "{request}"
        );
    }
}

#[tokio::test]
async fn a_body_over_4_mib_is_refused() {
    let server = people().await;
    let body = "x".repeat(4 * 1024 * 1024 + 1);
    for (sign, status, code) in [
        (true, 413, "RequestBodyTooLarge"),
        // Whoever is not known learns nothing of the limit.
        (false, 403, "AuthenticationFailed"),
    ] {
        let answer = send(&server, sign, "POST /people", &[], &body).await;
        assert_eq!((answer.status, &*answer.code()), (status, code));
    }
}
