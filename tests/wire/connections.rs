//! How clients use connections, byte for byte: keep-alive, pipelined requests, `Expect: 100-continue`, and chunked bodies.

use harness::raw::RawClient;
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

/// A connection that is kept open.
struct Connection(TcpStream);

impl Connection {
    async fn of(client: &RawClient) -> Self {
        Self(TcpStream::connect(client.address).await.unwrap())
    }

    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// The head of the next response.
    async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }

    /// The next response, which has a length.
    async fn response(&mut self) -> (String, String) {
        let head = self.head().await;
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .unwrap_or_else(|| panic!("{head}"));
        let mut body = vec![0; length.parse().unwrap()];
        self.0.read_exact(&mut body).await.unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    async fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]).await, Ok(0) | Err(_))
    }
}

fn status(head: &str) -> &str {
    head.split(' ').nth(1).unwrap()
}

#[tokio::test]
async fn connections_stay_open_after_refusals() {
    let (_server, client) = people().await;
    let mut connection = Connection::of(&client).await;
    for (sign, line, expected) in [
        (true, "GET /people()", "200"),
        (true, "GET /missing()", "404"),
        (false, "GET /people()", "403"),
        (true, "GET /people()?$filter=x%20y", "400"),
        (true, "BREW /people()", "405"),
        (true, "GET /people()", "200"),
    ] {
        connection.send(&client.head(sign, line, &[])).await;
        let (response, _) = connection.response().await;
        assert_eq!(status(&response), expected, "{line} {response}");
        assert!(!response.contains("connection: close"), "{response}");
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
        let (inserted, _) = connection.response().await;
        assert_eq!(status(&inserted), "204");
        let (read, body) = connection.response().await;
        assert_eq!(status(&read), "200");
        let key = format!(r#""RowKey":"{row}""#);
        assert!(body.contains(&key), "{body}");
    }
}

#[tokio::test]
async fn bodies_may_come_in_chunks() {
    let (_server, client) = people().await;
    let mut connection = Connection::of(&client).await;
    let headers = [JSON, NO_CONTENT, "Transfer-Encoding: chunked"];
    connection
        .send(&client.head(true, "POST /people", &headers))
        .await;
    for piece in entity("r").as_bytes().chunks(5) {
        let piece = std::str::from_utf8(piece).unwrap();
        connection
            .send(&format!("{:x};x=y\r\n{piece}\r\n", piece.len()))
            .await;
    }
    connection.send("0\r\nTrailer: x\r\n\r\n").await;
    let (inserted, _) = connection.response().await;
    assert_eq!(status(&inserted), "204");
    // What follows is the next request.
    let line = "GET /people(PartitionKey='p',RowKey='r')";
    connection.send(&client.head(true, line, &[])).await;
    assert_eq!(status(&connection.response().await.0), "200");
}

#[tokio::test]
async fn bodies_are_requested_after_authentication() {
    let (_server, client) = people().await;
    let body = entity("r");
    let length = format!("Content-Length: {}", body.len());
    let headers = [JSON, NO_CONTENT, "Expect: 100-continue", &length];
    let mut connection = Connection::of(&client).await;
    connection
        .send(&client.head(true, "POST /people", &headers))
        .await;
    assert_eq!(connection.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    connection.send(&body).await;
    assert_eq!(status(&connection.response().await.0), "204");

    let mut connection = Connection::of(&client).await;
    connection
        .send(&client.head(false, "POST /people", &headers))
        .await;
    let (refused, _) = connection.response().await;
    assert_eq!(status(&refused), "403");
    assert!(refused.contains("connection: close"), "{refused}");
    assert!(connection.is_closed().await);

    let mut connection = Connection::of(&client).await;
    let headers = [JSON, "Expect: 100-continue", "Content-Length: 4194305"];
    connection
        .send(&client.head(true, "POST /people", &headers))
        .await;
    let (refused, body) = connection.response().await;
    assert_eq!(status(&refused), "413");
    assert!(refused.contains("connection: close"), "{refused}");
    assert!(body.contains("RequestBodyTooLarge"), "{body}");
}

#[tokio::test]
async fn bodies_of_unauthenticated_clients_are_not_read() {
    let (_server, client) = people().await;
    // It would be longer than any connection lasts.
    for length in ["Content-Length: 4194304", "Transfer-Encoding: chunked"] {
        let mut connection = Connection::of(&client).await;
        connection
            .send(&client.head(false, "POST /people", &[JSON, length]))
            .await;
        connection.send("1\r\nx\r\n").await;
        let (refused, body) = connection.response().await;
        assert_eq!(status(&refused), "403", "{length}");
        assert!(body.contains("AuthenticationFailed"), "{body}");
        assert!(connection.is_closed().await);
    }
}

#[tokio::test]
async fn chunks_beyond_the_limit_are_refused() {
    let (_server, client) = people().await;
    let mut connection = Connection::of(&client).await;
    let headers = [JSON, "Transfer-Encoding: chunked"];
    connection
        .send(&client.head(true, "POST /people", &headers))
        .await;
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    for _ in 0..4 {
        connection.send(&chunk).await;
    }
    connection.send("1\r\nx\r\n").await;
    let (refused, body) = connection.response().await;
    assert_eq!(status(&refused), "413");
    assert!(body.contains("RequestBodyTooLarge"), "{body}");
}

#[tokio::test]
async fn responses_to_head_have_no_body() {
    let (_server, client) = people().await;
    let mut connection = Connection::of(&client).await;
    for (line, expected) in [("HEAD /people?comp=acl", "200"), ("HEAD /people()", "405")] {
        connection.send(&client.head(true, line, &[])).await;
        let response = connection.head().await;
        assert_eq!(status(&response), expected);
    }
    // This would be read out of a body otherwise.
    connection
        .send(&client.head(true, "GET /people()", &[]))
        .await;
    assert_eq!(status(&connection.response().await.0), "200");
}

#[tokio::test]
async fn responses_without_content_have_length_0() {
    let (_server, client) = people().await;
    let headers = [JSON, NO_CONTENT];
    let inserted = client
        .send(true, "POST /people", &headers, &entity("r"))
        .await
        .unwrap();
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
    let response = client
        .send(true, "GET /people()", &[&header], "")
        .await
        .unwrap();
    assert_eq!(
        (response.status, response.code()),
        (431, "InvalidHeaderValue")
    );
    // Beyond that, the head is not read to its end: the response has the form of all others.
    let many = vec!["X: y"; 101];
    for headers in [&[&*header, &header][..], &many] {
        let head = client.head(true, "GET /people()", headers);
        let response = client.exchange(head.as_bytes()).await.unwrap();
        assert_eq!(
            (response.status, response.code()),
            (431, "InvalidHeaderValue")
        );
        let id = response.header("x-ms-request-id").unwrap();
        assert!(response.body.contains(id), "{response:?}");
    }
}
