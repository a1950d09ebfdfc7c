//! `explore` from its start to its end: what it prints, and what it goes on without.

use std::io::{BufRead as _, BufReader, pipe};
use std::process::{Child, Command, Stdio};

use tablesdk::ErrorCode;
use tablesdk_server::testing::{Fault, Op};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::page::Page;
use crate::{STRING, server};

fn command(account: &str, home: &tempfile::TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tables"));
    command.args(["explore", "--port", "0", "--no-open"]);
    command.env_clear().env(STRING, account);
    command.env("HOME", home.path());
    command
}

#[tokio::test]
async fn without_a_reader_of_the_url_it_ends_with_a_message() {
    let (_server, _service, account) = server().await;
    let home = tempfile::tempdir().unwrap();
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let output = command(&account, &home).stdout(writer).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("the URL of the page cannot be printed"),
        "{message}"
    );
}

/// The program, even if the test fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn it_goes_on_without_its_outputs_and_after_requests_that_are_none() {
    let (_server, _service, account) = server().await;
    let home = tempfile::tempdir().unwrap();
    let (log, errors) = pipe().unwrap();
    drop(log);
    let mut command = command(&account, &home);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors);
    let mut program = Ended(command.spawn().unwrap());
    let mut out = BufReader::new(program.0.stdout.take().unwrap());
    let mut url = String::new();
    out.read_line(&mut url).unwrap();
    drop(out);
    let host = url.strip_prefix("http://").unwrap();
    let (host, _) = host.split_once('/').unwrap();
    let mut open = Vec::new();
    for index in 0..300 {
        let mut stream = TcpStream::connect(host).await.unwrap();
        let bytes: &[u8] = match index % 5 {
            0 => b"",
            1 => b"GET / HTTP/1.1\r\nHost: ",
            2 => b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
            3 => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            _ => b"POST /review/send HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        };
        stream.write_all(bytes).await.unwrap();
        // Two thirds stay open.
        if index % 3 > 0 {
            open.push(stream);
        }
    }
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 401 "), "{response}");
    assert!(program.0.try_wait().unwrap().is_none());
}

#[tokio::test]
async fn tables_that_cannot_be_listed_are_asked_for_once_in_a_page() {
    let (server, _service, account) = server().await;
    let page = Page::open(&[], &account).await;
    let token = page.post("/tables/refresh", &[]).await;
    assert_eq!(token.status, 303);
    let fault = Fault::error(ErrorCode::AuthorizationFailure);
    server.faults().on(Op::QueryTables).inject(fault);
    let journal = server.journal();
    journal.clear();
    let shown = page.get("/").await;
    assert_eq!(
        shown.body.matches("AuthorizationFailure").count(),
        2,
        "{}",
        shown.body
    );
    assert_eq!(journal.requests().op(Op::QueryTables).count(), 1);
}
