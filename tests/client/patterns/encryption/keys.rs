//! Keys in a table: made once, loaded by all, changed while clients write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{join_all, try_join};
use harness::{client, client_with};
use tablesdk::encryption::{ContentKey, KeyProvider, Keyring, ProviderFuture, WrappedKey};
use tablesdk::{
    DynamicEntity, Error, ErrorKind, Guid, RetryPolicy, Stored, TableClient, TableServiceClient,
    Value,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use super::{Patient, assert_no_secret, binary, february, january, stored, tables};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) async fn key_table(service: &TableServiceClient) -> TableClient {
    let keys = service.table("TablesdkKeys");
    keys.create_table().if_missing().await.unwrap();
    keys
}

/// A new client, with the keys of the table.
pub(super) async fn open(
    server: &TableServer,
    provider: impl KeyProvider,
) -> Result<TableClient, Error> {
    let service = client(server);
    let keyring = Keyring::open(&key_table(&service).await, provider).await?;
    Ok(service.table("Patients").with_encryption(keyring))
}

async fn rotate(server: &TableServer) -> Result<(), Error> {
    let keys = key_table(&client(server)).await;
    Keyring::open(&keys, january()).await?.rotate().await
}

pub(super) fn key_id(entity: &DynamicEntity) -> Guid {
    let envelope = binary(entity, "Name");
    Guid::from_bytes(envelope[2..18].try_into().unwrap())
}

pub(super) async fn get(table: &TableClient, id: &str) -> Patient {
    let found = table.get(Patient::key("Ward", id)).await.unwrap();
    found.expect("it exists").into_inner()
}

/// A provider that counts, and that can be withdrawn.
#[derive(Clone, Default)]
pub(super) struct Counting {
    unwrapped: Arc<AtomicUsize>,
    is_withdrawn: Arc<AtomicBool>,
}

impl Counting {
    pub(super) fn unwrapped(&self) -> usize {
        self.unwrapped.load(Ordering::Relaxed)
    }
}

impl KeyProvider for Counting {
    fn key_id(&self) -> String {
        january().key_id()
    }

    fn wrap<'a>(&'a self, key: &'a ContentKey) -> ProviderFuture<'a, Vec<u8>> {
        Box::pin(async { january().wrap(key).await })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> ProviderFuture<'a, ContentKey> {
        Box::pin(async {
            self.unwrapped.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            if self.is_withdrawn.load(Ordering::Relaxed) {
                return Err("the vault does not respond".into());
            }
            january().unwrap(wrapped).await
        })
    }
}

#[tokio::test]
async fn the_first_client_makes_a_key_and_the_others_load_it() {
    let server = TableServer::in_process();
    let (_, raw) = tables(&client(&server)).await;
    let clients = join_all((0..8).map(|_| open(&server, january()))).await;
    for (writer, id) in clients.iter().zip('a'..) {
        let writer = writer.as_ref().unwrap();
        writer
            .insert(&Patient::new(&id.to_string(), "ada@contoso.com"))
            .await
            .unwrap();
    }
    for reader in &clients {
        let reader = reader.as_ref().unwrap();
        let all = reader
            .query::<Patient>()
            .filter(|p| p.email.eq("ada@contoso.com"));
        assert_eq!(all.collect().await.unwrap().len(), 8);
    }
    let keys = client(&server).table("TablesdkKeys");
    let rows = keys.query::<DynamicEntity>().collect().await.unwrap();
    let is_current = |row: &&Stored<DynamicEntity>| row.key().row_key().as_str() == "current";
    let (current, rows): (Vec<_>, Vec<_>) = rows.iter().partition(is_current);
    let [current] = current[..] else {
        panic!("{current:?}")
    };
    let Some(Value::Guid(current)) = current.properties().get("Key") else {
        panic!("{current:?}")
    };
    assert!(
        rows.iter()
            .any(|row| row.key().row_key().as_str() == current.to_string())
    );
    for row in rows {
        // A nonce, the key and the tag.
        assert_eq!(binary(row, "Wrapped").len(), 12 + 32 + 16);
        assert_eq!(
            row.properties().get("WrappedBy"),
            Some(&Value::from("2024-01"))
        );
    }
    assert_eq!(key_id(&stored(&raw, "a").await), *current);
}

#[tokio::test]
async fn a_new_key_encrypts_once_all_clients_know_it() {
    let server = TableServer::in_process();
    let (_, raw) = tables(&client(&server)).await;
    let (one, other) = (
        open(&server, january()).await.unwrap(),
        open(&server, january()).await.unwrap(),
    );
    one.insert(&Patient::new("1", "ada@contoso.com"))
        .await
        .unwrap();
    let old = key_id(&stored(&raw, "1").await);
    rotate(&server).await.unwrap();
    // Neither a client that has the key nor one that does not has it encrypt.
    let newest = open(&server, january()).await.unwrap();
    for (table, id) in [(&one, "2"), (&newest, "3")] {
        table
            .insert(&Patient::new(id, "ada@contoso.com"))
            .await
            .unwrap();
        assert_eq!(key_id(&stored(&raw, id).await), old);
    }
    server.clock().advance(HOUR);
    newest
        .patch(Patient::key("Ward", "3"))
        .set(|p| p.name, "Ada")
        .await
        .unwrap();
    assert_eq!(key_id(&stored(&raw, "3").await), old, "an hour later");
    server.clock().advance(HOUR);
    newest
        .insert(&Patient::new("4", "ada@contoso.com"))
        .await
        .unwrap();
    let new = key_id(&stored(&raw, "4").await);
    assert_ne!(new, old);
    // A client that was idle finds it, and writes with it.
    for reader in [&one, &other, &newest] {
        let found = reader
            .query::<Patient>()
            .filter(|p| p.email.eq("ada@contoso.com"));
        assert_eq!(found.collect().await.unwrap().len(), 4);
    }
    other
        .patch(Patient::key("Ward", "1"))
        .set(|p| p.name, "Ada King")
        .await
        .unwrap();
    assert_eq!(key_id(&stored(&raw, "1").await), new);
    // Two keys are in one entity.
    assert_eq!(get(&one, "1").await.email, "ada@contoso.com");
    // A sweep leaves only the new one.
    let all = one.query::<Patient>().collect().await.unwrap();
    for patient in all {
        one.modify(Patient::key("Ward", &patient.id), |_| Ok(()))
            .await
            .unwrap();
        let swept = stored(&raw, &patient.id).await;
        for name in ["Name", "Email", "Born"] {
            assert_eq!(binary(&swept, name)[2..18], new.to_bytes());
        }
    }
}

#[tokio::test]
async fn a_key_that_another_client_made_since_is_loaded() {
    let server = TableServer::in_process();
    tables(&client(&server)).await;
    let reader = open(&server, january()).await.unwrap();
    rotate(&server).await.unwrap();
    // As if the clock of the writer were hours ahead.
    let keys = key_table(&client(&server)).await;
    let change = keys.modify::<DynamicEntity, _>(("keys", "current"), |current| {
        current.properties_mut().remove("Before");
        Ok(())
    });
    change.await.unwrap();
    let writer = open(&server, january()).await.unwrap();
    writer.insert(&Patient::ada()).await.unwrap();
    assert_eq!(get(&reader, "1").await, Patient::ada());
}

/// What a client does at the keys ends before each of its requests, or its response is lost: the next client goes on.
#[tokio::test]
async fn each_request_for_keys_may_be_the_last() {
    for is_rotation in [false, true] {
        for fault in [Fault::lost_response, Fault::reset] {
            for nth in 1.. {
                let server = TableServer::in_process();
                let (_, raw) = tables(&client(&server)).await;
                if is_rotation {
                    let before = open(&server, january()).await.unwrap();
                    before.insert(&Patient::ada()).await.unwrap();
                }
                let once = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
                let keys = key_table(&once).await;
                let injected = server.faults().on_any().nth(nth).inject(fault());
                let result = match Keyring::open(&keys, january()).await {
                    Ok(keyring) if is_rotation => keyring.rotate().await,
                    other => other.map(drop),
                };
                let hits = injected.hits();
                server.faults().clear();
                let after = open(&server, january()).await.unwrap();
                after
                    .upsert_replace(&Patient::new("2", "bob@contoso.com"))
                    .await
                    .unwrap();
                server.clock().advance(2 * HOUR);
                rotate(&server).await.unwrap();
                server.clock().advance(2 * HOUR);
                after
                    .upsert_replace(&Patient::new("3", "eve@contoso.com"))
                    .await
                    .unwrap();
                let last = open(&server, january()).await.unwrap();
                let count = if is_rotation { 3 } else { 2 };
                assert_eq!(
                    last.query::<Patient>().collect().await.unwrap().len(),
                    count
                );
                assert_ne!(
                    key_id(&stored(&raw, "2").await),
                    key_id(&stored(&raw, "3").await)
                );
                if hits == 0 {
                    result.unwrap();
                    assert!(nth > 3, "{nth}");
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn the_key_that_wraps_is_changed_while_clients_write() {
    let server = TableServer::in_process();
    tables(&client(&server)).await;
    let table = open(&server, january()).await.unwrap();
    rotate(&server).await.unwrap();
    table.insert(&Patient::ada()).await.unwrap();
    let error = open(&server, february()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Credential);
    let reason = r#"the key that "2024-01" has wrapped cannot be unwrapped with "2024-02""#;
    assert!(error.to_string().ends_with(reason), "{error}");

    let keys = key_table(&client(&server)).await;
    let both = Keyring::open(&keys, vec![february(), january()])
        .await
        .unwrap();
    let again = both.clone();
    let writes = async {
        for id in 2..40 {
            table
                .insert(&Patient::new(&id.to_string(), "ada@contoso.com"))
                .await?;
        }
        Ok(0)
    };
    let (wrapped, _) = try_join(
        async { Ok::<_, Error>(both.rewrap().await? + again.rewrap().await?) },
        writes,
    )
    .await
    .unwrap();
    assert_eq!(wrapped, 2);
    let newer = open(&server, february()).await.unwrap();
    assert_eq!(newer.query::<Patient>().collect().await.unwrap().len(), 39);
    let error = Keyring::new(january()).rewrap().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
}

#[tokio::test]
async fn keys_are_unwrapped_once_an_hour() {
    let server = TableServer::in_process();
    tables(&client(&server)).await;
    let provider = Counting::default();
    let table = open(&server, provider.clone()).await.unwrap();
    table.insert(&Patient::ada()).await.unwrap();
    let read = || join_all((0..20).map(|_| get(&table, "1")));
    read().await;
    assert_eq!(provider.unwrapped(), 1);
    server.clock().advance(HOUR);
    read().await;
    assert_eq!(provider.unwrapped(), 2);
    // What the provider no longer unwraps is no longer used.
    provider.is_withdrawn.store(true, Ordering::Relaxed);
    read().await;
    server.clock().advance(HOUR);
    for error in [
        table.get(Patient::key("Ward", "1")).await.unwrap_err(),
        table.upsert_replace(&Patient::ada()).await.unwrap_err(),
        table.query::<Patient>().collect().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Credential, "{error}");
        assert!(
            error.to_string().contains("the vault does not respond"),
            "{error}"
        );
    }
    provider.is_withdrawn.store(false, Ordering::Relaxed);
    read().await;
}

#[tokio::test]
async fn a_key_that_is_nowhere_is_asked_for_once() {
    let server = TableServer::in_process();
    let (_, raw) = tables(&client(&server)).await;
    let table = open(&server, january()).await.unwrap();
    table.insert(&Patient::ada()).await.unwrap();
    let right = stored(&raw, "1").await;
    let mut other = binary(&right, "Name");
    other[5] ^= 1;
    raw.upsert_replace(&right.with("Name", other))
        .await
        .unwrap();
    let journal = server.journal();
    for _ in 0..3 {
        let error = table.get(Patient::key("Ward", "1")).await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("which the keyring does not have"),
            "{error}"
        );
    }
    assert_eq!(
        journal
            .requests()
            .filter(|request| request.op == Some(Op::QueryEntities))
            .count(),
        1
    );
    assert_no_secret(&format!("{table:?}"));
}
