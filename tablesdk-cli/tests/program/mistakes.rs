//! The output after a mistake of a person: `mistakes.txt` has the commands, their messages and
//! their exit codes.
//!
//! `TABLESDK_WRITE_MISTAKES=1` writes the file anew.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use tablesdk::DynamicEntity;

use crate::{STRING, fill, server};

/// The commands, as a shell would take them.
const MISTAKES: &[&str] = &[
    "tables qeury Employees",
    "tables query",
    "tables query Employees --partiton Sales",
    "tables query Employees --output xml --partition Sales",
    "tables query Employees",
    "tables query Employees --partition Sales --filter 'Age => 36'",
    "tables query Employees --partition Sales --rows 1-2",
    "tables query Employees --partition Sales --row 1 --rows 1..2",
    "tables query Employees --partition Sales --take 0",
    "tables query Employees --partition Sales --continue x",
    "tables query Employes --partition Sales",
    "tables query my-table --partition Sales",
    "tables get Employees Sales",
    "tables get Employees Sales 1",
    "tables schema Employees --sample many",
    "tables put Employees </dev/null",
    "echo '{\"PartitionKey\":\"Sales\"}' | tables put Employees --insert",
    "echo '{\"PartitionKey\":\"Sales\",\"RowKey\":\"1\",\"Age\":}' | tables put Employees --insert",
    "echo '{\"PartitionKey\":\"Sales\",\"RowKey\":\"1\",\"Age\":3000000000}' | tables put Employees --insert",
    "echo '{\"PartitionKey\":\"Sales\",\"RowKey\":\"a/b\"}' | tables put Employees --insert",
    "echo '{\"PartitionKey\":\"Sales\",\"RowKey\":\"1\",\"At\":\"x\",\"At@odata.type\":\"Edm.GeographyPoint\"}' | tables put Employees --insert",
    "echo 'Sales,1' | tables put Employees --insert",
    "tables rm Employees",
    "tables rm Employees Sales",
    "tables rm Employees Sales 1",
    "tables rm Employees Sales 00001 --if-match x",
    "tables rm Employees --partition Sales </dev/null",
    "tables export Cargo.toml",
    "tables export out.jsonl --table Employes",
    "tables import missing.jsonl",
    "tables import Cargo.toml",
    "tables copy",
    "tables outbox Employees",
    "tables outbox retry Employees",
    "AZURE_STORAGE_CONNECTION_STRING= tables ls",
    "AZURE_STORAGE_CONNECTION_STRING=UseDevelopment tables ls",
    "AZURE_STORAGE_CONNECTION_STRING='AccountName=a;AccountKey=secret!' tables ls",
    "AZURE_STORAGE_CONNECTION_STRING= tables ls --account-name contoso",
    "tables ls --connection-string env:NONE",
    "tables ls --sas-url 'https://contoso.table.core.windows.net/'",
];

#[tokio::test(flavor = "multi_thread")]
async fn each_mistake_gets_its_message() {
    let (_server, service, account) = server().await;
    fill(&service, "Employees", 1).await;
    let lonely = DynamicEntity::new("Sales", "00001").with("Age", 36);
    service.table("Employees").insert(&lonely).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Cargo.toml"), "[package]\n").unwrap();
    let endpoint = service.endpoint().to_string();
    let endpoint = endpoint.trim_start_matches("http://");
    let mut found = String::new();
    for mistake in MISTAKES {
        let message = message(mistake, &account, folder.path()).await;
        let message = without_request_id(&message.replace(endpoint, "ENDPOINT"));
        writeln!(found, "$ {mistake}\n{message}").unwrap();
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/mistakes.txt");
    if env::var_os("TABLESDK_WRITE_MISTAKES").is_some() {
        fs::write(&file, &found).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap();
    for (found, expected) in found.split("\n$ ").zip(expected.split("\n$ ")) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

/// Standard error and the exit code. Nothing is on standard output.
async fn message(mistake: &str, account: &str, folder: &Path) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_tables")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let mut command = Command::new("sh");
    command.env_clear().env(STRING, account).env("PATH", path);
    command.current_dir(folder).args(["-c", mistake]);
    command.stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = output.await.unwrap();
    assert!(output.stdout.is_empty(), "{mistake}");
    let errors = String::from_utf8(output.stderr).unwrap();
    format!("{errors}[exit {}]\n", output.status.code().unwrap())
}

/// Each request has another one.
fn without_request_id(message: &str) -> String {
    let mut parts = message.split(" (request id ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, rest) = part.split_once(')').unwrap();
        text.push_str(" (request id …)");
        text.push_str(rest);
    }
    text
}
