//! A client of sockets and strings: it sends a request as the test wrote it, signed or not, and
//! returns the response.

use std::io;
use std::net::SocketAddr;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, Method, Uri};
use tablesdk::{SharedKey, Timestamp};
use tablesdk_protocol::auth::{Scheme, string_to_sign};
use tablesdk_server::TableServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A response, parsed.
#[derive(Debug)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// The status line and the headers.
    pub head: String,
    /// Its body.
    pub body: String,
}

impl Response {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let line = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        line.map(|(_, value)| value)
    }

    /// The code of an OData error, in JSON or XML.
    pub fn code(&self) -> &str {
        let starts = [r#""code":""#, "<code>", "<m:code>"];
        let code = starts.iter().find_map(|start| self.body.split_once(start));
        let code = code.and_then(|(_, rest)| rest.split(['"', '<']).next());
        code.unwrap_or_else(|| panic!("{self:?}"))
    }
}

/// An account at an address.
#[derive(Debug)]
pub struct RawClient {
    /// The server's address.
    pub address: SocketAddr,
    /// The key of the account.
    pub key: SharedKey,
}

impl RawClient {
    /// A client of a server that listens on a port.
    pub fn of(server: &TableServer) -> Self {
        Self {
            address: server.local_addr().expect("the server has a socket"),
            key: server.credential(),
        }
    }

    /// The head of a request with these header lines; `sign` adds date and signature. The path is
    /// below the account.
    pub fn head(&self, sign: bool, request_line: &str, headers: &[&str]) -> String {
        let (method, path) = request_line.split_once(' ').expect("a method and a path");
        let account = self.key.account();
        let target = format!("/{account}{path}");
        let mut lines = vec![format!(
            "{method} {target} HTTP/1.1\r\nHost: {}",
            self.address
        )];
        lines.extend(headers.iter().map(|line| (*line).to_owned()));
        if sign {
            let now = Timestamp::try_from(SystemTime::now()).expect("a time of this century");
            let date = now.to_http_date();
            let mut signed = HeaderMap::new();
            let date_line = format!("x-ms-date: {date}");
            for line in headers.iter().copied().chain([&*date_line]) {
                let (name, value) = line.split_once(": ").expect("a header has a name");
                let name: HeaderName = name.parse().expect("a name of a header");
                signed.append(name, value.parse().expect("a value of a header"));
            }
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let uri: Uri = target.parse().expect("a target");
            let text = string_to_sign(Scheme::SharedKeyLite, account, &method, &uri, &signed);
            let signature = self.key.sign(&text);
            let credential = format!("SharedKeyLite {account}:{}", signature.expose());
            lines.extend([date_line, format!("Authorization: {credential}")]);
        }
        lines.join("\r\n") + "\r\n\r\n"
    }

    /// Sends a request with these header lines and this body on a connection of its own.
    ///
    /// # Errors
    ///
    /// If the connection ends before the response is complete.
    pub async fn send(
        &self,
        sign: bool,
        request_line: &str,
        headers: &[&str],
        body: &str,
    ) -> io::Result<Response> {
        let length = format!("Content-Length: {}", body.len());
        let headers = [headers, &["Connection: close", &length]].concat();
        let request = self.head(sign, request_line, &headers) + body;
        self.exchange(request.as_bytes()).await
    }

    /// Sends bytes, and reads until the server closes the connection.
    ///
    /// # Errors
    ///
    /// If the connection ends before the response is complete.
    pub async fn exchange(&self, bytes: &[u8]) -> io::Result<Response> {
        let mut socket = TcpStream::connect(self.address).await?;
        socket.write_all(bytes).await?;
        let mut text = String::new();
        socket.read_to_string(&mut text).await?;
        let incomplete = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(incomplete)?;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let response = Response {
            status: status.ok_or_else(incomplete)?,
            head: head.to_owned(),
            body: body.to_owned(),
        };
        let length = response.header("content-length");
        if length.is_some_and(|length| length.parse() != Ok(body.len())) {
            return Err(incomplete());
        }
        Ok(response)
    }
}
