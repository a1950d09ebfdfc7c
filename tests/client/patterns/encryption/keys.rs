//! Keys in a table: made once, loaded by all, changed while clients write.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{join_all, try_join};
use harness::{client, client_with};
use tablesdk::encryption::{KeyProvider, Keyring};
use tablesdk::{
    DynamicEntity, Error, ErrorKind, Guid, RetryPolicy, TableClient, TableServiceClient, Value,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use super::vault::Vault;
use super::{
    Patient, assert_no_secret, binary, february, get, insert, january, start, stored, with_email,
};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

pub(crate) async fn key_table(service: &TableServiceClient) -> TableClient {
    let keys = service.table("TablesdkKeys");
    keys.create_table().if_missing().await.unwrap();
    keys
}

/// The keys of the table, as a new client loads them.
pub(super) async fn load(
    server: &TableServer,
    provider: impl KeyProvider,
) -> Result<Keyring, Error> {
    Keyring::open(&key_table(&client(server)).await, provider).await
}

/// A new client, with the keys of the table.
pub(super) async fn open(server: &TableServer, provider: impl KeyProvider) -> TableClient {
    let keyring = load(server, provider).await.unwrap();
    client(server).table("Patients").with_encryption(keyring)
}

/// A new client, which has made a new key.
pub(super) async fn rotated(server: &TableServer) -> TableClient {
    let keyring = load(server, january()).await.unwrap();
    keyring.rotate().await.unwrap();
    client(server).table("Patients").with_encryption(keyring)
}

pub(super) async fn current(keys: &TableClient) -> DynamicEntity {
    let current = keys.get::<DynamicEntity>(("keys", "current")).await;
    current.unwrap().expect("it exists").into_inner()
}

/// The rows of all keys.
pub(super) async fn wrapped_keys(keys: &TableClient) -> Vec<DynamicEntity> {
    let rows = keys.query::<DynamicEntity>().values().collect().await;
    let mut rows = rows.unwrap();
    rows.retain(|row| row.row_key() != "current");
    rows
}

pub(super) fn key_id(entity: &DynamicEntity) -> Guid {
    let envelope = binary(entity, "Name");
    Guid::from_bytes(envelope[2..18].try_into().unwrap())
}

#[tokio::test]
async fn the_first_client_makes_a_key_and_the_others_load_it() {
    let (server, _, raw) = start().await;
    let clients = join_all((0..8).map(|_| open(&server, january()))).await;
    for (writer, id) in clients.iter().zip(1..) {
        insert(writer, [id]).await;
    }
    for reader in &clients {
        assert_eq!(with_email(reader).collect().await.unwrap().len(), 8);
    }
    let keys = key_table(&client(&server)).await;
    let current: Guid = current(&keys).await.properties().read("Key").unwrap();
    let rows = wrapped_keys(&keys).await;
    assert!(rows.iter().any(|row| row.row_key() == current.to_string()));
    for row in rows {
        // A nonce, the key and the tag.
        assert_eq!(binary(&row, "Wrapped").len(), 12 + 32 + 16);
        let wrapped_by = row.properties().get("WrappedBy");
        assert_eq!(wrapped_by, Some(&Value::from("2024-01")));
    }
    assert_eq!(key_id(&stored(&raw, "1").await), current);
}

#[tokio::test]
async fn a_new_key_encrypts_once_all_clients_know_it() {
    let (server, _, raw) = start().await;
    let one = open(&server, january()).await;
    let other = open(&server, january()).await;
    let key_of = async |id: &str| key_id(&stored(&raw, id).await);
    let rename = async |table: &TableClient, id: &str| {
        let patch = table.patch(Patient::key("Ward", id));
        patch.set(|p| p.name, "Ada King").await.unwrap();
    };
    insert(&one, [1]).await;
    let old = key_of("1").await;
    // Neither a client that has the key nor one that does not has it encrypt.
    rotated(&server).await;
    let newest = open(&server, january()).await;
    insert(&one, [2]).await;
    insert(&newest, [3]).await;
    assert_eq!((key_of("2").await, key_of("3").await), (old, old));
    server.clock().advance(HOUR);
    rename(&newest, "3").await;
    assert_eq!(key_of("3").await, old, "an hour later");
    server.clock().advance(HOUR);
    insert(&newest, [4]).await;
    let new = key_of("4").await;
    assert_ne!(new, old);
    // A client that was idle finds it, and writes with it.
    for reader in [&one, &other, &newest] {
        assert_eq!(with_email(reader).collect().await.unwrap().len(), 4);
    }
    rename(&other, "1").await;
    assert_eq!(key_of("1").await, new);
    // Two keys are in one entity.
    assert_eq!(get(&one, "1").await.email, super::EMAIL);
    // A sweep leaves only the new one.
    for patient in one.query::<Patient>().collect().await.unwrap() {
        let key = Patient::key("Ward", &patient.id);
        one.modify(key, |_| Ok(())).await.unwrap();
        let swept = stored(&raw, &patient.id).await;
        for name in ["Name", "Email", "Born"] {
            assert_eq!(binary(&swept, name)[2..18], new.to_bytes());
        }
    }
}

#[tokio::test]
async fn a_key_that_another_client_made_since_is_loaded() {
    let (server, ..) = start().await;
    let reader = open(&server, january()).await;
    rotated(&server).await;
    // As if the clock of the writer were hours ahead.
    let keys = key_table(&client(&server)).await;
    let change = keys.modify::<DynamicEntity, _>(("keys", "current"), |current| {
        current.properties_mut().remove("Before");
        Ok(())
    });
    change.await.unwrap();
    insert(&open(&server, january()).await, [1]).await;
    assert_eq!(get(&reader, "1").await, Patient::ada());
}

/// Each request of a client for its keys may be its last, or its response is lost: the next client
/// goes on.
#[tokio::test]
async fn each_request_for_keys_may_be_the_last() {
    for is_rotation in [false, true] {
        let (server, _, raw) = start().await;
        if is_rotation {
            insert(&open(&server, january()).await, [1]).await;
        }
        let once = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
        let keys = key_table(&once).await;
        let action = async || {
            let keyring = Keyring::open(&keys, january()).await?;
            if is_rotation {
                keyring.rotate().await?;
            }
            Ok::<_, Error>(())
        };
        let runs = server.at_each_request();
        let runs = runs.faults([Fault::lost_response(), Fault::reset()]);
        let runs = runs.run(action, async |run| {
            if run.fault.is_none() {
                run.outcome.unwrap().unwrap();
            }
            let after = open(&server, january()).await;
            insert(&after, [2]).await;
            server.clock().advance(2 * HOUR);
            rotated(&server).await;
            server.clock().advance(2 * HOUR);
            insert(&after, [3]).await;
            let last = open(&server, january()).await;
            let all = last.query::<Patient>().collect().await.unwrap();
            assert_eq!(all.len(), if is_rotation { 3 } else { 2 });
            let keys = [stored(&raw, "2").await, stored(&raw, "3").await];
            assert_ne!(key_id(&keys[0]), key_id(&keys[1]));
        });
        assert!(runs.await >= 2 * 3, "{is_rotation}");
    }
}

#[tokio::test]
async fn the_key_that_wraps_is_changed_while_clients_write() {
    let (server, ..) = start().await;
    let table = open(&server, january()).await;
    rotated(&server).await;
    let error = load(&server, february()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Credential);
    let reason = r#"the key that "2024-01" has wrapped cannot be unwrapped with "2024-02""#;
    assert!(error.to_string().ends_with(reason), "{error}");

    let both = load(&server, vec![february(), january()]).await.unwrap();
    let again = both.clone();
    let rewraps = async { Ok::<_, Error>(both.rewrap().await? + again.rewrap().await?) };
    let writes = insert(&table, 1..40).map(Ok);
    let (wrapped, ()) = try_join(rewraps, writes).await.unwrap();
    assert_eq!(wrapped, 2);
    let newer = open(&server, february()).await;
    assert_eq!(newer.query::<Patient>().collect().await.unwrap().len(), 39);
    let error = super::keyring().rewrap().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
}

#[tokio::test]
async fn keys_are_unwrapped_once_an_hour() {
    let (server, ..) = start().await;
    let vault = Vault::new([january()]);
    let table = open(&server, vault.clone()).await;
    insert(&table, [1]).await;
    let read = || join_all((0..20).map(|_| get(&table, "1")));
    read().await;
    assert_eq!(vault.state().unwrapped, 1);
    server.clock().advance(HOUR);
    read().await;
    assert_eq!(vault.state().unwrapped, 2);
    // What the provider no longer unwraps is no longer used.
    vault.state().refuses = true;
    read().await;
    server.clock().advance(HOUR);
    for error in [
        table.get(Patient::key("Ward", "1")).await.unwrap_err(),
        table.upsert_replace(&Patient::ada()).await.unwrap_err(),
        table.query::<Patient>().collect().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Credential, "{error}");
        let reason = "the vault does not respond";
        assert!(error.to_string().contains(reason), "{error}");
    }
    vault.state().refuses = false;
    read().await;
}

#[tokio::test]
async fn a_panic_of_a_provider_is_that_of_one_caller() {
    let (server, ..) = start().await;
    let vault = Vault::new([january()]);
    let table = open(&server, vault.clone()).await;
    insert(&table, [1]).await;
    server.clock().advance(HOUR);
    vault.state().panics = true;
    // It waits for the load as well, and is polled no more.
    let mut aside = Box::pin(get(&table, "1"));
    assert!(aside.as_mut().now_or_never().is_none());
    let callers = (0..3).map(|_| {
        let table = table.clone();
        tokio::spawn(async move { get(&table, "1").await })
    });
    let results = join_all(callers).await;
    let panics = results.iter().filter_map(|result| result.as_ref().err());
    assert_eq!(panics.filter(|error| error.is_panic()).count(), 1);
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2);
    assert_eq!(aside.await, Patient::ada());
}

#[tokio::test]
async fn missing_keys_are_asked_for_once_a_minute_and_no_other_is_unwrapped() {
    let (server, _, raw) = start().await;
    let vault = Vault::new([january()]);
    let table = open(&server, vault.clone()).await;
    insert(&table, [1, 2]).await;
    for id in ["1", "2"] {
        let right = stored(&raw, id).await;
        let mut name = binary(&right, "Name");
        name[2..18].fill(id.as_bytes()[0]);
        raw.upsert_replace(&right.with("Name", name)).await.unwrap();
    }
    let journal = server.journal();
    let loads = || journal.requests().op(Op::QueryEntities).count();
    for id in ["1", "2", "1", "2", "1"] {
        let error = table.get(Patient::key("Ward", id)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        let reason = "which the keyring does not have";
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert_eq!((loads(), vault.state().unwrapped), (1, 1));
    server.clock().advance(MINUTE);
    table.get(Patient::key("Ward", "1")).await.unwrap_err();
    assert_eq!((loads(), vault.state().unwrapped), (2, 1));
    assert_no_secret(&format!("{table:?}"));
}
