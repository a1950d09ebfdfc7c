//! The program: its options, files, output and exit codes, against bundled servers over HTTP.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod connections;
#[cfg(all(unix, feature = "entra-id"))]
mod entra;
mod exits;
#[cfg(feature = "explore")]
mod explore_attacks;
#[cfg(feature = "explore")]
mod explore_bench;
#[cfg(feature = "explore")]
mod explore_query;
#[cfg(feature = "explore")]
mod explore_schema;
#[cfg(feature = "explore")]
mod explore_start;
#[cfg(feature = "explore")]
mod explore_write;
mod files;
mod infer;
mod leftovers;
mod mcp;
mod mistakes;
mod outbox;
mod own;
#[cfg(feature = "explore")]
mod page;
mod run;
mod sas;
mod sheets;
mod show;
mod write;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;
use tablesdk::{DynamicEntity, TableServiceClient};
use tablesdk_server::TableServer;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpListener;

use crate::run::run_with;

/// A server, its client, and its connection string.
async fn server() -> (TableServer, TableServiceClient, String) {
    let server = TableServer::start().await.unwrap();
    let text = server.connection_string();
    let service = TableServiceClient::from_connection_string(&text).unwrap();
    (server, service, text)
}

async fn fill(service: &TableServiceClient, table: &str, count: usize) {
    let table = service.table(table);
    table.create_table().if_missing().await.unwrap();
    let entities = (0..count).map(|index| DynamicEntity::new("p", format!("{index:05}")));
    let report = table.bulk().upsert_replace(futures::stream::iter(entities));
    assert!(report.await.unwrap().is_success());
}

async fn count(service: &TableServiceClient, table: &str) -> usize {
    let query = service.table(table).query::<DynamicEntity>();
    query.count().await.unwrap()
}

/// Runs a command that carries tables, in a directory. Returns the exit code, its summary in JSON,
/// and what else is on standard error.
async fn tables(
    directory: &Path,
    words: &[&str],
    variables: &[(&str, &str)],
) -> (i32, Json, String) {
    let words = [words, &["--output", "json"]].concat();
    let (code, out, shown) = run_with(directory, &words, variables).await;
    assert!(out.is_empty());
    let lines: Vec<_> = shown.split_inclusive('\n').collect();
    let summary = lines.last().and_then(|it| serde_json::from_str(it).ok());
    let others = lines.len() - usize::from(summary.is_some());
    let errors: String = lines.into_iter().take(others).collect();
    let json = summary.unwrap_or_default();
    // The key of no server is printed.
    for (_, text) in variables {
        let key = text
            .split(';')
            .find_map(|part| part.strip_prefix("AccountKey="));
        assert!(key.is_none_or(|key| !shown.contains(key)), "{shown}");
    }
    (code, json, errors)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

const STRING: &str = "AZURE_STORAGE_CONNECTION_STRING";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_exported_and_imported() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, from, text) = server().await;
    fill(&from, "People", 1_234).await;
    fill(&from, "Empty", 0).await;

    let words = ["export", "all.jsonl"];
    let (code, json, errors) = tables(directory, &words, &[(STRING, &text)]).await;
    assert_eq!((code, errors.as_str()), (0, ""));
    assert_eq!(
        (&json["tables"], &json["entities"]),
        (&2.into(), &1_234.into())
    );
    assert_eq!(names(directory), ["all.jsonl"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(directory.join("all.jsonl"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "only the owner can read it");
    }
    let (code, _, errors) = tables(directory, &words, &[(STRING, &text)]).await;
    assert!(code == 1 && errors.contains("all.jsonl exists") && errors.contains("--force"));
    let words = [
        "export",
        "--force",
        "--table",
        "Empty",
        "all.jsonl",
        "--connection-string",
        &text,
    ];
    let (code, json, _) = tables(directory, &words, &[]).await;
    assert_eq!(
        (code, &json["tables"], &json["entities"]),
        (0, &1.into(), &0.into())
    );
    let (code, ..) = tables(
        directory,
        &["export", "--force", "all.jsonl"],
        &[(STRING, &text)],
    )
    .await;
    assert_eq!(code, 0);

    // As the Azure command line takes an account.
    let (server, to, text) = server().await;
    let part = |name: &str| {
        let mut parts = text.split(';').filter_map(|part| part.split_once('='));
        parts
            .find_map(|(key, value)| (key == name).then(|| value.to_owned()))
            .unwrap()
    };
    let (name, key) = (part("AccountName"), part("AccountKey"));
    let endpoint = server.endpoint().to_owned();
    let words = ["import", "all.jsonl", "--table-endpoint", &endpoint];
    let account = [
        ("AZURE_STORAGE_ACCOUNT", &*name),
        ("AZURE_STORAGE_KEY", &*key),
    ];
    let (code, json, errors) = tables(directory, &words, &account).await;
    assert_eq!(
        (code, &json["entities"], &json["failed"]),
        (0, &1_234.into(), &0.into()),
        "{errors}"
    );
    assert_eq!(count(&to, "People").await, 1_234);
    assert_eq!(count(&to, "Empty").await, 0);
    assert_eq!(names(directory), ["all.jsonl"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_entities_are_named_with_file_and_line() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    fill(&service, "People", 1).await;
    let line = |row: &str| {
        format!(r#"{{"table":"People","entity":{{"PartitionKey":"p","RowKey":"{row}"}}}}"#)
    };
    let start = r#"{"format":"tablesdk","version":1}"#;
    let end = r#"{"end":{"tables":0,"entities":3}}"#;
    let lines = [start, &line("00000"), &line("1"), &line("2"), end].join("\n");
    fs::write(directory.join("some.jsonl"), lines + "\n").unwrap();
    let words = ["import", "--mode", "insert", "some.jsonl"];
    let (code, json, errors) = tables(directory, &words, &[(STRING, &text)]).await;
    assert_eq!(
        (code, &json["failed"], &json["error"]),
        (3, &1.into(), &Json::Null)
    );
    assert_eq!(json["failures"][0]["place"], "some.jsonl:2");
    assert_eq!(json["failures"][0]["rowKey"], "00000");
    assert!(
        errors.contains("some.jsonl:2: ") && errors.contains("EntityAlreadyExists"),
        "{errors}"
    );
    assert_eq!(
        (count(&service, "People").await, names(directory)),
        (3, vec!["some.jsonl".to_owned()])
    );

    // A failed import continues, and says that entities failed before.
    let words = [
        "import",
        "--mode",
        "insert",
        "--max-failures",
        "1",
        "some.jsonl",
    ];
    let (code, _, errors) = tables(directory, &words, &[(STRING, &text)]).await;
    assert!(
        code == 1 && errors.contains("too many entities"),
        "{errors}"
    );
    assert!(directory.join("some.jsonl.import").exists());
    let words = ["import", "some.jsonl"];
    let (code, json, errors) = tables(directory, &words, &[(STRING, &text)]).await;
    assert_eq!(
        (code, &json["failures"]),
        (3, &Json::Array(Vec::new())),
        "{errors}"
    );
    assert!(errors.contains("in an earlier run"), "{errors}");
    assert_eq!(names(directory), ["some.jsonl"]);
}

/// Responds to each list of tables and to each query with the same bodies, as a service that is not
/// ours.
async fn responding(tables: &'static str, entities: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufStream::new(stream);
            let mut request = String::new();
            while !request.ends_with("\r\n\r\n")
                && stream.read_line(&mut request).await.unwrap() > 0
            {}
            let is_list = request
                .split(' ')
                .nth(1)
                .is_some_and(|path| path.contains("/Tables"));
            let body = if is_list { tables } else { entities };
            let length = body.len();
            let response = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json;odata=minimalmetadata\r\nx-ms-version: 2019-02-02\r\n\
                 x-ms-request-id: 1\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            stream.write_all(response.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
        }
    });
    format!("AccountName=acct;AccountKey=a2V5;TableEndpoint=http://{address}/acct")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_names_entities_that_cannot_be_read_and_has_the_others() {
    let place = tempfile::tempdir().unwrap();
    let text = responding(
        r#"{"value":[{"TableName":"People"}]}"#,
        r#"{"value":[
            {"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"1","Age":1},
            {"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"2","Age@odata.type":"Edm.Decimal","Age":"2"},
            {"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"3","Age":3}
        ]}"#,
    )
    .await;
    let words = ["export", "some.jsonl"];
    let (code, json, errors) = tables(place.path(), &words, &[(STRING, &text)]).await;
    assert_eq!((code, &json["failed"]), (3, &1.into()), "{errors} {json}");
    assert_eq!((&json["tables"], &json["entities"]), (&1.into(), &2.into()));
    assert_eq!(json["failures"][0]["place"], "People");
    assert_eq!(json["failures"][0]["rowKey"], "2");
    assert!(errors.contains("Edm.Decimal"), "{errors}");
    let lines = fs::read_to_string(place.path().join("some.jsonl")).unwrap();
    let keys: Vec<_> = lines
        .split(r#""RowKey":""#)
        .skip(1)
        .filter_map(|line| line.get(..1))
        .collect();
    assert_eq!(keys, ["1", "3"]);
    assert!(
        lines.ends_with("{\"end\":{\"tables\":1,\"entities\":2}}\n"),
        "{lines}"
    );

    // A copy does the same.
    let (_server, service, to) = server().await;
    let words = ["copy", "--from", "env:OLD", "--to", "env:NEW"];
    let (code, json, errors) = tables(place.path(), &words, &[("OLD", &text), ("NEW", &to)]).await;
    assert_eq!((code, &json["failed"]), (3, &1.into()), "{errors} {json}");
    assert_eq!(
        (
            json["failures"][0]["rowKey"].as_str(),
            count(&service, "People").await
        ),
        (Some("2"), 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_line_is_named_and_another_file_is_not_continued() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    let entity = |row: usize| {
        format!(
            "{{\"table\":\"People\",\"entity\":{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"}}}}\n"
        )
    };
    let mut lines = "{\"format\":\"tablesdk\",\"version\":1}\n".to_owned();
    lines.extend((0..1_000).map(entity));
    fs::write(directory.join("bad.jsonl"), lines.clone() + "{}\n").unwrap();
    for _ in 0..2 {
        let (code, _, errors) =
            tables(directory, &["import", "bad.jsonl"], &[(STRING, &text)]).await;
        assert!(
            code == 1 && errors.contains("bad.jsonl: line 1002: "),
            "{errors}"
        );
        assert_eq!(count(&service, "People").await, 1_000);
        assert!(directory.join("bad.jsonl.import").exists());
    }
    fs::write(directory.join("bad.jsonl"), lines).unwrap();
    let (code, _, errors) = tables(directory, &["import", "bad.jsonl"], &[(STRING, &text)]).await;
    assert!(
        code == 1 && errors.contains("it has other contents since"),
        "{errors}"
    );
    fs::remove_file(directory.join("bad.jsonl.import")).unwrap();
    let (code, _, errors) = tables(directory, &["import", "bad.jsonl"], &[(STRING, &text)]).await;
    assert!(code == 1 && errors.contains("truncated"), "{errors}");
    assert_eq!(names(directory), ["bad.jsonl"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_and_copies_continue_where_they_stopped() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_from, from, from_text) = server().await;
    let (_to, to, to_text) = server().await;
    fill(&from, "Alpha", 2_500).await;
    let variables = [
        ("FROM", &*from_text),
        ("TO", &*to_text),
        (STRING, &*from_text),
    ];
    let selection = ["--table", "Alpha", "--table", "Zeta"];
    let export = [&["export", "two.jsonl"], &selection[..]].concat();
    let copy = ["copy", "--from", "env:FROM", "--to", "env:TO"];
    let copy = [&copy, &selection[..]].concat();

    // The second table is missing.
    for words in [&export, &copy] {
        let (code, _, errors) = tables(directory, words, &variables).await;
        assert!(code == 1 && errors.contains("TableNotFound"), "{errors}");
    }
    assert_eq!(
        names(directory),
        ["tables.copy", "two.jsonl.export", "two.jsonl.part"]
    );
    assert_eq!(count(&to, "Alpha").await, 2_500);
    // Nothing of the first table is read again: an entity that is deleted now was exported.
    from.table("Alpha").delete(("p", "00000")).await.unwrap();
    fill(&from, "Zeta", 7).await;
    for words in [&export, &copy] {
        let (code, json, errors) = tables(directory, words, &variables).await;
        assert_eq!(
            (code, &json["tables"], &json["entities"]),
            (0, &2.into(), &2_507.into()),
            "{errors}"
        );
    }
    assert_eq!(names(directory), ["two.jsonl"]);
    assert_eq!(
        (count(&to, "Alpha").await, count(&to, "Zeta").await),
        (2_500, 7)
    );
    let lines = fs::read_to_string(directory.join("two.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 2_511);
    assert!(lines.ends_with("{\"end\":{\"tables\":2,\"entities\":2507}}\n"));
}

#[tokio::test]
async fn invalid_arguments_exit_with_2() {
    let place = tempfile::tempdir().unwrap();
    let copy = ["copy", "--from", "env:NONE", "--to", "env:NONE"];
    for (words, problem) in [
        (&["export"][..], "<FILE>"),
        (&["export", "file"], "no account is given"),
        (
            &["export", "file", "--connection-string", "nonsense"],
            "connection string",
        ),
        (
            &[
                "export",
                "file",
                "--account-name",
                "acct",
                "--account-key",
                "x",
                "--sas-token",
                "y",
            ],
            "cannot be used with",
        ),
        (&["import", "file", "--batch-size", "101"], "1..=100"),
        (&["import", "file", "--table", "T2"], "length of 2"),
        (
            &["import", "file", "--mode", "upsert"],
            "replace, merge, insert",
        ),
        (&copy, "NONE is not set"),
    ] {
        let (code, _, errors) = tables(place.path(), words, &[]).await;
        assert!(
            code == 2 && errors.contains(problem),
            "{words:?}: {code} {errors}"
        );
    }
    assert_eq!(names(place.path()).len(), 0);
}

/// Runs `export --force` into a file of a directory, and returns the exit code and standard error.
#[cfg(unix)]
async fn forced_export(directory: &Path, file: &str, text: &str) -> (i32, String) {
    let words = ["export", "--force", file];
    let (code, _, errors) = tables(directory, &words, &[(STRING, text)]).await;
    (code, errors)
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_export_replaces_nothing_but_a_regular_file() {
    use std::os::unix::fs::symlink;
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    fill(&service, "People", 3).await;
    let made = Command::new("mkfifo").arg(directory.join("pipe")).status();
    assert!(made.unwrap().success());
    fs::create_dir(directory.join("directory")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(directory.join("socket")).unwrap();
    symlink("nothing", directory.join("to_nothing")).unwrap();
    let before = names(directory);
    let nowhere = "AccountName=a;AccountKey=a2V5;TableEndpoint=http://127.0.0.1:1/a";
    for (file, expected) in [
        (
            "directory",
            "directory exists and is not a regular file: choose another name, since nothing else is replaced\n",
        ),
        ("socket", "socket cannot be written: "),
        (
            "to_nothing",
            "to_nothing is a link to a file that does not exist: name that file\n",
        ),
    ] {
        // Nothing was read: no server is needed to find it.
        for text in [&*text, nowhere] {
            let (code, errors) = forced_export(directory, file, text).await;
            assert_eq!(code, 2);
            assert!(
                errors.starts_with(&format!("tables: {expected}")),
                "{errors}"
            );
        }
    }
    drop(socket);
    assert_eq!(names(directory), before);

    // The file with the position is not one of another kind, either.
    let copy = [
        "copy", "--from", "env:FROM", "--to", "env:TO", "--state", "pipe",
    ];
    let to = "AccountName=a;AccountKey=a2V5;TableEndpoint=http://127.0.0.1:1/a";
    let (code, _, errors) = tables(directory, &copy, &[("FROM", &text), ("TO", to)]).await;
    assert!(
        code == 2 && errors.contains("pipe exists and is not a regular file"),
        "{code} {errors}"
    );
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_file_stays_one_and_the_file_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    fill(&service, "People", 3).await;
    fs::create_dir(directory.join("disk")).unwrap();
    fs::write(directory.join("disk/monday.jsonl"), "older").unwrap();
    std::os::unix::fs::symlink("disk/monday.jsonl", directory.join("last.jsonl")).unwrap();

    let (code, _, errors) = tables(directory, &["export", "last.jsonl"], &[(STRING, &text)]).await;
    assert!(
        code == 1 && errors.contains("last.jsonl exists"),
        "{errors}"
    );
    let (code, errors) = forced_export(directory, "last.jsonl", &text).await;
    assert_eq!((code, errors.as_str()), (0, ""));
    let link = fs::symlink_metadata(directory.join("last.jsonl")).unwrap();
    assert!(link.is_symlink());
    let lines = fs::read_to_string(directory.join("disk/monday.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 6);
    assert_eq!(names(directory), ["disk", "last.jsonl"]);
    assert_eq!(names(&directory.join("disk")), ["monday.jsonl"]);
}
