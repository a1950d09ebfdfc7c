//! `sas`: what a printed signature permits at the bundled server. `completions`, and unknown
//! commands.

use std::path::Path;
use std::time::Duration;

use serde_json::Value as Json;
use tablesdk::sas::{Permissions, StoredAccessPolicy};
use tablesdk::{DynamicEntity, TableClient, TableServiceClient};

use super::run::run_with;
use super::{STRING, server};

/// The table `People` with rows 1 to 5 in the partitions A, B and C.
async fn people(service: &TableServiceClient) -> TableClient {
    let table = service.table("People");
    table.create_table().await.unwrap();
    for partition in ["A", "B", "C"] {
        for row in 1..=5 {
            let person = DynamicEntity::new(partition, row.to_string());
            table.insert(&person).await.unwrap();
        }
    }
    table
}

/// Prints a signature with its URL.
async fn signed(words: &[&str], account: &str) -> String {
    let words = [&["sas", "--url"], words].concat();
    let (code, out, errors) = run_with(Path::new("."), &words, &[(STRING, account)]).await;
    assert_eq!(code, 0, "{words:?}: {errors}");
    out.trim_end().to_owned()
}

/// The keys that a client of the signature finds, as `A1 A2`.
async fn found(url: &str) -> String {
    let guest = TableClient::from_sas_url(url).unwrap();
    let found = guest.query::<DynamicEntity>().collect().await.unwrap();
    let keys = found
        .iter()
        .map(|it| [it.partition_key(), it.row_key()].concat());
    keys.collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_permits_what_its_letters_say_and_nothing_else() {
    let (_server, service, account) = server().await;
    people(&service).await;
    let person = DynamicEntity::new("A", "9");
    for letters in ["r", "a", "u", "d", "raud"] {
        let words = ["People", "--permissions", letters, "--for", "1h"];
        let guest = TableClient::from_sas_url(&signed(&words, &account).await).unwrap();
        let read = guest.get::<DynamicEntity>(("A", "1")).await.map(drop);
        let added = guest.insert(&person).await.map(drop);
        service
            .table("People")
            .upsert_replace(&person)
            .await
            .unwrap();
        let updated = guest
            .replace_if(&person, tablesdk::ETag::ANY)
            .await
            .map(drop);
        let deleted = guest.delete(("A", "9")).await.map(drop);
        service.table("People").delete(("A", "9")).await.unwrap();
        for (letter, result) in [('r', read), ('a', added), ('u', updated), ('d', deleted)] {
            match result {
                Ok(()) => assert!(letters.contains(letter), "{letters} permits {letter}"),
                Err(error) => assert!(
                    error.is_denied() && !letters.contains(letter),
                    "{letters} refuses {letter}: {error}"
                ),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_covers_its_keys() {
    let (_server, service, account) = server().await;
    people(&service).await;
    for (keys, expected) in [
        (&["--partition", "B"][..], "B1 B2 B3 B4 B5"),
        (
            &["--partition", "B", "--from-row", "2", "--to-row", "4"],
            "B2 B3 B4",
        ),
        (&["--partition", "A", "--to-row", "2"], "A1 A2"),
        (
            &["--from-partition", "B", "--from-row", "4"],
            "B4 B5 C1 C2 C3 C4 C5",
        ),
        (
            &["--from-partition", "B", "--to-partition", "C"],
            "B1 B2 B3 B4 B5 C1 C2 C3 C4 C5",
        ),
        (
            &["--to-partition", "B", "--to-row", "1"],
            "A1 A2 A3 A4 A5 B1",
        ),
        (
            &[
                "--from-partition",
                "A",
                "--from-row",
                "5",
                "--to-partition",
                "B",
                "--to-row",
                "1",
            ],
            "A5 B1",
        ),
    ] {
        let words = [&["People", "--permissions", "r", "--for", "1h"], keys].concat();
        assert_eq!(
            found(&signed(&words, &account).await).await,
            expected,
            "{keys:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_is_refused_outside_its_terms() {
    let (_server, service, account) = server().await;
    people(&service).await;
    let key = ("A", "1");
    for (terms, is_valid) in [
        (&["--for", "1h", "--ip", "127.0.0.1"][..], true),
        (&["--for", "1h", "--ip", "127.0.0.0-127.0.0.9"], true),
        (&["--for", "1h", "--ip", "192.0.2.1"], false),
        (&["--for", "1h", "--https-only"], false),
        (&["--expires", "2099-12-31"], true),
        (
            &[
                "--expires",
                "2099-12-31",
                "--starts",
                "2098-01-01T12:00:00Z",
            ],
            false,
        ),
    ] {
        let words = [&["People", "--permissions", "r"], terms].concat();
        let guest = TableClient::from_sas_url(&signed(&words, &account).await).unwrap();
        let read = guest.get::<DynamicEntity>(key).await;
        assert_eq!(read.is_ok(), is_valid, "{terms:?}: {read:?}");
        assert!(
            read.map_err(|error| error.is_denied())
                .map_or_else(|it| it, |_| true)
        );
    }
    let words = [
        "sas",
        "People",
        "--permissions",
        "r",
        "--for",
        "1h",
        "--https-only",
    ];
    let (_, _, errors) = run_with(Path::new("."), &words, &[(STRING, &account)]).await;
    assert!(
        errors.starts_with("the signature is for https only, and http://"),
        "{errors}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_says_what_the_signature_leaves_open() {
    let (_server, service, account) = server().await;
    let table = people(&service).await;
    let hour = std::time::SystemTime::now() + Duration::from_secs(3600);
    let whole = StoredAccessPolicy::new("readers")
        .allow(Permissions::READ)
        .expires_at(hour);
    let partial = StoredAccessPolicy::new("all").allow(Permissions::all());
    table.set_access_policy([whole, partial]).await.unwrap();
    for words in [
        &["People", "--policy", "readers"][..],
        &["People", "--policy", "all", "--for", "1h"],
    ] {
        assert!(
            found(&signed(words, &account).await)
                .await
                .starts_with("A1 A2"),
            "{words:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_of_an_account_and_its_forms() {
    let (server, service, account) = server().await;
    people(&service).await;
    let words = [
        "--permissions",
        "rl",
        "--resource-types",
        "sco",
        "--for",
        "1h",
    ];
    let guest = TableServiceClient::from_sas_url(&signed(&words, &account).await).unwrap();
    assert_eq!(guest.tables().collect().await.unwrap(), ["People"]);
    assert!(
        guest
            .table("Other")
            .create_table()
            .await
            .unwrap_err()
            .is_denied()
    );

    // The token, as another call of the program takes it.
    let words = [&["sas"], &words[..]].concat();
    let (code, token, errors) = run_with(Path::new("."), &words, &[(STRING, &account)]).await;
    assert_eq!((code, &*errors), (0, ""));
    let words_of_token = ["ls", "--table-endpoint", server.endpoint()];
    let of_token = [
        ("AZURE_STORAGE_ACCOUNT", "devstoreaccount1"),
        ("AZURE_STORAGE_SAS_TOKEN", token.trim_end()),
    ];
    let (code, out, errors) = run_with(Path::new("."), &words_of_token, &of_token).await;
    assert_eq!((code, &*out), (0, "{\"table\":\"People\"}\n"), "{errors}");

    let words = [&words[..], &["--output", "json"]].concat();
    let (_, out, _) = run_with(Path::new("."), &words, &[(STRING, &account)]).await;
    let json: Json = serde_json::from_str(&out).unwrap();
    let (token, url) = (
        json["token"].as_str().unwrap(),
        json["url"].as_str().unwrap(),
    );
    assert!(url.ends_with(&format!("?{token}")), "{json}");
}

#[tokio::test]
async fn a_signature_that_cannot_be_is_refused_with_2() {
    let key = "AccountName=a;AccountKey=c2VjcmV0";
    let read = ["--permissions", "r", "--for", "1h"];
    let url = "https://a.table.core.windows.net/?sv=2019-02-02&sig=c2VjcmV0";
    for (words, problem) in [
        (&["People", "--for", "1h"][..], "--permissions"),
        (&["People", "--permissions", "r"], "--for"),
        (
            &["People", "--permissions", "rx", "--for", "1h"],
            "--permissions has letters of raud",
        ),
        (
            &["People", "--permissions", "r", "--for", "1w"],
            "such as 7d",
        ),
        (
            &["People", "--permissions", "r", "--expires", "2001-01-01"],
            "has expired already",
        ),
        (&["People", "--policy", ""], "1 to 64 characters"),
        (&["--permissions", "r", "--for", "1h"], "--resource-types"),
        (&["--policy", "readers", "--resource-types", "o"], "name it"),
        (&["p", "--permissions", "r", "--for", "1h"], "3 to 63"),
        (
            &[&["People", "--ip", "office"], &read[..]].concat(),
            "not an IP address",
        ),
        (
            &[&["People", "--ip", "10.0.0.9-10.0.0.1"], &read[..]].concat(),
            "end before they start",
        ),
        (
            &[&["People", "--to-partition", "B"], &read[..]].concat(),
            "starts with one",
        ),
        (
            &[&["People", "--from-row", "1"], &read[..]].concat(),
            "--from-row needs",
        ),
        (
            &[&["People", "--to-row", "1"], &read[..]].concat(),
            "--to-row needs",
        ),
        (
            &[&["People", "--sas-url", url], &read[..]].concat(),
            "is signed with a key of the account",
        ),
    ] {
        let words = [&["sas"], words].concat();
        let (code, out, errors) = run_with(Path::new("."), &words, &[(STRING, key)]).await;
        assert_eq!((code, &*out), (2, ""), "{words:?}: {errors}");
        assert!(errors.contains(problem), "{words:?}: {errors}");
        assert!(!errors.contains("c2VjcmV0"), "{errors}");
    }
}

#[tokio::test]
async fn completions_know_each_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let words = ["completions", shell];
        let (code, out, errors) = run_with(Path::new("."), &words, &[]).await;
        assert_eq!((code, &*errors), (0, ""), "{shell}");
        for part in ["query", "sas", "resource-types"] {
            assert!(out.contains(part), "{shell} lacks {part}");
        }
    }
    for words in [
        &["completions", "tcsh"][..],
        &["completions", "bash", "--output", "json"],
    ] {
        let (code, out, errors) = run_with(Path::new("."), words, &[]).await;
        assert_eq!((code, &*out), (2, ""), "{errors}");
    }
}

#[tokio::test]
async fn an_unknown_command_names_the_nearest_and_lists_all() {
    for (words, nearest, list) in [
        (
            &["qeury", "People"][..],
            "'query'",
            "commands are ls, query, get, ",
        ),
        (&["outbox", "lits"], "'list'", "commands are list, "),
        (&["xyzzy"], "", "commands are ls, "),
    ] {
        let (code, out, errors) = run_with(Path::new("."), words, &[]).await;
        assert_eq!((code, &*out), (2, ""), "{errors}");
        assert!(
            errors.contains(nearest) && errors.contains(list),
            "{errors}"
        );
    }
}
