//! How clients use connections, byte for byte: keep-alive, pipelined requests,
//! `Expect: 100-continue`, and chunked bodies.

use harness::raw::{RawClient, Response};
use tablesdk_server::TableServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const JSON: &str = "Content-Type: application/json";
const NO_CONTENT: &str = "Prefer: return-no-content";

/// A server with the table `people`, and a client.
async fn people() -> (TableServer, RawClient) {
    let server = TableServer::start().await.unwrap();
    let client = RawClient::of(&server);
    let body = r#"{"TableName":"people"}"#;
    let created = client.send(true, "POST /Tables", &[JSON], body);
    assert_eq!(created.await.unwrap().status, 201);
    (server, client)
}

fn entity(row: &str) -> String {
    format!(r#"{{"PartitionKey":"p","RowKey":"{row}"}}"#)
}

/// A connection of a client, which is kept open.
struct Connection<'c> {
    client: &'c RawClient,
    stream: TcpStream,
}

impl<'c> Connection<'c> {
    async fn of(client: &'c RawClient) -> Self {
        let stream = TcpStream::connect(client.address).await.unwrap();
        Self { client, stream }
    }

    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends the head of a request.
    async fn request(&mut self, sign: bool, line: &str, headers: &[&str]) {
        self.send(&self.client.head(sign, line, headers)).await;
    }

    /// The next response without its body.
    async fn head(&mut self) -> Response {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = String::new();
        Response { status, head, body }
    }

    /// The next response, which has a length.
    async fn response(&mut self) -> Response {
        let mut response = self.head().await;
        let length = response.header("content-length").unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.stream.read_exact(&mut body).await.unwrap();
        response.body = String::from_utf8(body).unwrap();
        response
    }

    async fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]).await, Ok(0) | Err(_))
    }
}

/// Returns true if the server closes the connection after this response.
fn is_last(response: &Response) -> bool {
    response.header("connection") == Some("close")
}

#[tokio::test]
async fn connections_stay_open_after_refusals() {
    let (_server, client) = people().await;
    let mut connection = Connection::of(&client).await;
    for (sign, line, expected) in [
        (true, "GET /people()", 200),
        (true, "GET /missing()", 404),
        (false, "GET /people()", 403),
        (true, "GET /people()?$filter=x%20y", 400),
        (true, "BREW /people()", 405),
        (true, "GET /people()", 200),
    ] {
        connection.request(sign, line, &[]).await;
        let response = connection.response().await;
        assert_eq!(response.status, expected, "{line} {response:?}");
        assert!(!is_last(&response), "{response:?}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let (_server, client) = people().await;
    let mut connection = Connection::of(&client).await;
    let mut requests = String::new();
    for row in 0..20 {
        let body = entity(&row.to_string());
        let length = format!("Content-Length: {}", body.len());
        requests += &client.head(true, "POST /people", &[JSON, NO_CONTENT, &length]);
        requests += &body;
        let line = format!("GET /people(PartitionKey='p',RowKey='{row}')");
        requests += &client.head(true, &line, &[]);
    }
    connection.send(&requests).await;
    for row in 0..20 {
        assert_eq!(connection.response().await.status, 204);
        let read = connection.response().await;
        let key = format!(r#""RowKey":"{row}""#);
        assert!(read.status == 200 && read.body.contains(&key), "{read:?}");
    }
}

#[tokio::test]
async fn bodies_may_come_in_chunks() {
    let (_server, client) = people().await;
    let mut connection = Connection::of(&client).await;
    let headers = [JSON, NO_CONTENT, "Transfer-Encoding: chunked"];
    connection.request(true, "POST /people", &headers).await;
    for piece in entity("r").as_bytes().chunks(5) {
        let piece = std::str::from_utf8(piece).unwrap();
        let chunk = format!("{:x};x=y\r\n{piece}\r\n", piece.len());
        connection.send(&chunk).await;
    }
    connection.send("0\r\nTrailer: x\r\n\r\n").await;
    assert_eq!(connection.response().await.status, 204);
    // What follows is the next request.
    let line = "GET /people(PartitionKey='p',RowKey='r')";
    connection.request(true, line, &[]).await;
    assert_eq!(connection.response().await.status, 200);
}

#[tokio::test]
async fn bodies_are_requested_after_authentication() {
    let (_server, client) = people().await;
    let body = entity("r");
    let length = format!("Content-Length: {}", body.len());
    let headers = [JSON, NO_CONTENT, "Expect: 100-continue", &length];
    let mut connection = Connection::of(&client).await;
    connection.request(true, "POST /people", &headers).await;
    let go_on = connection.head().await;
    assert_eq!(go_on.head, "HTTP/1.1 100 Continue\r\n\r\n");
    connection.send(&body).await;
    assert_eq!(connection.response().await.status, 204);

    let mut connection = Connection::of(&client).await;
    connection.request(false, "POST /people", &headers).await;
    let refused = connection.response().await;
    assert!(refused.status == 403 && is_last(&refused), "{refused:?}");
    assert!(connection.is_closed().await);

    let mut connection = Connection::of(&client).await;
    let headers = [JSON, "Expect: 100-continue", "Content-Length: 4194305"];
    connection.request(true, "POST /people", &headers).await;
    let refused = connection.response().await;
    let (status, code) = (refused.status, refused.code());
    assert_eq!((status, code), (413, "RequestBodyTooLarge"));
    assert!(is_last(&refused), "{refused:?}");
}

#[tokio::test]
async fn bodies_of_unauthenticated_clients_are_not_read() {
    let (_server, client) = people().await;
    // It would be longer than any connection lasts.
    for length in ["Content-Length: 4194304", "Transfer-Encoding: chunked"] {
        let mut connection = Connection::of(&client).await;
        let headers = [JSON, length];
        connection.request(false, "POST /people", &headers).await;
        connection.send("1\r\nx\r\n").await;
        let refused = connection.response().await;
        let (status, code) = (refused.status, refused.code());
        assert_eq!((status, code), (403, "AuthenticationFailed"), "{length}");
        assert!(connection.is_closed().await);
    }
}

#[tokio::test]
async fn chunks_beyond_the_limit_are_refused() {
    let (_server, client) = people().await;
    let mut connection = Connection::of(&client).await;
    let headers = [JSON, "Transfer-Encoding: chunked"];
    connection.request(true, "POST /people", &headers).await;
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    for _ in 0..4 {
        connection.send(&chunk).await;
    }
    connection.send("1\r\nx\r\n").await;
    let refused = connection.response().await;
    let (status, code) = (refused.status, refused.code());
    assert_eq!((status, code), (413, "RequestBodyTooLarge"));
}

#[tokio::test]
async fn responses_to_head_have_no_body() {
    let (_server, client) = people().await;
    let mut connection = Connection::of(&client).await;
    for (line, expected) in [("HEAD /people?comp=acl", 200), ("HEAD /people()", 405)] {
        connection.request(true, line, &[]).await;
        assert_eq!(connection.head().await.status, expected);
    }
    // This would be read out of a body otherwise.
    connection.request(true, "GET /people()", &[]).await;
    assert_eq!(connection.response().await.status, 200);
}

#[tokio::test]
async fn responses_without_content_have_length_0() {
    let (_server, client) = people().await;
    let (headers, body) = ([JSON, NO_CONTENT], entity("r"));
    let inserted = client.send(true, "POST /people", &headers, &body);
    let inserted = inserted.await.unwrap();
    assert_eq!((inserted.status, &*inserted.body), (204, ""));
    assert_eq!(inserted.header("content-length"), Some("0"));
}

#[tokio::test]
async fn long_heads_are_refused_with_a_code() {
    let (_server, client) = people().await;
    let long = "x".repeat(40_000);
    let target = format!("GET /people()?$filter={long}");
    let response = client.send(true, &target, &[], "").await.unwrap();
    assert_eq!((response.status, response.code()), (414, "InvalidUri"));
    let header = format!("X-Long: {long}");
    // Beyond that, the head is not read to its end: the response has the form of all others.
    let many = vec!["X: y"; 101];
    for headers in [&[&*header][..], &[&*header, &header], &many] {
        let head = client.head(true, "GET /people()", headers);
        let response = client.exchange(head.as_bytes()).await.unwrap();
        let (status, code) = (response.status, response.code());
        assert_eq!((status, code), (431, "InvalidHeaderValue"));
        let id = response.header("x-ms-request-id").unwrap();
        assert!(response.body.contains(id), "{response:?}");
    }
}
