//! The file in which Azurite stores its tables, written by Azurite.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use tablesdk::{DynamicEntity, TableServiceClient};
use tablesdk_cli::dump::Dump;
use tablesdk_cli::import::{WriteOptions, import};
use tablesdk_cli::records::{ReadOptions, Records};

use crate::{content, export, fill, in_process};

/// Run by `tests/interop/run.sh --all`, which names the program.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Azurite: tests/interop/run.sh --all"]
async fn what_azurite_has_stored_is_imported() {
    let program = std::env::var("TABLESDK_AZURITE").unwrap();
    let folder = tempfile::tempdir().unwrap();
    // Azurite does not say which port it took.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut azurite = Command::new(program)
        .env("AZURITE_ACCOUNTS", "acct:a2V5")
        .args(["--skipApiVersionCheck", "--disableTelemetry", "--silent"])
        .args(["--tableHost", "127.0.0.1", "--tablePort", &port.to_string()])
        .arg("--location")
        .arg(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(azurite.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("successfully")));
    let endpoint = format!("http://127.0.0.1:{port}/acct");
    let account = format!("AccountName=acct;AccountKey=a2V5;TableEndpoint={endpoint}");
    let stored = TableServiceClient::from_connection_string(&account).unwrap();
    fill(&stored, is_kept_by_azurite).await;
    let expected = content(&export(&stored, &[]).await);
    end(&mut azurite);
    drop(lines);

    let dump = Dump::find(folder.path()).unwrap();
    let (_server, to) = in_process();
    let records = Records::new(BufReader::new(dump.reader()), &ReadOptions::default());
    let report = import(&to, records, &WriteOptions::default(), 0, |_, _| {}).await;
    assert!(
        report.error.is_none() && report.failures.is_empty(),
        "{report:?}"
    );
    assert_eq!(content(&export(&to, &[]).await), expected);
}

/// Azurite 3.37.0 loses the sign of -0.0.
fn is_kept_by_azurite(entity: &DynamicEntity) -> bool {
    entity.properties().get("DoubleMinusZero").is_none()
}

/// Azurite writes its file when it ends.
fn end(azurite: &mut Child) {
    let id = azurite.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.unwrap().success());
    azurite.wait().unwrap();
}
