//! Each exit code that the help names.

use std::process::{Command, Stdio};

use tablesdk::DynamicEntity;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::run::run;
use crate::{STRING, fill, server};

const FILE: &str = r#"{"format":"tablesdk","version":1}
{"table":"People","entity":{"PartitionKey":"p","RowKey":"00000"}}
{"table":"People","entity":{"PartitionKey":"p","RowKey":"new"}}
{"end":{"tables":0,"entities":2}}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_code_says_how_a_command_ended() {
    let (_server, service, account) = server().await;
    fill(&service, "People", 1).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.jsonl");
    std::fs::write(&file, FILE).unwrap();
    let file = file.to_str().unwrap();
    for (code, words) in [
        (0, &["get", "People", "p", "00000"][..]),
        (1, &["get", "People", "p", "00001"]),
        (1, &["query", "Animals", "--partition", "p"]),
        (2, &["query", "People"]),
        (2, &["query", "People", "--color"]),
        (2, &["rm", "my-table", "p", "00000"]),
        (
            2,
            &["rm", "People", "--partition", "p", "--filter", "A eq 1)"],
        ),
        (2, &["export", "people.csv", "--output", "csv"]),
        (3, &["import", file, "--mode", "insert"]),
    ] {
        let (found, _, errors) = run(words, &account).await;
        assert_eq!(found, code, "{words:?}: {errors}");
    }
    let new = ("p", "new");
    let stored = service.table("People").get::<DynamicEntity>(new).await;
    assert!(stored.unwrap().is_some(), "the others were imported");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_a_command_that_waits_with_130() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/a", silent.local_addr().unwrap());
    let account = format!("AccountName=a;AccountKey=c2VjcmV0;TableEndpoint={endpoint}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tables"));
    command.env_clear().env(STRING, account).arg("ls");
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    // The request has come, and gets no answer.
    let (mut request, _) = silent.accept().await.unwrap();
    request.read_u8().await.unwrap();
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(sent.success());
    let ended = tokio::task::spawn_blocking(move || child.wait().unwrap());
    assert_eq!(ended.await.unwrap().code(), Some(130));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_is_no_text_is_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let mut command = Command::new(env!("CARGO_BIN_EXE_tables"));
    command.arg(OsStr::from_bytes(b"foo\xff\x1b[31m"));
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = output.await.unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(!errors.contains('\u{1b}'), "{errors}");
}
