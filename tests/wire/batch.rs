//! Entity group transactions: raw requests as each client writes them, and the bytes of the responses.
//!
//! The requests of the clients in Python and JavaScript were recorded; the requests of the other clients follow their source code.
//! They differ in line ends, blank lines, spelling and URLs; the operations in them are always the same.

use tablesdk_server::TableServer;

use crate::raw::{Answer, send};

const JSON: &str = "Content-Type: application/json";

/// A server with the table `people`, that has the entities `d` and `m`.
async fn people() -> TableServer {
    let server = TableServer::start().await.unwrap();
    let table = r#"{"TableName":"people"}"#;
    let created = send(&server, true, "POST /Tables", &[JSON], table).await;
    assert_eq!(created.status, 201, "{created:?}");
    for row in ["d", "m"] {
        let entity = format!(r#"{{"PartitionKey":"O'B p","RowKey":"{row}","A":1}}"#);
        let created = send(&server, true, "POST /people", &[JSON], &entity).await;
        assert_eq!(created.status, 201, "{created:?}");
    }
    server
}

/// Sends a batch. In the text, `BASE` stands for the server's endpoint, and lines end as they do in the source.
async fn submit(server: &TableServer, headers: &[&str], body: &str) -> Answer {
    let body = body.replace("BASE", server.endpoint());
    send(server, true, "POST /$batch", headers, &body).await
}

/// The body of the response. Its line ends are checked and converted to those of the source; the values that differ in each run are
/// replaced: endpoint, boundaries, ids, times.
fn fixed(server: &TableServer, answer: &Answer) -> String {
    assert_eq!(answer.status, 202, "{answer:?}");
    let body = &answer.body;
    assert_eq!(body.matches('\n').count(), body.matches("\r\n").count());
    let id = answer.header("x-ms-request-id").unwrap();
    let content_type = format!("multipart/mixed; boundary=batchresponse_{id}");
    assert_eq!(answer.header("Content-Type"), Some(&*content_type));
    let body = body.replace("\r\n", "\n").replace(id, "ID");
    let mut body = body.replace(server.endpoint(), "BASE");
    for (before, after) in [
        ("datetime'", "'"),
        (r"\nTime:", "\""),
        (r#"Timestamp":""#, "\""),
    ] {
        let mut parts = body.split(before);
        let mut replaced = parts.next().unwrap().to_owned();
        for part in parts {
            let (_, rest) = part.split_once(after).unwrap();
            replaced += &format!("{before}TIME{after}{rest}");
        }
        body = replaced;
    }
    body
}

/// Keys and properties of all entities.
async fn state(server: &TableServer) -> String {
    let accept = "Accept: application/json;odata=nometadata";
    let select = "GET /people()?$select=RowKey,A,B";
    send(server, true, select, &[accept], "").await.body
}

/// The contents of the table after the changes.
const CHANGED: &str = r#"{"value":[{"RowKey":"c","A":1,"B":null},{"RowKey":"m","A":1,"B":"x%7D}"},{"RowKey":"u","A":null,"B":null}]}"#;

/// The response to the changes if the client asks for no content.
const NO_CONTENT: &str = r#"--batchresponse_ID
Content-Type: multipart/mixed; boundary=changesetresponse_ID

--changesetresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
X-Content-Type-Options: nosniff
Cache-Control: no-cache
Preference-Applied: return-no-content
DataServiceVersion: 3.0;
Location: BASE/people(PartitionKey='O''B%20p',RowKey='c')
DataServiceId: BASE/people(PartitionKey='O''B%20p',RowKey='c')
ETag: W/"datetime'TIME'"


--changesetresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
X-Content-Type-Options: nosniff
Cache-Control: no-cache
DataServiceVersion: 1.0;


--changesetresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
X-Content-Type-Options: nosniff
Cache-Control: no-cache
DataServiceVersion: 1.0;
ETag: W/"datetime'TIME'"


--changesetresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
X-Content-Type-Options: nosniff
Cache-Control: no-cache
DataServiceVersion: 1.0;
ETag: W/"datetime'TIME'"


--changesetresponse_ID--
--batchresponse_ID--
"#;

#[tokio::test]
async fn the_client_in_python() {
    let server = people().await;
    let headers = [
        "Accept: application/json",
        "DataServiceVersion: 3.0",
        "MaxDataServiceVersion: 3.0;NetFx",
        "Content-Type: multipart/mixed; boundary=batch_0ae09790-e7c9-4a5a-945e-122ab84b4802",
    ];
    let body = r#"--batch_0ae09790-e7c9-4a5a-945e-122ab84b4802
Content-Type: multipart/mixed; boundary=changeset_1dbf3d95-f745-4511-8ccb-ffdac5d2d127

--changeset_1dbf3d95-f745-4511-8ccb-ffdac5d2d127
Content-Type: application/http
Content-Transfer-Encoding: binary
Content-ID: 0

POST BASE/people HTTP/1.1
Content-Type: application/json
Content-Length: 124
x-ms-version: 2019-02-02
DataServiceVersion: 3.0
Accept: application/json;odata=minimalmetadata
x-ms-date: Sat, 21 Nov 2026 07:05:17 GMT
Date: Sat, 21 Nov 2026 07:05:17 GMT

{"PartitionKey": "O'B p", "PartitionKey@odata.type": "Edm.String", "RowKey": "c", "RowKey@odata.type": "Edm.String", "A": 1}
--changeset_1dbf3d95-f745-4511-8ccb-ffdac5d2d127
Content-Type: application/http
Content-Transfer-Encoding: binary
Content-ID: 1

DELETE BASE/people(PartitionKey='O%27%27B%20p',RowKey='d') HTTP/1.1
x-ms-version: 2019-02-02
DataServiceVersion: 3.0
Accept: application/json;odata=minimalmetadata
If-Match: *
x-ms-date: Sat, 21 Nov 2026 07:05:17 GMT
Date: Sat, 21 Nov 2026 07:05:17 GMT


--changeset_1dbf3d95-f745-4511-8ccb-ffdac5d2d127
Content-Type: application/http
Content-Transfer-Encoding: binary
Content-ID: 2

PATCH BASE/people(PartitionKey='O%27%27B%20p',RowKey='m') HTTP/1.1
Content-Type: application/json
Content-Length: 160
x-ms-version: 2019-02-02
DataServiceVersion: 3.0
Accept: application/json
If-Match: *
x-ms-date: Sat, 21 Nov 2026 07:05:17 GMT
Date: Sat, 21 Nov 2026 07:05:17 GMT

{"PartitionKey": "O'B p", "PartitionKey@odata.type": "Edm.String", "RowKey": "m", "RowKey@odata.type": "Edm.String", "B": "x%7D}", "B@odata.type": "Edm.String"}
--changeset_1dbf3d95-f745-4511-8ccb-ffdac5d2d127
Content-Type: application/http
Content-Transfer-Encoding: binary
Content-ID: 3

PUT BASE/people(PartitionKey='O%27%27B%20p',RowKey='u') HTTP/1.1
Content-Type: application/json
Content-Length: 116
x-ms-version: 2019-02-02
DataServiceVersion: 3.0
Accept: application/json
x-ms-date: Sat, 21 Nov 2026 07:05:17 GMT
Date: Sat, 21 Nov 2026 07:05:17 GMT

{"PartitionKey": "O'B p", "PartitionKey@odata.type": "Edm.String", "RowKey": "u", "RowKey@odata.type": "Edm.String"}
--changeset_1dbf3d95-f745-4511-8ccb-ffdac5d2d127--

--batch_0ae09790-e7c9-4a5a-945e-122ab84b4802--
"#;
    let body = body.replace('\n', "\r\n");
    let answer = submit(&server, &headers, &body).await;
    let created = r#"
HTTP/1.1 201 Created
X-Content-Type-Options: nosniff
Cache-Control: no-cache
DataServiceVersion: 3.0;
Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8
Location: BASE/people(PartitionKey='O''B%20p',RowKey='c')
ETag: W/"datetime'TIME'"

{"odata.metadata":"BASE/$metadata#people/@Element","odata.etag":"W/\"datetime'TIME'\"","PartitionKey":"O'B p","RowKey":"c","Timestamp":"TIME","A":1}
"#;
    let (_, rest) = NO_CONTENT.split_once("\n\n\n").unwrap();
    let (before, _) = NO_CONTENT.split_once("\nHTTP").unwrap();
    assert_eq!(fixed(&server, &answer), format!("{before}{created}{rest}"));
    assert_eq!(state(&server).await, CHANGED);

    // Again, it fails at the insert, and nothing changes.
    let answer = submit(&server, &headers, &body).await;
    assert_eq!(
        fixed(&server, &answer),
        r#"--batchresponse_ID
Content-Type: multipart/mixed; boundary=changesetresponse_ID

--changesetresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 409 Conflict
X-Content-Type-Options: nosniff
Cache-Control: no-cache
DataServiceVersion: 3.0;
Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8

{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"0:The specified entity already exists.\nRequestId:ID\nTime:TIME"}}}
--changesetresponse_ID--
--batchresponse_ID--
"#
    );
    assert_eq!(state(&server).await, CHANGED);
}

#[tokio::test]
async fn the_client_in_javascript() {
    let server = people().await;
    let headers = [
        "accept: application/json",
        "DataServiceVersion: 3.0;",
        "Content-Type: multipart/mixed; boundary=batch_5524ad79-41c3-43eb-a51c-ea03ec1198c5",
    ];
    let body = r#"--batch_5524ad79-41c3-43eb-a51c-ea03ec1198c5
content-type: multipart/mixed; boundary=changeset_1e70462a-900a-4310-9a9c-30cbaf4d7a6a


--changeset_1e70462a-900a-4310-9a9c-30cbaf4d7a6a
content-type: application/http
content-transfer-encoding: binary

POST BASE/people HTTP/1.1
Content-Type: application/json;odata=nometadata
Accept: application/json;odata=minimalmetadata
DataServiceVersion: 3.0
Prefer: return-no-content


{"PartitionKey":"O'B p","RowKey":"c","A":1}
--changeset_1e70462a-900a-4310-9a9c-30cbaf4d7a6a
content-type: application/http
content-transfer-encoding: binary

DELETE BASE/people(PartitionKey='O''B%20p',RowKey='d') HTTP/1.1
Accept: application/json;odata=minimalmetadata
DataServiceVersion: 3.0
If-Match: *


--changeset_1e70462a-900a-4310-9a9c-30cbaf4d7a6a
content-type: application/http
content-transfer-encoding: binary

PATCH BASE/people(PartitionKey='O''B%20p',RowKey='m') HTTP/1.1
Content-Type: application/json
DataServiceVersion: 3.0
Accept: application/json
If-Match: *


{"PartitionKey":"O'B p","RowKey":"m","B":"x%7D}"}
--changeset_1e70462a-900a-4310-9a9c-30cbaf4d7a6a
content-type: application/http
content-transfer-encoding: binary

PUT BASE/people(PartitionKey='O''B%20p',RowKey='u') HTTP/1.1
Content-Type: application/json
DataServiceVersion: 3.0
Accept: application/json


{"PartitionKey":"O'B p","RowKey":"u"}
--changeset_1e70462a-900a-4310-9a9c-30cbaf4d7a6a--
--batch_5524ad79-41c3-43eb-a51c-ea03ec1198c5--
"#;
    let body = body.replace('\n', "\r\n");
    let answer = submit(&server, &headers, &body).await;
    assert_eq!(fixed(&server, &answer), NO_CONTENT);
    assert_eq!(state(&server).await, CHANGED);

    // The preference applies to a refusal, too.
    let answer = submit(&server, &headers, &body).await;
    assert_eq!(
        fixed(&server, &answer),
        r#"--batchresponse_ID
Content-Type: multipart/mixed; boundary=changesetresponse_ID

--changesetresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 409 Conflict
X-Content-Type-Options: nosniff
Cache-Control: no-cache
Preference-Applied: return-no-content
DataServiceVersion: 3.0;
Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8

{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"0:The specified entity already exists.\nRequestId:ID\nTime:TIME"}}}
--changesetresponse_ID--
--batchresponse_ID--
"#
    );
}

#[tokio::test]
async fn the_client_in_dotnet() {
    let server = people().await;
    let headers = [
        "x-ms-version: 2019-02-02",
        "DataServiceVersion: 3.0",
        "Content-Type: multipart/mixed; boundary=\"batch_6cbb2d60-1e0f-4b5d-a9a4-2a5c5b7a1e35\"",
    ];
    let body = r#"--batch_6cbb2d60-1e0f-4b5d-a9a4-2a5c5b7a1e35
Content-Type: multipart/mixed; boundary="changeset_22ac7df3-7cd5-4b40-a5e3-f2a4fd8a3a5b"

--changeset_22ac7df3-7cd5-4b40-a5e3-f2a4fd8a3a5b
Content-Type: application/http
Content-Transfer-Encoding: binary

POST BASE/people?$format=application%2Fjson%3Bodata%3Dminimalmetadata HTTP/1.1
Host: 127.0.0.1
x-ms-version: 2019-02-02
DataServiceVersion: 3.0
Prefer: return-no-content
Accept: application/json
Content-Type: application/json

{"PartitionKey":"O\u0027B p","RowKey":"c","A":1}
--changeset_22ac7df3-7cd5-4b40-a5e3-f2a4fd8a3a5b
Content-Type: application/http
Content-Transfer-Encoding: binary

DELETE BASE/people(PartitionKey='O%27%27B%20p',RowKey='d')?$format=application%2Fjson%3Bodata%3Dminimalmetadata HTTP/1.1
Host: 127.0.0.1
x-ms-version: 2019-02-02
DataServiceVersion: 3.0
Accept: application/json
If-Match: *


--changeset_22ac7df3-7cd5-4b40-a5e3-f2a4fd8a3a5b
Content-Type: application/http
Content-Transfer-Encoding: binary

PATCH BASE/people(PartitionKey='O%27%27B%20p',RowKey='m')?$format=application%2Fjson%3Bodata%3Dminimalmetadata HTTP/1.1
Host: 127.0.0.1
x-ms-version: 2019-02-02
DataServiceVersion: 3.0
Accept: application/json
If-Match: *
Content-Type: application/json

{"PartitionKey":"O\u0027B p","RowKey":"m","B":"x%7D}"}
--changeset_22ac7df3-7cd5-4b40-a5e3-f2a4fd8a3a5b
Content-Type: application/http
Content-Transfer-Encoding: binary

PUT BASE/people(PartitionKey='O%27%27B%20p',RowKey='u')?$format=application%2Fjson%3Bodata%3Dminimalmetadata HTTP/1.1
Host: 127.0.0.1
x-ms-version: 2019-02-02
DataServiceVersion: 3.0
Accept: application/json
Content-Type: application/json

{"PartitionKey":"O\u0027B p","RowKey":"u"}
--changeset_22ac7df3-7cd5-4b40-a5e3-f2a4fd8a3a5b--

--batch_6cbb2d60-1e0f-4b5d-a9a4-2a5c5b7a1e35--
"#;
    let answer = submit(&server, &headers, &body.replace('\n', "\r\n")).await;
    assert_eq!(fixed(&server, &answer), NO_CONTENT);
    assert_eq!(state(&server).await, CHANGED);
}

#[tokio::test]
async fn the_classic_client_in_dotnet() {
    let server = people().await;
    let headers = [
        "Accept: application/json;odata=minimalmetadata",
        "Accept-Charset: UTF-8",
        "MaxDataServiceVersion: 3.0;NetFx",
        "Content-Type: multipart/mixed; boundary=batch_3c5e8f9b-1b62-4a8f-a6c2-9d5c4f2a6b11",
    ];
    let body = r#"--batch_3c5e8f9b-1b62-4a8f-a6c2-9d5c4f2a6b11
Content-Type: multipart/mixed; boundary=changeset_5b2b7d0a-77f6-4a43-8c89-6f0fd0f3c9e2

--changeset_5b2b7d0a-77f6-4a43-8c89-6f0fd0f3c9e2
Content-Type: application/http
Content-Transfer-Encoding: binary

POST BASE/people() HTTP/1.1
accept: application/json;odata=minimalmetadata
prefer: return-no-content
content-id: 1
content-type: application/json

{"PartitionKey":"O'B p","RowKey":"c","Timestamp":"0001-01-01T00:00:00","A":1}
--changeset_5b2b7d0a-77f6-4a43-8c89-6f0fd0f3c9e2
Content-Type: application/http
Content-Transfer-Encoding: binary

DELETE BASE/people%28PartitionKey=%27O%27%27B%20p%27%2CRowKey=%27d%27%29 HTTP/1.1
content-id: 2
if-match: *


--changeset_5b2b7d0a-77f6-4a43-8c89-6f0fd0f3c9e2
Content-Type: application/http
Content-Transfer-Encoding: binary

POST BASE/people(PartitionKey='O%27%27B%20p',RowKey='m') HTTP/1.1
x-http-method: MERGE
content-id: 3
if-match: *
content-type: application/json;odata=minimalmetadata

{"B@odata.type":"Edm.String","B":"x%7D}"}
--changeset_5b2b7d0a-77f6-4a43-8c89-6f0fd0f3c9e2
Content-Type: application/http
Content-Transfer-Encoding: binary

MERGE BASE/people(PartitionKey='O%27%27B%20p',RowKey='u') HTTP/1.1
content-id: 4


--changeset_5b2b7d0a-77f6-4a43-8c89-6f0fd0f3c9e2--
--batch_3c5e8f9b-1b62-4a8f-a6c2-9d5c4f2a6b11--
"#;
    let answer = submit(&server, &headers, &body.replace('\n', "\r\n")).await;
    assert_eq!(fixed(&server, &answer), NO_CONTENT);
    assert_eq!(state(&server).await, CHANGED);
}

/// Line feeds without carriage returns, and a last boundary of the batch without the closing `--`.
#[tokio::test]
async fn the_old_client_in_rust() {
    let server = people().await;
    let headers = [
        "Accept: */*",
        "Content-Type: multipart/mixed; boundary=batch_0a3a7d9e-9b3a-4a89-a1a9-55cfb2a0a7c4",
    ];
    let body = r#"--batch_0a3a7d9e-9b3a-4a89-a1a9-55cfb2a0a7c4
Content-Type: multipart/mixed; boundary=changeset_9d1b8a94-5f3d-4ba5-8fd2-8f9bd9a51f0e

--changeset_9d1b8a94-5f3d-4ba5-8fd2-8f9bd9a51f0e
Content-Type: application/http
Content-Transfer-Encoding: binary

POST BASE/people HTTP/1.1
accept: application/json;odata=minimalmetadata
content-type: application/json
prefer: return-no-content

{"PartitionKey":"O'B p","RowKey":"c","A":1}
--changeset_9d1b8a94-5f3d-4ba5-8fd2-8f9bd9a51f0e
Content-Type: application/http
Content-Transfer-Encoding: binary

DELETE BASE/people(PartitionKey='O%27%27B%20p',RowKey='d') HTTP/1.1
accept: application/json;odata=minimalmetadata
if-match: *

--changeset_9d1b8a94-5f3d-4ba5-8fd2-8f9bd9a51f0e
Content-Type: application/http
Content-Transfer-Encoding: binary

MERGE BASE/people(PartitionKey='O%27%27B%20p',RowKey='m') HTTP/1.1
accept: application/json;odata=fullmetadata
content-type: application/json
if-match: *

{"PartitionKey":"O'B p","RowKey":"m","B":"x%7D}"}
--changeset_9d1b8a94-5f3d-4ba5-8fd2-8f9bd9a51f0e
Content-Type: application/http
Content-Transfer-Encoding: binary

PUT BASE/people(PartitionKey='O%27%27B%20p',RowKey='u') HTTP/1.1
accept: application/json;odata=fullmetadata
content-type: application/json

{"PartitionKey":"O'B p","RowKey":"u"}
--changeset_9d1b8a94-5f3d-4ba5-8fd2-8f9bd9a51f0e--
--batch_0a3a7d9e-9b3a-4a89-a1a9-55cfb2a0a7c4
"#;
    let answer = submit(&server, &headers, body).await;
    assert_eq!(fixed(&server, &answer), NO_CONTENT);
    assert_eq!(state(&server).await, CHANGED);
}

/// Paths without the account, as the Python client before the present one sends them; text around the parts; blanks behind
/// boundaries; spaces, braces and boundaries where they belong to a key or a value; both line ends.
#[tokio::test]
async fn everything_that_may_be_otherwise() {
    let server = people().await;
    let headers = ["content-TYPE: MULTIPART/mixed; charset=utf-8; Boundary=\"b 1\""];
    let body = r#"Text that is no part.
--b 12
 --b 1
--b 1<BLANKS>
CONTENT-type: Multipart/Mixed; boundary = "c;1"

More of it.
--c;1<BLANKS>
Content-ID: 1
Content-Transfer-Encoding: BINARY
Content-Type: application/http; msgtype=request

POST /people HTTP/1.1<CR>
Prefer: return-no-content<CR>
Content-Type: application/json; odata=nometadata<CR>
<CR>
{
  "PartitionKey": "O'B p",<CR>

"RowKey"
:
"c", "A": 1
}
--c;1
Content-Type: application/http

DELETE /people(RowKey='d', PartitionKey='O''B p') HTTP/1.1
If-Match: *
--c;1
Content-Type: application/http

PATCH //people(PartitionKey='O''B%20p',RowKey='m') HTTP/1.1
Content-Type: application/json

{"B":"x%7D}","odata.type":"--c;1 --b 1-- HTTP/1.1 }{"}
--c;1<CR>
Content-Type: application/http<CR>
<CR>
PUT //devstoreaccount1//people(PartitionKey='O''B p',RowKey='u') HTTP/1.1

--c;1--<BLANKS>
Text.
--b 1--<BLANKS>
--b 1
Text.
"#;
    let body = body.replace("<BLANKS>", " \t ").replace("<CR>", "\r");
    let answer = submit(&server, &headers, &body).await;
    assert_eq!(fixed(&server, &answer), NO_CONTENT);
    assert_eq!(state(&server).await, CHANGED);
}

#[tokio::test]
async fn a_query() {
    let server = people().await;
    let headers = ["Content-Type: multipart/mixed; boundary=batch_1"];
    let body = "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nGET BASE/people(PartitionKey='O%27%27B%20p',RowKey='m')?$select=A HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n\r\n\r\n--batch_1--\r\n";
    let answer = submit(&server, &headers, body).await;
    assert_eq!(
        fixed(&server, &answer),
        r#"--batchresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 200 OK
DataServiceVersion: 3.0;
Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8
X-Content-Type-Options: nosniff
Cache-Control: no-cache
ETag: W/"datetime'TIME'"

{"odata.metadata":"BASE/$metadata#people/@Element&$select=A","odata.etag":"W/\"datetime'TIME'\"","A":1}
--batchresponse_ID--
"#
    );
}

#[tokio::test]
async fn a_batch_that_is_too_large() {
    let server = people().await;
    let headers = ["Content-Type: multipart/mixed; boundary=batch_1"];
    let body = "x".repeat(4 * 1024 * 1024 + 1);
    let answer = submit(&server, &headers, &body).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.code(), "RequestBodyTooLarge");
}
