//! A client of sockets and strings: it sends a request as the test wrote it, signed or not, and returns the response.

use http::{HeaderMap, Method, Uri};
use tablesdk_protocol::auth::{Scheme, string_to_sign};
use tablesdk_server::TableServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A response, parsed.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The code of an OData error.
    pub(crate) fn code(&self) -> String {
        let body: serde_json::Value =
            serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"));
        body["odata.error"]["code"]
            .as_str()
            .unwrap_or_else(|| panic!("{self:?}"))
            .to_owned()
    }
}

/// Sends a request with these header lines and this body; `sign` adds date and signature. The path is below the account.
pub(crate) async fn send(
    server: &TableServer,
    sign: bool,
    request_line: &str,
    headers: &[&str],
    body: &str,
) -> Answer {
    let length = format!("Content-Length: {}", body.len());
    let mut headers = headers.to_vec();
    headers.extend(["Connection: close", &length]);
    let request = head(server, sign, request_line, &headers) + body;
    exchange(server, request.as_bytes()).await
}

/// The head of a request with these header lines; `sign` adds date and signature. The path is below the account.
pub(crate) fn head(
    server: &TableServer,
    sign: bool,
    request_line: &str,
    headers: &[&str],
) -> String {
    let (method, path) = request_line.split_once(' ').unwrap();
    let account = server.credential().account().to_owned();
    let target = format!("/{account}{path}");
    let address = server.local_addr().unwrap();
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\n");
    let mut signed = HeaderMap::new();
    for line in headers {
        head += &format!("{line}\r\n");
        let (name, value) = line.split_once(": ").unwrap();
        signed.append(
            name.parse::<http::HeaderName>().unwrap(),
            value.parse().unwrap(),
        );
    }
    if sign {
        let date = time::OffsetDateTime::now_utc();
        let date = tablesdk::Timestamp::try_from(std::time::SystemTime::from(date))
            .unwrap()
            .to_http_date();
        head += &format!("x-ms-date: {date}\r\n");
        signed.insert("x-ms-date", date.parse().unwrap());
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let uri: Uri = target.parse().unwrap();
        let text = string_to_sign(Scheme::SharedKeyLite, &account, &method, &uri, &signed);
        let signature = server.credential().sign(&text);
        head += &format!(
            "Authorization: SharedKeyLite {account}:{}\r\n",
            signature.expose()
        );
    }
    head + "\r\n"
}

/// Sends bytes and reads until the server closes.
pub(crate) async fn exchange(server: &TableServer, bytes: &[u8]) -> Answer {
    let mut socket = TcpStream::connect(server.local_addr().unwrap())
        .await
        .unwrap();
    socket.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{answer:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    }
}
