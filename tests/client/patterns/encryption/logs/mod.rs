//! Neither logs, nor `Debug`, nor errors show an encrypted value or a key, whatever succeeds and
//! fails meanwhile.

mod operations;
mod shown;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::client_with;
use harness::log::{Log, Records};
use harness::proxy::Proxy;
use tablesdk::encryption::{Keyring, LocalKey};
use tablesdk::transport::{ReqwestTransport, Transport};
use tablesdk::{DynamicEntity, ErrorKind, Guid, RetryPolicy, TableServiceClient};
use tablesdk_server::TableServer;

use self::operations::{malformed, queries, tampering, writes};
use self::shown::{Shown, run};
use super::every::{BORN, CITY, ENCRYPTED, Every, GUID, NAME, NOTE, NUMBER, WEIGHT, every};
use super::keys::wrapped_keys;
use super::secrets::Secrets;
use super::vault::Vault;
use super::{EMAIL, binary};

fn secret(first: usize) -> [u8; 32] {
    std::array::from_fn(|index| u8::try_from((first + index * 89) % 251).unwrap())
}

/// Clients without the right keys, and keys that cannot be loaded.
async fn keys(
    service: &TableServiceClient,
    server: &TableServer,
    vault: &Vault,
    shown: &mut Shown,
) {
    let (one, other) = (
        LocalKey::new("2024-01", secret(1)),
        LocalKey::new("2024-02", secret(2)),
    );
    let wrong = LocalKey::new("2024-01", secret(2));
    shown.debug(&[&one, &other, &wrong]);
    let raw = service.table("Tests");
    for keyring in [
        Keyring::new(one.clone()),
        Keyring::new(other.clone()).also(one),
        Keyring::new(wrong.clone()),
        Keyring::new(other.clone()),
    ] {
        shown.debug(&keyring);
        assert!(format!("{keyring:?}").contains("2024-0"), "{keyring:?}");
        let table = raw.with_encryption(keyring);
        shown.debug(&table);
        run!(shown, table.get(Every::key("1")));
        run!(shown, table.query::<Every>().filter(|c| c.string.eq(NAME)) => collect);
    }
    run!(shown, raw.insert(&every("7")));
    run!(shown, raw.batch("Ward").upsert_replace(&every("7")));
    run!(shown, raw.query::<Every>().filter(|c| c.string.eq(NAME)) => collect);

    let keys = service.table("TablesdkKeys");
    for provider in [other, wrong] {
        assert!(shown.result(Keyring::open(&keys, provider).await).is_none());
    }
    let keyring = Keyring::open(&keys, vault.clone()).await.unwrap();
    let table = raw.with_encryption(keyring.clone());
    run!(shown, table.upsert_replace(&every("6")));
    let key = &wrapped_keys(&keys).await[0];
    for malformed in [
        key.clone()
            .with("Wrapped", binary(key, "Wrapped")[1..].to_vec()),
        key.clone().with("Wrapped", "no bytes"),
        DynamicEntity::new("keys", "no GUID"),
    ] {
        keys.upsert_replace(&malformed).await.unwrap();
        let opened = Keyring::open(&keys, vault.clone()).await;
        assert!(shown.result(opened).is_none());
        shown.result(keyring.rewrap().await);
    }
    keys.delete(("keys", "no GUID")).await.unwrap();
    keys.upsert_replace(key).await.unwrap();
    server.clock().advance(Duration::from_secs(3600));
    vault.state().refuses = true;
    run!(shown, table.get(Every::key("6")));
    run!(shown, table.insert(&every("5")));
    run!(shown, table.query::<Every>().filter(|c| c.string.eq(NAME)) => collect);
    shown.result(keyring.rotate().await);
    vault.state().refuses = false;
    keyring.rotate().await.unwrap();
    shown.debug(&keyring);
}

/// Runs everything, and returns the secrets and what was shown.
async fn everything<T: Transport + Clone + 'static>(
    server: &TableServer,
    transport: T,
) -> (Secrets, Shown) {
    let proxy = Proxy::new(transport);
    let reports = Arc::new(Mutex::new(Vec::new()));
    let (hook, for_client) = (Arc::clone(&reports), proxy.clone());
    let service = client_with(server, |builder| {
        let retry = RetryPolicy::exponential().attempts(2).delay(Duration::ZERO);
        let builder = builder.transport(for_client).retry(retry);
        builder.on_operation(move |report| hook.lock().unwrap().push(report.clone()))
    });
    let vault = Vault::new([LocalKey::new("vault", secret(3))]);
    let raw = service.table("Tests");
    raw.create_table().await.unwrap();
    service.table("TablesdkKeys").create_table().await.unwrap();
    let keyring = Keyring::open(&service.table("TablesdkKeys"), vault.clone())
        .await
        .unwrap();
    let table = raw.with_encryption(keyring.also(LocalKey::new("2024-01", secret(1))));
    let mut shown = Shown::default();
    writes(&table, server, &mut shown).await;
    queries(&table, &mut shown).await;
    // What the client sends later contains values in plain text: it writes them as another program
    // does.
    let sent = proxy.sent().into_iter();
    shown
        .texts
        .extend(sent.map(|sent| String::from_utf8_lossy(&sent.body).into_owned()));
    tampering(&table, &raw, &mut shown).await;
    malformed(&table, &proxy, &mut shown).await;
    keys(&service, server, &vault, &mut shown).await;
    shown.debug(&*reports.lock().unwrap());
    shown.debug(&server.journal().requests());
    shown
        .texts
        .extend(proxy.sent().into_iter().map(|sent| sent.url));

    let mut secrets = Secrets::default();
    for text in [NAME, CITY, GUID, EMAIL, "1815-12-10", "13:14:15.7654321"] {
        secrets.text(text);
    }
    for number in [NUMBER.to_string(), BORN.to_string(), "61.738204".to_owned()] {
        secrets.text(&number);
    }
    let guid: Guid = GUID.parse().unwrap();
    secrets.bytes("the bytes", &NOTE);
    secrets.bytes("the GUID", &guid.to_bytes());
    secrets.bytes("the number", &NUMBER.to_be_bytes());
    secrets.bytes("the weight", &WEIGHT.to_bits().to_be_bytes());
    let cells = ENCRYPTED.map(|property| ["tests", "Ward", "1", property]);
    for (name, key) in [
        ("2024-01", secret(1)),
        ("2024-02", secret(2)),
        ("vault", secret(3)),
    ] {
        secrets.key(name, &key, &cells);
    }
    let seen = std::mem::take(&mut vault.state().wrapped);
    assert_eq!(seen.len(), 3, "two keys, and one that could not be loaded");
    for key in &seen {
        secrets.key("a key in the table", key, &cells);
    }
    (secrets, shown)
}

fn assert_hidden(secrets: &Secrets, shown: &Shown, logs: &[String]) {
    for kind in [
        ErrorKind::Configuration,
        ErrorKind::Credential,
        ErrorKind::Data,
        ErrorKind::Input,
        ErrorKind::OutcomeUnknown,
        ErrorKind::Response,
        ErrorKind::Service,
    ] {
        assert!(
            shown.errors.contains(&kind),
            "{kind:?} is not among the errors"
        );
    }
    assert!(shown.texts.len() > 200, "{}", shown.texts.len());
    for log in logs {
        assert_eq!(secrets.found_in(log), None, "was logged");
    }
    let texts: Vec<_> = shown.texts.iter().map(String::as_str).collect();
    if let Some(found) = secrets.found_in(&texts.join("\n")) {
        let text = texts.iter().find(|text| secrets.found_in(text).is_some());
        panic!("{found} is in {text:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn neither_client_nor_server_shows_a_value_or_a_key() {
    let (log, _guard) = Log::start();
    let server = TableServer::in_process();
    let (secrets, shown) = everything(&server, server.transport()).await;
    let log = log.text();
    for target in [" tablesdk: ", " tablesdk_server::request: "] {
        assert!(log.contains(target), "{target}");
    }
    assert_hidden(&secrets, &shown, &[log]);
}

/// The libraries below the client see requests and responses.
#[tokio::test]
async fn the_libraries_for_http_show_no_value_and_no_key() {
    Records::start();
    let (log, _guard) = Log::start();
    let server = TableServer::start().await.unwrap();
    let transport = ReqwestTransport::new().unwrap();
    let (secrets, shown) = everything(&server, transport).await;
    let (log, records) = (log.text(), Records::take());
    assert!(records.contains("reqwest"), "{records}");
    assert_hidden(&secrets, &shown, &[log, records]);
}
