//! Whole responses of the flavor `CosmosDb`, as Cosmos DB was recorded: the first line, the headers and the body.

use std::fmt::Write as _;

use harness::raw::Response;
use tablesdk::Timestamp;
use tablesdk_server::testing::{Flavor, Throttle};

use super::Subject;

const ENTITY: &str = "/People(PartitionKey='p',RowKey='k')";

/// A response without what differs from run to run. The port, the account and the time have placeholders.
fn shown(subject: &Subject, response: &Response) -> String {
    let (address, account) = (subject.client.address, subject.client.key.account());
    let id = response.header("x-ms-request-id").unwrap();
    let (first, headers) = response.head.split_once("\r\n").unwrap();
    let mut headers: Vec<_> = headers
        .lines()
        .filter(|line| {
            let name = line.split(':').next().unwrap().to_ascii_lowercase();
            let varying = [
                "connection",
                "content-length",
                "date",
                "server",
                "x-ms-request-id",
            ];
            !varying.contains(&&*name)
        })
        .collect();
    // Their order was not recorded.
    headers.sort_unstable();
    let mut shown = format!("{first}\n");
    for line in headers {
        writeln!(shown, "{line}").unwrap();
    }
    write!(shown, "\n{}", response.body.trim_end_matches("\r\n")).unwrap();
    let shown = shown.replace(&format!("http://{address}/{account}"), "URL");
    without_times(&shown.replace(id, "ID"))
}

/// The text with a placeholder for each time of seven digits, also for one whose colons are encoded.
fn without_times(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let time = [28, 32].into_iter().find_map(|length| {
            let (time, rest) = rest.split_at_checked(length)?;
            let time = time.replace("%3A", ":");
            let is_time = time.len() == 28 && time.parse::<Timestamp>().is_ok();
            is_time.then_some(rest)
        });
        if let Some(after) = time {
            shown.push_str("TIME");
            rest = after;
        } else {
            shown.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    shown
}

/// Asserts the response to each request.
async fn assert_responses(subject: &Subject, exchanges: &[(&str, &[&str], &str, &str)]) {
    for (line, headers, body, expected) in exchanges {
        let response = subject.send(line, headers, body).await;
        assert_eq!(shown(subject, &response), *expected, "{line} {body}");
    }
}

#[tokio::test]
async fn successes_have_the_form_of_cosmos_db() {
    let subject = Subject::with(Flavor::CosmosDb).await;
    let put = format!("PUT {ENTITY}");
    let (get, delete) = (format!("GET {ENTITY}"), format!("DELETE {ENTITY}"));
    assert_responses(
        &subject,
        &[
            (
                "POST /Tables",
                &[],
                r#"{"TableName":"Others"}"#,
                "HTTP/1.1 201 Ok\n\
                content-type: application/json;odata=minimalmetadata\n\
                etag: W/\"datetime'TIME'\"\n\
                location: URL/Tables('Others')\n\
                \n\
                {\"TableName\":\"Others\",\"odata.metadata\":\"URL/$metadata#Tables/@Element\"}",
            ),
            (
                "POST /People",
                &["Prefer: return-content"],
                r#"{"A":1,"PartitionKey":"p","RowKey":"k"}"#,
                "HTTP/1.1 201 Created\n\
                content-type: application/json;odata=minimalmetadata\n\
                etag: W/\"datetime'TIME'\"\n\
                location: URL/People(PartitionKey='p',RowKey='k')\n\
                preference-applied: return-content\n\
                \n\
                {\"odata.metadata\":\"URL/People/$metadata#People/@Element\",\"odata.etag\":\"W/\\\"datetime'TIME'\\\"\",\
                \"A\":1,\"PartitionKey\":\"p\",\"RowKey\":\"k\",\"Timestamp\":\"TIME\"}",
            ),
            (
                &get,
                &[],
                "",
                "HTTP/1.1 200 Ok\n\
                content-type: application/json;odata=minimalmetadata\n\
                etag: W/\"datetime'TIME'\"\n\
                \n\
                {\"odata.metadata\":\"URL/People/$metadata#People/@Element\",\"odata.etag\":\"W/\\\"datetime'TIME'\\\"\",\
                \"A\":1,\"PartitionKey\":\"p\",\"RowKey\":\"k\",\"Timestamp\":\"TIME\"}",
            ),
            (
                "GET /People()?$filter=RowKey%20eq%20'k'&$select=A",
                &[],
                "",
                "HTTP/1.1 200 Ok\n\
                content-type: application/json;odata=minimalmetadata\n\
                \n\
                {\"value\":[{\"odata.etag\":\"W/\\\"datetime'TIME'\\\"\",\"A\":1}],\"odata.metadata\":\"URL/$metadata#People\"}",
            ),
            (
                "POST /People",
                &["Prefer: return-no-content"],
                r#"{"PartitionKey":"p","RowKey":"2"}"#,
                "HTTP/1.1 204 No Content\n\
                etag: W/\"datetime'TIME'\"\n\
                location: URL/People(PartitionKey='p',RowKey='2')\n\
                preference-applied: return-no-content\n\
                \n",
            ),
            (
                &put,
                &[],
                "{}",
                "HTTP/1.1 204 No Content\n\
                content-type: application/json\n\
                etag: W/\"datetime'TIME'\"\n\
                \n",
            ),
            (
                &put,
                &["If-Match: *"],
                "{}",
                "HTTP/1.1 204 No Content\n\
                etag: W/\"datetime'TIME'\"\n\
                \n",
            ),
            (&delete, &["If-Match: *"], "", "HTTP/1.1 204 No Content\n\n"),
            ("DELETE /Tables('Others')", &[], "", "HTTP/1.1 204 No Content\n\n"),
        ],
    )
    .await;
}

#[tokio::test]
async fn errors_have_the_form_of_cosmos_db() {
    let subject = Subject::with(Flavor::CosmosDb).await;
    let error = |status: &str, level: &str, code: &str, message: &str| {
        format!(
            "HTTP/1.1 {status}\ncontent-type: application/json;odata={level}\n\n\
            {{\"odata.error\":{{\"code\":\"{code}\",\"message\":{{\"lang\":\"en-us\",\"value\":\"{message}\\nRequestID:ID\\n\"}}}}}}"
        )
    };
    let gateway = |message: &str| {
        let activity = r"\r\nActivityId: ID, documentdb-dotnet-sdk/2.11.0 Host/64-bit MicrosoftWindowsNT/6.2.9200.0";
        format!("{message}{activity}")
    };
    let missing = "The specified resource does not exist.";
    let exists = "The specified entity already exists.";
    let table_exists = "The specified table already exists.";
    let condition = "The update condition specified in the request was not satisfied.";
    let none = r#"If-Match: W/"datetime'2012-06-15T22%3A51%3A44.9662825Z'""#;
    assert_responses(
        &subject,
        &[
            (
                "GET /People(PartitionKey='p',RowKey='none')",
                &[],
                "",
                &error(
                    "404 Not Found",
                    "minimalmetadata",
                    "ResourceNotFound",
                    missing,
                ),
            ),
            (
                "DELETE /Tables('None')",
                &[],
                "",
                &error("404 Not Found", "fullmetadata", "ResourceNotFound", missing),
            ),
            (
                "POST /People",
                &[],
                r#"{"PartitionKey":"p","RowKey":"r"}"#,
                &error(
                    "409 Conflict",
                    "minimalmetadata",
                    "EntityAlreadyExists",
                    exists,
                ),
            ),
            (
                "POST /Tables",
                &[],
                r#"{"TableName":"People"}"#,
                &error(
                    "409 Conflict",
                    "minimalmetadata",
                    "TableAlreadyExists",
                    table_exists,
                ),
            ),
            (
                "PUT /People(PartitionKey='p',RowKey='r')",
                &[none],
                "{}",
                &error(
                    "412 Precondition Failed",
                    "fullmetadata",
                    "UpdateConditionNotSatisfied",
                    condition,
                ),
            ),
            (
                "POST /People",
                &[],
                r#"{"RowKey":"r"}"#,
                &error(
                    "400 Bad Request",
                    "fullmetadata",
                    "PropertiesNeedValue",
                    &gateway("PartitionKey/RowKey cannot be empty"),
                ),
            ),
            (
                "GET /People()?$filter=aaa%20bbb%20ccc",
                &[],
                "",
                &error(
                    "400 Bad Request",
                    "minimalmetadata",
                    "InvalidInput",
                    &gateway("Request url is invalid."),
                ),
            ),
            (
                "PATCH /People(PartitionKey='p',RowKey='r')",
                &[],
                "{}",
                &error(
                    "400 Bad Request",
                    "fullmetadata",
                    "InvalidInput",
                    &gateway("One of the input values is invalid."),
                ),
            ),
            (
                "GET /?restype=service&comp=properties",
                &["Accept: application/xml"],
                "",
                &error(
                    "501 Not Implemented",
                    "fullmetadata",
                    "NotImplemented",
                    &gateway("The requested operation is not supported."),
                ),
            ),
        ],
    )
    .await;

    let server = subject.server.as_ref().unwrap();
    server.faults().throttle(Throttle::none().per_account(0));
    let throttled = subject.send("GET /People()", &[], "").await;
    let throttled = shown(&subject, &throttled);
    let (head, body) = throttled.split_once("\n\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 429 Too Many Requests\n"),
        "{head}"
    );
    assert!(head.contains("x-ms-retry-after-ms: "), "{head}");
    assert!(
        body.starts_with(r#"{"odata.error":{"code":"TooManyRequests","message":{"lang":"en-us","value":"Message: {\"Errors\":["#),
        "{body}"
    );
    assert!(
        body.ends_with(r#"\r\nActivityId: ID\nRequestID:ID\n"}}}"#),
        "{body}"
    );
}
