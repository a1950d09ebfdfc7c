//! How clients use connections, byte for byte: keep-alive, pipelined requests, `Expect: 100-continue`, and chunked bodies.

use tablesdk_server::TableServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::raw::{exchange, head, send};

const JSON: &str = "Content-Type: application/json";
const NO_CONTENT: &str = "Prefer: return-no-content";

async fn people() -> TableServer {
    let server = TableServer::start().await.unwrap();
    let body = r#"{"TableName":"people"}"#;
    let created = send(&server, true, "POST /Tables", &[JSON], body).await;
    assert_eq!(created.status, 201);
    server
}

fn entity(row: &str) -> String {
    format!(r#"{{"PartitionKey":"p","RowKey":"{row}"}}"#)
}

/// A connection that is kept open.
struct Connection(TcpStream);

impl Connection {
    async fn to(server: &TableServer) -> Self {
        let address = server.local_addr().unwrap();
        Self(TcpStream::connect(address).await.unwrap())
    }

    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// The head of the next answer.
    async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }

    /// The next answer, which has a length.
    async fn answer(&mut self) -> (String, String) {
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
async fn a_connection_is_kept_for_answers_and_refusals_alike() {
    let server = people().await;
    let mut connection = Connection::to(&server).await;
    for (sign, line, expected) in [
        (true, "GET /people()", "200"),
        (true, "GET /missing()", "404"),
        (false, "GET /people()", "403"),
        (true, "GET /people()?$filter=x%20y", "400"),
        (true, "BREW /people()", "405"),
        (true, "GET /people()", "200"),
    ] {
        connection.send(&head(&server, sign, line, &[])).await;
        let (answer, _) = connection.answer().await;
        assert_eq!(status(&answer), expected, "{line} {answer}");
        assert!(!answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn requests_that_are_sent_ahead_are_answered_in_their_order() {
    let server = people().await;
    let mut connection = Connection::to(&server).await;
    let mut requests = String::new();
    for row in 0..20 {
        let body = entity(&row.to_string());
        let length = format!("Content-Length: {}", body.len());
        requests += &head(&server, true, "POST /people", &[JSON, NO_CONTENT, &length]);
        requests += &body;
        let line = format!("GET /people(PartitionKey='p',RowKey='{row}')");
        requests += &head(&server, true, &line, &[]);
    }
    connection.send(&requests).await;
    for row in 0..20 {
        let (inserted, _) = connection.answer().await;
        assert_eq!(status(&inserted), "204");
        let (read, body) = connection.answer().await;
        assert_eq!(status(&read), "200");
        let key = format!(r#""RowKey":"{row}""#);
        assert!(body.contains(&key), "{body}");
    }
}

#[tokio::test]
async fn a_body_may_come_in_chunks() {
    let server = people().await;
    let mut connection = Connection::to(&server).await;
    let headers = [JSON, NO_CONTENT, "Transfer-Encoding: chunked"];
    connection
        .send(&head(&server, true, "POST /people", &headers))
        .await;
    for piece in entity("r").as_bytes().chunks(5) {
        let piece = std::str::from_utf8(piece).unwrap();
        connection
            .send(&format!("{:x};x=y\r\n{piece}\r\n", piece.len()))
            .await;
    }
    connection.send("0\r\nTrailer: x\r\n\r\n").await;
    let (inserted, _) = connection.answer().await;
    assert_eq!(status(&inserted), "204");
    // What follows is the next request.
    let line = "GET /people(PartitionKey='p',RowKey='r')";
    connection.send(&head(&server, true, line, &[])).await;
    assert_eq!(status(&connection.answer().await.0), "200");
}

#[tokio::test]
async fn a_body_is_asked_for_only_when_it_is_wanted() {
    let server = people().await;
    let body = entity("r");
    let length = format!("Content-Length: {}", body.len());
    let headers = [JSON, NO_CONTENT, "Expect: 100-continue", &length];
    let mut connection = Connection::to(&server).await;
    connection
        .send(&head(&server, true, "POST /people", &headers))
        .await;
    assert_eq!(connection.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    connection.send(&body).await;
    assert_eq!(status(&connection.answer().await.0), "204");

    let mut connection = Connection::to(&server).await;
    connection
        .send(&head(&server, false, "POST /people", &headers))
        .await;
    let (refused, _) = connection.answer().await;
    assert_eq!(status(&refused), "403");
    assert!(refused.contains("connection: close"), "{refused}");
    assert!(connection.is_closed().await);

    let mut connection = Connection::to(&server).await;
    let headers = [JSON, "Expect: 100-continue", "Content-Length: 4194305"];
    connection
        .send(&head(&server, true, "POST /people", &headers))
        .await;
    assert_eq!(status(&connection.answer().await.0), "413");
}

#[tokio::test]
async fn a_stranger_s_body_is_not_read() {
    let server = people().await;
    // It would be longer than any connection lasts.
    for length in ["Content-Length: 4194304", "Transfer-Encoding: chunked"] {
        let mut connection = Connection::to(&server).await;
        connection
            .send(&head(&server, false, "POST /people", &[JSON, length]))
            .await;
        connection.send("1\r\nx\r\n").await;
        let (refused, body) = connection.answer().await;
        assert_eq!(status(&refused), "403", "{length}");
        assert!(body.contains("AuthenticationFailed"), "{body}");
        assert!(connection.is_closed().await);
    }
}

#[tokio::test]
async fn chunks_are_refused_once_they_are_too_many() {
    let server = people().await;
    let mut connection = Connection::to(&server).await;
    let headers = [JSON, "Transfer-Encoding: chunked"];
    connection
        .send(&head(&server, true, "POST /people", &headers))
        .await;
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    for _ in 0..4 {
        connection.send(&chunk).await;
    }
    connection.send("1\r\nx\r\n").await;
    let (refused, body) = connection.answer().await;
    assert_eq!(status(&refused), "413");
    assert!(body.contains("RequestBodyTooLarge"), "{body}");
}

#[tokio::test]
async fn an_answer_to_head_has_no_body() {
    let server = people().await;
    let mut connection = Connection::to(&server).await;
    for (line, expected) in [("HEAD /people?comp=acl", "200"), ("HEAD /people()", "405")] {
        connection.send(&head(&server, true, line, &[])).await;
        let answer = connection.head().await;
        assert_eq!(status(&answer), expected);
    }
    // Else this would be read out of a body.
    connection
        .send(&head(&server, true, "GET /people()", &[]))
        .await;
    assert_eq!(status(&connection.answer().await.0), "200");
}

#[tokio::test]
async fn an_answer_without_content_says_so() {
    let server = people().await;
    let headers = [JSON, NO_CONTENT];
    let inserted = send(&server, true, "POST /people", &headers, &entity("r")).await;
    assert_eq!((inserted.status, &*inserted.body), (204, ""));
    assert_eq!(inserted.header("content-length"), Some("0"));
}

#[tokio::test]
async fn heads_that_are_too_long_are_refused() {
    let server = people().await;
    let long = "x".repeat(40_000);
    let target = format!("GET /people()?$filter={long}");
    let answer = send(&server, true, &target, &[], "").await;
    assert_eq!((answer.status, &*answer.code()), (414, "InvalidUri"));
    let header = format!("X-Long: {long}");
    let answer = send(&server, true, "GET /people()", &[&header], "").await;
    assert_eq!(
        (answer.status, &*answer.code()),
        (431, "InvalidHeaderValue")
    );
    // Beyond that, the head is not read to its end: the answer has the form of all others.
    let many = vec!["X: y"; 101];
    for headers in [&[&*header, &header][..], &many] {
        let head = head(&server, true, "GET /people()", headers);
        let answer = exchange(&server, head.as_bytes()).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (431, "InvalidHeaderValue")
        );
        let id = answer.header("x-ms-request-id").unwrap();
        assert!(answer.body.contains(id), "{answer:?}");
    }
}
