//! Files beside that of a command: those of other commands stay as they are, and the progress of
//! this command blocks no remedy.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::{STRING, count, fill, names, server, tables};

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_others_is_neither_followed_nor_written() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    fill(&service, "People", 3).await;
    let part = directory.join("v.csv.part");
    let other = directory.join("other");
    let account = [(STRING, text.as_str())];
    let export = ["export", "v.csv", "--table", "People", "--format", "csv"];
    let in_the_way = "v.csv.part exists, and v.csv.export does not: if no other export is writing it, remove it, or choose another name than v.csv";
    fs::write(&other, "kept").unwrap();
    for is_link in [false, true] {
        if is_link {
            symlink("other", &part).unwrap();
        } else {
            fs::write(&part, "kept").unwrap();
        }
        let (code, _, errors) = tables(directory, &export, &account).await;
        assert!(code == 1 && errors.contains(in_the_way), "{errors}");
        assert_eq!(fs::read_to_string(&part).unwrap(), "kept");
        fs::remove_file(&part).unwrap();
    }
    assert_eq!(names(directory), ["other"]);

    // A name that a draft could have had.
    let pipe = directory.join("v.csv.new");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    symlink("other", directory.join("v.csv.export.new")).unwrap();
    let (code, _, errors) = tables(directory, &export, &account).await;
    assert_eq!(code, 0, "{errors}");
    assert_eq!(fs::read_to_string(&other).unwrap(), "kept");
    let permissions = fs::metadata(directory.join("v.csv")).unwrap().permissions();
    assert_eq!(permissions.mode() & 0o777, 0o600);
    assert_eq!(
        names(directory),
        ["other", "v.csv", "v.csv.export.new", "v.csv.new"]
    );
}

/// An export of a second table that is missing stops after the first one.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_export_continues_its_own_part_alone() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    fill(&service, "People", 3).await;
    let account = [(STRING, text.as_str())];
    let export = ["export", "v.jsonl", "--table", "People", "--table", "Zoo"];
    let (code, _, errors) = tables(directory, &export, &account).await;
    assert!(code == 1 && errors.contains("TableNotFound"), "{errors}");
    assert_eq!(names(directory), ["v.jsonl.export", "v.jsonl.part"]);
    fill(&service, "Zoo", 2).await;
    let part = directory.join("v.jsonl.part");

    // Another export writes it.
    let writer = fs::File::open(&part).unwrap();
    rustix::fs::flock(&writer, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let (code, _, errors) = tables(directory, &export, &account).await;
    let problem = "v.jsonl.part is being written by another export";
    assert!(code == 1 && errors.contains(problem), "{errors}");
    drop(writer);

    // A link to a file with the same content is no part.
    fs::rename(&part, directory.join("moved")).unwrap();
    symlink("moved", &part).unwrap();
    let before = fs::read(&part).unwrap();
    let (code, _, errors) = tables(directory, &export, &account).await;
    let problem = "v.jsonl.part cannot be continued";
    assert!(code == 1 && errors.contains(problem), "{errors}");
    assert_eq!(fs::read(directory.join("moved")).unwrap(), before);
    fs::rename(directory.join("moved"), &part).unwrap();

    fs::set_permissions(&part, fs::Permissions::from_mode(0o666)).unwrap();
    let (code, json, errors) = tables(directory, &export, &account).await;
    assert_eq!((code, &json["entities"]), (0, &5.into()), "{errors}");
    let mode = fs::metadata(directory.join("v.jsonl"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    assert_eq!(names(directory), ["v.jsonl"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_exports_to_one_file_do_not_mix() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    fill(&service, "People", 3_000).await;
    let account = [(STRING, text.as_str())];
    let export = ["export", "all.jsonl"];
    let runs = (0..4).map(|_| tables(directory, &export, &account));
    let runs = futures::future::join_all(runs).await;
    let done = runs.iter().filter(|(code, ..)| *code == 0).count();
    assert_eq!(done, 1, "{runs:?}");
    for (code, _, errors) in &runs {
        let is_clear = errors.contains("all.jsonl.part exists")
            || errors.contains("is being written by another export")
            || errors.contains("all.jsonl.part is shorter than it was")
            || errors.contains("all.jsonl exists");
        assert!(*code == 0 || is_clear, "{errors}");
    }
    let file = fs::read_to_string(directory.join("all.jsonl")).unwrap();
    assert_eq!(file.lines().count(), 3_003);
    assert_eq!(names(directory), ["all.jsonl"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_did_nothing_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    let account = [(STRING, text.as_str())];
    let csv = "PartitionKey,RowKey,Id,Id@type\np,1,x,Edm.Guid\n";
    fs::write(directory.join("a.csv"), csv).unwrap();
    let words = ["import", "a.csv", "--table", "People"];
    let (code, _, errors) = tables(directory, &words, &account).await;
    assert!(code == 1 && errors.contains("--as-string"), "{errors}");
    assert_eq!(names(directory), ["a.csv"]);
    let words = [
        "import",
        "a.csv",
        "--table",
        "People",
        "--types",
        "strings",
        "--as-string",
    ];
    let (code, _, errors) = tables(directory, &words, &account).await;
    assert_eq!((code, count(&service, "People").await), (0, 1), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_continues_as_strings_and_after_a_touch() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    let account = [(STRING, text.as_str())];
    let path = directory.join("a.csv");
    let csv = "PartitionKey,RowKey,Id,Id@type\np,1,,\np,2,x,Edm.Guid\n";
    fs::write(&path, csv).unwrap();
    let words = ["import", "a.csv", "--table", "People"];
    let (code, ..) = tables(directory, &words, &account).await;
    assert_eq!((code, count(&service, "People").await), (1, 1));
    assert_eq!(names(directory), ["a.csv", "a.csv.import"]);
    let touched = fs::File::options().write(true).open(&path).unwrap();
    let later = SystemTime::now() + Duration::from_secs(60);
    touched.set_modified(later).unwrap();
    // The first entity is not written again.
    service.table("People").delete_table().await.unwrap();
    let words = ["import", "a.csv", "--table", "People", "--as-string"];
    let (code, json, errors) = tables(directory, &words, &account).await;
    assert_eq!((code, &json["entities"]), (0, &2.into()), "{errors}");
    assert_eq!(count(&service, "People").await, 1);
    assert_eq!(names(directory), ["a.csv"]);
}
