//! Whole responses of the flavor `CosmosDb`, as Cosmos DB was recorded: the first line, the headers
//! and the body.

use harness::raw::Response;
use tablesdk::Timestamp;
use tablesdk_server::testing::{Flavor, Throttle};

use super::Subject;

/// Headers that differ from run to run.
const VARYING: [&str; 5] = [
    "connection",
    "content-length",
    "date",
    "server",
    "x-ms-request-id",
];
/// The text that the gateway adds to its messages.
const GATEWAY: &str =
    r"\r\nActivityId: ID, documentdb-dotnet-sdk/2.11.0 Host/64-bit MicrosoftWindowsNT/6.2.9200.0";

/// A response without what differs from run to run. The port, the account, the time and the gateway
/// have placeholders.
fn shown(subject: &Subject, response: &Response) -> String {
    let (address, account) = (subject.client.address, subject.client.key.account());
    let id = response.header("x-ms-request-id").unwrap();
    let (first, headers) = response.head.split_once("\r\n").unwrap();
    let is_varying = |line: &&str| {
        let name = line.split(':').next().unwrap().to_ascii_lowercase();
        VARYING.contains(&&*name)
    };
    let mut headers: Vec<_> = headers.lines().filter(|line| !is_varying(line)).collect();
    // Their order was not recorded.
    headers.sort_unstable();
    let shown = format!("{first}\n{}\n\n{}", headers.join("\n"), response.body);
    let shown = shown.replace(&format!("http://{address}/{account}"), "URL");
    let shown = without_times(&shown.replace(id, "ID")).replace(GATEWAY, "GATEWAY");
    shown.trim_end().to_owned()
}

/// The text with a placeholder for each time of seven digits, also for one whose colons are
/// encoded.
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

/// Sends the requests of a text, whose lines begin with `> `, and asserts the responses between
/// them. A backslash at the end of a line joins it with the next one.
async fn assert_responses(subject: &Subject, text: &str) {
    let text = text.replace("\\\n", "");
    for exchange in text.strip_prefix("> ").unwrap().split("\n\n> ") {
        let (line, mut expected) = exchange.split_once('\n').unwrap();
        let (mut headers, mut body) = (Vec::new(), "");
        while let Some(more) = expected.strip_prefix("> ") {
            let (more, rest) = more.split_once('\n').unwrap();
            if more.starts_with('{') {
                body = more;
            } else {
                headers.push(more);
            }
            expected = rest;
        }
        let response = subject.send(line, &headers, body).await;
        assert_eq!(shown(subject, &response), expected.trim_end(), "{line}");
    }
}

#[tokio::test]
async fn successes_have_the_form_of_cosmos_db() {
    let subject = Subject::with(Flavor::CosmosDb).await;
    let text = r#"> POST /Tables
> {"TableName":"Others"}
HTTP/1.1 201 Ok
content-type: application/json;odata=minimalmetadata
etag: W/"datetime'TIME'"
location: URL/Tables('Others')

{"TableName":"Others","odata.metadata":"URL/$metadata#Tables/@Element"}

> POST /People
> Prefer: return-content
> {"A":1,"PartitionKey":"p","RowKey":"k"}
HTTP/1.1 201 Created
content-type: application/json;odata=minimalmetadata
etag: W/"datetime'TIME'"
location: URL/People(PartitionKey='p',RowKey='k')
preference-applied: return-content

{"odata.metadata":"URL/People/$metadata#People/@Element","odata.etag":"W/\"datetime'TIME'\"",\
"A":1,"PartitionKey":"p","RowKey":"k","Timestamp":"TIME"}

> GET /People(PartitionKey='p',RowKey='k')
HTTP/1.1 200 Ok
content-type: application/json;odata=minimalmetadata
etag: W/"datetime'TIME'"

{"odata.metadata":"URL/People/$metadata#People/@Element","odata.etag":"W/\"datetime'TIME'\"",\
"A":1,"PartitionKey":"p","RowKey":"k","Timestamp":"TIME"}

> GET /People()?$filter=RowKey%20eq%20'k'&$select=A
HTTP/1.1 200 Ok
content-type: application/json;odata=minimalmetadata

{"value":[{"odata.etag":"W/\"datetime'TIME'\"","A":1}],"odata.metadata":"URL/$metadata#People"}

> POST /People
> Prefer: return-no-content
> {"PartitionKey":"p","RowKey":"2"}
HTTP/1.1 204 No Content
etag: W/"datetime'TIME'"
location: URL/People(PartitionKey='p',RowKey='2')
preference-applied: return-no-content

> PUT /People(PartitionKey='p',RowKey='k')
> {}
HTTP/1.1 204 No Content
content-type: application/json
etag: W/"datetime'TIME'"

> PUT /People(PartitionKey='p',RowKey='k')
> If-Match: *
> {}
HTTP/1.1 204 No Content
etag: W/"datetime'TIME'"

> DELETE /People(PartitionKey='p',RowKey='k')
> If-Match: *
HTTP/1.1 204 No Content

> DELETE /Tables('Others')
HTTP/1.1 204 No Content
"#;
    assert_responses(&subject, text).await;
}

#[tokio::test]
async fn errors_have_the_form_of_cosmos_db() {
    let subject = Subject::with(Flavor::CosmosDb).await;
    let mut text = String::new();
    // Each request with status, level of metadata, code and message.
    for (request, status, message) in [
        (
            "GET /People(PartitionKey='p',RowKey='none')",
            "404 Not Found, minimalmetadata, ResourceNotFound",
            "The specified resource does not exist.",
        ),
        (
            "DELETE /Tables('None')",
            "404 Not Found, fullmetadata, ResourceNotFound",
            "The specified resource does not exist.",
        ),
        (
            "POST /People\n> {\"PartitionKey\":\"p\",\"RowKey\":\"r\"}",
            "409 Conflict, minimalmetadata, EntityAlreadyExists",
            "The specified entity already exists.",
        ),
        (
            "POST /Tables\n> {\"TableName\":\"People\"}",
            "409 Conflict, minimalmetadata, TableAlreadyExists",
            "The specified table already exists.",
        ),
        (
            "PUT /People(PartitionKey='p',RowKey='r')\n\
            > If-Match: W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\"\n> {}",
            "412 Precondition Failed, fullmetadata, UpdateConditionNotSatisfied",
            "The update condition specified in the request was not satisfied.",
        ),
        (
            "POST /People\n> {\"RowKey\":\"r\"}",
            "400 Bad Request, fullmetadata, PropertiesNeedValue",
            "PartitionKey/RowKey cannot be emptyGATEWAY",
        ),
        (
            "GET /People()?$filter=aaa%20bbb%20ccc",
            "400 Bad Request, minimalmetadata, InvalidInput",
            "Request url is invalid.GATEWAY",
        ),
        (
            "PATCH /People(PartitionKey='p',RowKey='r')\n> {}",
            "400 Bad Request, fullmetadata, InvalidInput",
            "One of the input values is invalid.GATEWAY",
        ),
        (
            "GET /?restype=service&comp=properties\n> Accept: application/xml",
            "501 Not Implemented, fullmetadata, NotImplemented",
            "The requested operation is not supported.GATEWAY",
        ),
    ] {
        let parts: Vec<_> = status.split(", ").collect();
        let [status, level, code] = parts[..] else {
            panic!("{status}");
        };
        text += &format!(
            "> {request}\nHTTP/1.1 {status}\ncontent-type: application/json;odata={level}\n\n\
            {{\"odata.error\":{{\"code\":\"{code}\",\"message\":\
            {{\"lang\":\"en-us\",\"value\":\"{message}\\nRequestID:ID\\n\"}}}}}}\n\n"
        );
    }
    assert_responses(&subject, &text).await;

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
    let start = r#"{"odata.error":{"code":"TooManyRequests","message":{"lang":"en-us","value":"Message: {\"Errors\":["#;
    assert!(body.starts_with(start), "{body}");
    assert!(
        body.ends_with(r#"\r\nActivityId: ID\nRequestID:ID\n"}}}"#),
        "{body}"
    );
}
