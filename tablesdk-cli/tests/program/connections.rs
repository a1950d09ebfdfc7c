//! Accounts: where the program finds one, and what it says of one that is not valid.

use std::fs;
use std::time::Duration;

use tablesdk::sas::Permissions;
use tablesdk::{SharedKey, TableServiceClient};
use tablesdk_server::TableServer;

use super::run::run_with;
use super::{STRING, count, fill, names, server, tables};

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_in_an_option_a_variable_or_a_file() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_server, service, text) = server().await;
    fill(&service, "People", 1).await;
    let sas = service.table("People").sas().allow(Permissions::READ);
    let url = sas.expires_in(Duration::from_secs(3600)).sign().unwrap();
    let url = url.expose();
    fs::write(directory.join("account.txt"), format!("{text}\n")).unwrap();
    fs::write(directory.join("url.txt"), &*url).unwrap();
    let query = ["query", "People", "--partition", "p"];
    for (words, variables) in [
        (&["--connection-string", &*text][..], &[][..]),
        (&["--connection-string", "file:account.txt"], &[]),
        (&["--connection-string", "env:OLD"], &[("OLD", &*text)]),
        (&["--sas-url", &*url], &[]),
        (&["--sas-url", "file:url.txt"], &[(STRING, "nonsense")]),
        (&[], &[(STRING, &*text)]),
    ] {
        let (code, out, errors) = run_with(directory, &[&query, words].concat(), variables).await;
        assert_eq!(code, 0, "{words:?}: {errors}");
        assert!(out.contains(r#""RowKey":"00000""#), "{words:?}: {out}");
    }
    // The signature is for reading.
    let words = ["ls", "--sas-url", "file:url.txt"];
    let (code, out, errors) = run_with(directory, &words, &[]).await;
    assert_eq!((code, &*out), (1, ""), "{errors}");
    assert!(errors.contains("Authori"), "{errors}");
    assert!(!errors.contains("sig="), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_takes_each_account_as_one_text() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_from, from, _) = server().await;
    let (emulator, to) = emulator().await;
    fill(&from, "People", 3).await;
    let sas = from.table("People").sas().allow(Permissions::READ);
    let url = sas.expires_in(Duration::from_secs(3600)).sign().unwrap();
    fs::write(directory.join("url.txt"), &*url.expose()).unwrap();
    let words = [
        "copy",
        "--from",
        "file:url.txt",
        "--to",
        emulator.endpoint(),
    ];
    let words = [&words[..], &["--table", "People"]].concat();
    let (code, json, errors) = tables(directory, &words, &[]).await;
    assert_eq!((code, &json["entities"]), (0, &3.into()), "{errors}");
    assert_eq!(count(&to, "People").await, 3);
    assert_eq!(names(directory), ["url.txt"]);
}

/// A server with the account of each emulator.
async fn emulator() -> (TableServer, TableServiceClient) {
    let key =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    let account = SharedKey::new("devstoreaccount1", key).unwrap();
    let server = TableServer::builder()
        .account(account)
        .start()
        .await
        .unwrap();
    let service = TableServiceClient::from_connection_string(&server.connection_string()).unwrap();
    (server, service)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emulator_needs_its_endpoint_alone() {
    let place = tempfile::tempdir().unwrap();
    let (server, service) = emulator().await;
    fill(&service, "People", 1).await;
    let words = ["ls", "--table-endpoint", server.endpoint()];
    let of_another = [
        ("AZURE_STORAGE_ACCOUNT", "another"),
        ("AZURE_STORAGE_KEY", "a2V5"),
    ];
    for variables in [&[][..], &of_another] {
        let (code, out, errors) = run_with(place.path(), &words, variables).await;
        assert_eq!((code, &*out), (0, "{\"table\":\"People\"}\n"), "{errors}");
    }
}

#[tokio::test]
async fn an_account_that_is_not_valid_exits_with_2_and_sends_nothing() {
    let place = tempfile::tempdir().unwrap();
    let key = "c2VjcmV0c2VjcmV0cw==";
    let with_key = format!("AccountName=a;AccountKey={key}");
    let string = with_key.as_str();
    let url = format!("https://a.table.core.windows.net/?sig={key}");
    for (words, problem) in [
        (
            &["--emulator", "--account-key", key][..],
            "--emulator cannot be used with --account-key: it says all about the account",
        ),
        (
            &["--connection-string", string, "--sas-url", &url],
            "each of them names an account",
        ),
        (
            &[
                "--account-name",
                "a",
                "--account-key",
                key,
                "--sas-token",
                "sig=x",
            ],
            "each of them is a credential",
        ),
        (
            &["--connection-string", "file:nothing.txt"],
            "--connection-string: the file nothing.txt cannot be read",
        ),
        (
            &["--connection-string", &format!("env:{string}")],
            "env: needs the name of an environment variable",
        ),
        (
            &["--connection-string", &url],
            "this is a URL, not a connection string: use --sas-url",
        ),
        (&["--sas-url", string], "--sas-url: "),
        (
            &["--sas-url", "https://a.blob.core.windows.net/?sig=x"],
            "--sas-url: the URL is that of the blob service",
        ),
        (
            &["--table-endpoint", &url],
            "--table-endpoint: the URL has a query",
        ),
        (
            &["--account-name", string],
            "letters, digits and hyphens alone",
        ),
    ] {
        let words = [&["ls"], words].concat();
        let (code, out, errors) = run_with(place.path(), &words, &[]).await;
        assert_eq!((code, &*out), (2, ""), "{words:?}: {errors}");
        assert!(errors.contains(problem), "{words:?}: {errors}");
        assert!(!errors.contains("c2VjcmV0"), "{errors}");
    }
}
