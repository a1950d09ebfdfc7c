//! A client of sockets and strings. It knows HTTP, but no tables.

use std::time::SystemTime;

use serde_json::Value as Json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::sign::{resource, signature};

/// An endpoint and the credential of an account.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) key: String,
    /// Host and port.
    pub(crate) authority: String,
    /// The path of the account, such as `/devstoreaccount1`, or nothing.
    pub(crate) path: String,
}

/// The credential of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    None,
    SharedKey,
    SharedKeyLite,
}

/// A response, parsed.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The text after the status in the first line.
    pub(crate) reason: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let header = headers.find(|(key, _)| key.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is not JSON.
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The code of an error, in JSON, XML or a header.
    pub(crate) fn code(&self) -> String {
        let json = self.json();
        if let Some(code) = json["odata.error"]["code"].as_str() {
            return code.to_owned();
        }
        let tags = ["code>", "Code>"];
        let tag = tags.iter().find_map(|tag| self.body.split_once(tag));
        let element = tag.and_then(|(_, rest)| rest.split_once('<'));
        let header = || self.header("x-ms-error-code").unwrap_or_default();
        element.map_or_else(header, |(code, _)| code).to_owned()
    }

    /// The message of an error.
    pub(crate) fn message(&self) -> String {
        let json = self.json();
        let value = json["odata.error"]["message"]["value"].as_str();
        value.unwrap_or_default().to_owned()
    }
}

/// A time in the format of HTTP.
pub(crate) fn http_date(time: OffsetDateTime) -> String {
    let date = time.format(&Rfc2822).unwrap();
    date.replace("+0000", "GMT")
}

impl Account {
    /// Reads a connection string with an account, a key and the URL of the tables.
    pub(crate) fn parse(connection_string: &str) -> Self {
        let part = |name: &str| {
            let parts = connection_string.split(';');
            let mut parts = parts.filter_map(|part| part.split_once('='));
            let part = parts.find(|(key, _)| *key == name);
            let (_, value) = part.unwrap_or_else(|| panic!("the connection string lacks {name}"));
            value
        };
        let url = part("TableEndpoint");
        let rest = url.strip_prefix("http://");
        let rest = rest.expect("this client speaks plain HTTP alone");
        let rest = rest.trim_end_matches('/');
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Self {
            name: part("AccountName").to_owned(),
            key: part("AccountKey").to_owned(),
            authority: authority.to_owned(),
            path: path.to_owned(),
        }
    }

    /// The URL of the account, as responses have it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}{}", self.authority, self.path)
    }

    /// Sends a request to a path below the account.
    pub(crate) async fn send(
        &self,
        credential: Credential,
        line: &str,
        headers: &[&str],
        body: &str,
    ) -> Response {
        let (method, path) = line.split_once(' ').unwrap();
        let target = format!("{}{path}", self.path);
        self.send_to(credential, method, &target, headers, body)
            .await
    }

    /// Sends a request to any path.
    pub(crate) async fn send_to(
        &self,
        credential: Credential,
        method: &str,
        target: &str,
        headers: &[&str],
        body: &str,
    ) -> Response {
        let named = |name: &str| {
            let mut lines = headers.iter().filter_map(|line| line.split_once(": "));
            let line = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
            line.map(|(_, value)| value)
        };
        let date = http_date(SystemTime::now().into());
        let date = named("x-ms-date").unwrap_or(&date);
        let host = named("Host").unwrap_or(&self.authority);
        let mut head =
            format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        let mut add = |name: &str, value: &str| head += &format!("{name}: {value}\r\n");
        let content_type = match named("Content-Type") {
            Some(value) => value,
            None if body.is_empty() => "",
            None => {
                add("Content-Type", "application/json");
                "application/json"
            }
        };
        if named("Accept").is_none() {
            add("Accept", "application/json;odata=minimalmetadata");
        }
        if named("x-ms-version").is_none() {
            add("x-ms-version", "2019-02-02");
        }
        let resource = resource(&self.name, target);
        let md5 = named("Content-MD5").unwrap_or_default();
        let full = format!("{method}\n{md5}\n{content_type}\n{date}\n{resource}");
        let signed = match credential {
            Credential::None => None,
            Credential::SharedKey => Some(("SharedKey", full)),
            Credential::SharedKeyLite => Some(("SharedKeyLite", format!("{date}\n{resource}"))),
        };
        if let Some((scheme, text)) = signed {
            if named("x-ms-date").is_none() {
                add("x-ms-date", date);
            }
            if named("Authorization").is_none() {
                let (name, signature) = (&self.name, signature(&self.key, &text));
                add("Authorization", &format!("{scheme} {name}:{signature}"));
            }
        }
        for line in headers {
            if !line.to_lowercase().starts_with("host: ") {
                head += &format!("{line}\r\n");
            }
        }
        if named("Transfer-Encoding").is_none() && named("Content-Length").is_none() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        self.exchange(&format!("{head}\r\n{body}")).await
    }

    /// Sends bytes, and reads until the server closes the connection.
    pub(crate) async fn exchange(&self, request: &str) -> Response {
        let mut socket = TcpStream::connect(&self.authority).await.unwrap();
        // A server that refuses a large body may close before it has read it.
        let _ = socket.write_all(request.as_bytes()).await;
        let mut bytes = Vec::new();
        let _ = socket.read_to_end(&mut bytes).await;
        let response = String::from_utf8_lossy(&bytes);
        let (head, body) = response
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no response to {request:.300}: {response:?}"));
        let mut lines = head.lines();
        let (_, status) = lines.next().unwrap().split_once(' ').unwrap();
        let (status, reason) = status.split_once(' ').unwrap_or((status, ""));
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut response = Response {
            status: status.parse().unwrap(),
            reason: reason.to_owned(),
            headers,
            body: body.to_owned(),
        };
        if response.header("Transfer-Encoding") == Some("chunked") {
            response.body = dechunked(body);
        }
        response
    }
}

/// The content of a body in chunks. Their sizes are bytes, and no response of a table service cuts
/// a character in two.
fn dechunked(mut body: &str) -> String {
    let mut content = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|chunk| !chunk.is_empty()) else {
            break;
        };
        content += chunk;
        body = rest.get(size + 2..).unwrap_or_default();
    }
    content
}
