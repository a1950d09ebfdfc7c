//! The program, as a process of its own: how it ends when it is told to, with a request under way.

#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and signs with the time of this machine"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use http::{HeaderMap, Method, Uri};
use tablesdk_protocol::auth::{Scheme, SharedKey, string_to_sign};
use tablesdk_protocol::{Endpoint, Timestamp};

/// The program; it ends with the test.
struct Program {
    child: Child,
    /// Keeps its standard output open.
    _stdout: BufReader<std::process::ChildStdout>,
    key: SharedKey,
    address: String,
}

impl Program {
    fn start(flags: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tablesdk-server"))
            .args(["--port", "0", "--log", "info"])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let part = |name: &str| {
            let (_, rest) = line.split_once(name).unwrap();
            rest.split(';').next().unwrap().to_owned()
        };
        let endpoint: Endpoint = part("TableEndpoint=").parse().unwrap();
        let authority = endpoint.as_str().split('/').nth(2).unwrap();
        Self {
            address: authority.to_owned(),
            key: SharedKey::new(part("AccountName="), &part("AccountKey=")).unwrap(),
            _stdout: stdout,
            child,
        }
    }

    /// A connection with a request under way: its body has begun, and the server is known to wait for the rest.
    fn half_a_request(&self) -> TcpStream {
        let path = format!("/{}/Tables", self.key.account());
        let date = Timestamp::try_from(std::time::SystemTime::now()).unwrap();
        let date = date.to_http_date();
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-date", date.parse().unwrap());
        let uri: Uri = path.parse().unwrap();
        let account = self.key.account();
        let text = string_to_sign(
            Scheme::SharedKeyLite,
            account,
            &Method::POST,
            &uri,
            &headers,
        );
        let signature = self.key.sign(&text);
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {}\r\nx-ms-date: {date}\r\nExpect: 100-continue\r\n\
             Authorization: SharedKeyLite {account}:{}\r\nContent-Length: 22\r\n\r\n",
            self.address,
            signature.expose()
        )
        .unwrap();
        let mut go_on = [0; 25];
        stream.read_exact(&mut go_on).unwrap();
        assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"{").unwrap();
        stream
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status();
        assert!(status.unwrap().success());
    }

    /// Returns once the signal has arrived: the port is closed then.
    fn is_stopping(&self) {
        while TcpStream::connect(&self.address).is_ok() {
            std::thread::yield_now();
        }
    }

    /// Exit code, and what it said on standard error.
    fn ended(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        let mut text = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut text).unwrap();
        (status.code(), text)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

#[test]
fn one_signal_lets_requests_be_answered() {
    let program = Program::start(&[]);
    let mut stream = program.half_a_request();
    program.signal("TERM");
    program.is_stopping();
    stream.write_all(br#""TableName":"people"}"#).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 4"),
        "no type was given: {answer}"
    );
    let (code, log) = program.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("method=POST"), "{log}");
}

#[test]
fn requests_are_cut_off_after_the_grace() {
    let program = Program::start(&["--shutdown-grace", "0"]);
    let mut stream = program.half_a_request();
    program.signal("INT");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(answer, b"");
    let (code, log) = program.ended();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("1 connections were cut off"), "{log}");
    assert!(log.contains("abandoned"), "{log}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    // Else the test would last an hour.
    let program = Program::start(&["--shutdown-grace", "3600"]);
    let _under_way = program.half_a_request();
    program.signal("TERM");
    program.is_stopping();
    program.signal("INT");
    let (code, log) = program.ended();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("told to stop twice"), "{log}");
}
