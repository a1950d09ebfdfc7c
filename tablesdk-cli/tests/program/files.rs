//! Pipes and files: standard input and output, what an error leaves, and files that are not those
//! of an export.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::run::run_in;
use super::{STRING, count, fill, names, server, tables};

/// Runs the program in a directory, with these bytes as standard input. Returns the exit code,
/// standard output, and standard error.
async fn piped(
    directory: &Path,
    words: &[&str],
    account: &str,
    input: impl Into<Vec<u8>>,
) -> (i32, String, String) {
    run_in(directory, words, &[(STRING, account)], input).await
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_go_through_pipes() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_from, from, from_text) = server().await;
    let (_to, to, to_text) = server().await;
    fill(&from, "People", 1_234).await;
    for file in ["-", "/dev/stdout"] {
        let (code, out, errors) = piped(directory, &["export", file], &from_text, "").await;
        assert!(
            code == 0 && errors.starts_with("Exported 1 table with 1234 entities"),
            "{errors}"
        );
        assert_eq!(out.lines().count(), 1_237);
        let words = ["import", "-", "--table", "Copies"];
        let (code, none, errors) = piped(directory, &words, &to_text, out).await;
        assert_eq!((code, none.as_str()), (0, ""), "{errors}");
        assert!(
            errors.starts_with("Imported 1 table with 1234 entities"),
            "{errors}"
        );
    }
    assert_eq!(count(&to, "Copies").await, 1_234);

    let query = ["query", "People", "--scan", "--all", "--output", "json"];
    let (_, out, _) = piped(directory, &query, &from_text, "").await;
    let words = ["import", "/dev/stdin", "--table", "Other"];
    let (code, _, errors) = piped(directory, &words, &to_text, out.clone()).await;
    assert_eq!((code, count(&to, "Other").await), (0, 1_234), "{errors}");
    let (code, _, errors) = piped(directory, &["import", "-"], &to_text, out).await;
    assert_eq!(code, 1);
    assert!(
        errors.contains("standard input: line 1: the file names no table"),
        "{errors}"
    );
    assert!(names(directory).is_empty());
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_or_a_device_is_written_and_stays() {
    use std::os::unix::fs::{FileTypeExt as _, symlink};
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    fill(&service, "People", 1_500).await;
    let made = Command::new("mkfifo").arg(directory.join("pipe")).status();
    assert!(made.unwrap().success());
    symlink("pipe", directory.join("to_pipe")).unwrap();
    symlink("/dev/null", directory.join("to_device")).unwrap();
    let before = names(directory);
    for file in ["pipe", "to_pipe"] {
        let path = directory.join(file);
        let read = tokio::task::spawn_blocking(move || fs::read_to_string(path).unwrap());
        let (code, json, errors) = tables(directory, &["export", file], &[(STRING, &text)]).await;
        assert_eq!((code, &json["entities"]), (0, &1_500.into()), "{errors}");
        assert!(
            read.await
                .unwrap()
                .ends_with("{\"end\":{\"tables\":1,\"entities\":1500}}\n")
        );
    }
    let words = ["export", "--force", "to_device"];
    let (code, _, errors) = tables(directory, &words, &[(STRING, &text)]).await;
    assert_eq!(code, 0, "{errors}");
    assert_eq!(names(directory), before);
    let kind = fs::symlink_metadata(directory.join("pipe"))
        .unwrap()
        .file_type();
    assert!(kind.is_fifo());

    // An import reads from one, and has nothing to continue from.
    let path = directory.join("pipe");
    let line = r#"{"table":"Others","entity":{"PartitionKey":"a","RowKey":"1"}}"#;
    let written = tokio::task::spawn_blocking(move || fs::write(path, line).unwrap());
    let (code, _, errors) = tables(directory, &["import", "pipe"], &[(STRING, &text)]).await;
    written.await.unwrap();
    assert_eq!((code, count(&service, "Others").await), (0, 1), "{errors}");
    assert_eq!(names(directory), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_wrote_nothing_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, _service, text) = server().await;
    let words = ["export", "--table", "Missing", "some.jsonl"];
    let (code, _, errors) = tables(directory, &words, &[(STRING, &text)]).await;
    assert!(code == 1 && errors.contains("TableNotFound"), "{errors}");
    let nowhere = "AccountName=a;AccountKey=a2V5;TableEndpoint=http://127.0.0.1:1/a";
    let (code, ..) = tables(directory, &["export", "some.jsonl"], &[(STRING, nowhere)]).await;
    assert_eq!(code, 1);
    assert!(names(directory).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_is_not_continued() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    let line = |row: &str| format!(r#"{{"PartitionKey":"a","RowKey":"{row}"}}"#);
    let path = directory.join("some.jsonl");
    fs::write(&path, [line("1"), "{}".to_owned()].join("\n")).unwrap();
    let words = ["import", "some.jsonl", "--table", "People"];
    let (code, _, errors) = tables(directory, &words, &[(STRING, &text)]).await;
    assert_eq!(code, 1);
    assert!(errors.contains("line 2: the line is neither"), "{errors}");
    assert!(
        errors.contains(r#"{"PartitionKey":"Sales","RowKey":"1","Age":36}"#),
        "{errors}"
    );

    fs::write(&path, [line("1"), line("2")].join("\n")).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_710_511_380);
    file.set_modified(at).unwrap();
    let (code, _, errors) = tables(directory, &words, &[(STRING, &text)]).await;
    let expected = "tables: some.jsonl is not the file of the interrupted import: it has other contents since 14:03 UTC on 2024-03-15; remove some.jsonl.import to start from the beginning\n";
    assert_eq!((code, errors.as_str()), (1, expected));
    // Nor with options by which the file has other entities.
    let others = ["import", "some.jsonl", "--table", "Others"];
    let (code, _, errors) = tables(directory, &others, &[(STRING, &text)]).await;
    assert_eq!(code, 1);
    assert!(errors.contains("belongs to another command"), "{errors}");
    assert!(errors.contains("with --table People"), "{errors}");

    fs::remove_file(directory.join("some.jsonl.import")).unwrap();
    let (code, json, errors) = tables(directory, &words, &[(STRING, &text)]).await;
    assert_eq!((code, &json["entities"]), (0, &2.into()), "{errors}");
    assert_eq!(count(&service, "People").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_of_an_array_is_named_by_its_number() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    fill(&service, "People", 1).await;
    let entity = |row: &str| format!(r#"{{"PartitionKey":"p","RowKey":"{row}"}}"#);
    let array = format!("[{},\n{}]", entity("1"), entity("00000"));
    fs::write(directory.join("some.json"), array).unwrap();
    let words = [
        "import",
        "some.json",
        "--mode",
        "insert",
        "--table",
        "People",
    ];
    let (code, json, errors) = tables(directory, &words, &[(STRING, &text)]).await;
    assert_eq!(
        (code, &json["entities"], &json["failed"]),
        (3, &2.into(), &1.into())
    );
    assert_eq!(json["failures"][0]["place"], "some.json: entity 2");
    assert!(errors.starts_with("some.json: entity 2: "), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_is_a_manifest_or_its_folder() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    let prefix = "acct_People_20140903T051850.8128447Z";
    let dump = directory.join("dump");
    fs::create_dir(&dump).unwrap();
    fs::write(dump.join(format!("{prefix}.manifest")), "{}").unwrap();
    let entity = |row: usize| {
        format!(
            r#"{{"PartitionKey":"p","RowKey":"{row}","Timestamp":"2014-09-03T05:18:50.8128447Z","Low@odata.type":"Edm.Double","Low":"-Infinity"}}"#
        )
    };
    let parts = [
        format!("[{},{}]", entity(0), entity(1)),
        format!("[{}]", entity(2)),
    ];
    for (part, content) in parts.iter().enumerate() {
        let name = format!("{prefix}_0_{part}_C3040FE8.json");
        fs::write(dump.join(name), content).unwrap();
    }
    let manifest = format!("dump/{prefix}.manifest");
    let one = format!("dump/{prefix}_0_1_C3040FE8.json");
    for (words, table, entities) in [
        (&["dump"][..], "People", 3),
        (&[&*manifest, "--table", "Others"], "Others", 3),
        (&[&*one, "--table", "Single"], "Single", 1),
    ] {
        let words = [&["import"], words].concat();
        let (code, json, errors) = tables(directory, &words, &[(STRING, &text)]).await;
        assert_eq!((code, &json["entities"]), (0, &entities.into()), "{errors}");
        assert_eq!(count(&service, table).await, entities);
    }
    fs::remove_file(dump.join(format!("{prefix}_0_0_C3040FE8.json"))).unwrap();
    let (code, _, errors) = tables(directory, &["import", "dump"], &[(STRING, &text)]).await;
    let problem = format!("{prefix}_0_0_….json is missing");
    assert!(code == 1 && errors.contains(&problem), "{errors}");
    assert_eq!(names(directory), ["dump"]);
}

/// Interrupted at its second table, an import of the file of Azurite begins after the entities that
/// are done.
#[tokio::test(flavor = "multi_thread")]
async fn the_folder_of_azurite_is_imported_and_continued() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    let folder = directory.join("azurite");
    fs::create_dir(&folder).unwrap();
    let row = |row: usize| {
        format!(r#"{{"properties":{{"PartitionKey":"p","RowKey":"{row:04}"}},"$loki":{row}}}"#)
    };
    let rows: Vec<_> = (0..1_500).map(row).collect();
    let file = |last: &str| {
        let tables = ["People", "Empty", "Others"]
            .map(|table| format!(r#"{{"account":"acct","table":"{table}"}}"#))
            .join(",");
        format!(
            r#"{{"filename":"x","collections":[{{"name":"$TABLES_COLLECTION$","data":[{tables}]}},{{"name":"acct$People","data":[{}]}},{{"name":"acct$Others","data":[{last}]}}]}}"#,
            rows.join(",")
        )
    };
    let path = folder.join("__azurite_db_table__.json");
    fs::write(&path, file(r#"{"properties":{"PartitionKey":"p"}}"#)).unwrap();
    for _ in 0..2 {
        let (code, _, errors) = tables(directory, &["import", "azurite"], &[(STRING, &text)]).await;
        assert!(
            code == 1 && errors.contains("azurite: entity 1501: "),
            "{errors}"
        );
        assert_eq!(count(&service, "People").await, 1_500);
        assert_eq!(names(directory), ["azurite", "azurite.import"]);
    }
    fs::remove_file(directory.join("azurite.import")).unwrap();
    fs::write(&path, file(&row(0))).unwrap();
    let (code, json, errors) = tables(directory, &["import", "azurite"], &[(STRING, &text)]).await;
    assert_eq!(
        (code, &json["tables"], &json["entities"]),
        (0, &3.into(), &1_501.into()),
        "{errors}"
    );
    assert_eq!(count(&service, "Empty").await, 0);
    assert_eq!(count(&service, "Others").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_csv_are_put_and_the_guesses_are_said() {
    let place = tempfile::tempdir().unwrap();
    let (_server, service, text) = server().await;
    fill(&service, "People", 2).await;
    let query = ["query", "People", "--partition", "p", "--output", "csv"];
    let (_, csv, _) = piped(place.path(), &query, &text, "").await;
    let put = ["put", "Copies", "--upsert", "--create"];
    let (code, _, errors) = piped(place.path(), &put, &text, csv).await;
    assert_eq!((code, count(&service, "Copies").await), (0, 2), "{errors}");
    assert!(!errors.contains("without a type"), "{errors}");
    let plain = "PartitionKey,RowKey,Age\np,1,36\n";
    let (code, _, errors) = piped(place.path(), &put, &text, plain).await;
    assert_eq!(code, 0);
    assert!(
        errors.starts_with("1 value without a type got one by their text\n"),
        "{errors}"
    );
}
