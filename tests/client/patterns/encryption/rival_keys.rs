//! Clients that change the keys of a table at the same time, and what a client remembers of them.

use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use harness::client;
use tablesdk::encryption::{
    ContentKey, KeyProvider, Keyring, LocalKey, ProviderFuture, WrappedKey,
};
use tablesdk::{DynamicEntity, ErrorKind, TableClient, Value};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use super::super::expiry_removal::wrong_client;
use super::keys::{Counting, HOUR, get, key_id, key_table, open};
use super::{Patient, binary, february, january, stored, tables};

const MINUTE: Duration = Duration::from_secs(60);

/// A provider that lets another client act while it wraps a key.
struct Interrupted {
    keys: Vec<LocalKey>,
    rival: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

impl Interrupted {
    fn by(keys: Vec<LocalKey>, rival: impl Future<Output = ()> + Send + 'static) -> Self {
        let rival = Mutex::new(Some(Box::pin(rival) as _));
        Self { keys, rival }
    }
}

impl KeyProvider for Interrupted {
    fn key_id(&self) -> String {
        self.keys.key_id()
    }

    fn wrap<'a>(&'a self, key: &'a ContentKey) -> ProviderFuture<'a, Vec<u8>> {
        let rival = self.rival.lock().unwrap().take();
        Box::pin(async move {
            if let Some(rival) = rival {
                rival.await;
            }
            self.keys.wrap(key).await
        })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> ProviderFuture<'a, ContentKey> {
        self.keys.unwrap(wrapped)
    }
}

async fn current(keys: &TableClient) -> DynamicEntity {
    let current = keys
        .get::<DynamicEntity>(("keys", "current"))
        .await
        .unwrap();
    current.expect("it exists").into_inner()
}

/// The number of keys that a filter compares with.
fn compared(table: &TableClient) -> usize {
    let query = table.query::<Patient>().filter(|p| p.email.eq("x"));
    let explained = query.explain().unwrap();
    explained.filter().unwrap().matches("Email__eq").count()
}

#[tokio::test]
async fn one_of_two_rotations_makes_the_current_key() {
    let server = TableServer::in_process();
    tables(&client(&server)).await;
    open(&server, january()).await.unwrap();
    let keys = key_table(&client(&server)).await;
    let of_rival = keys.clone();
    let rival = async move {
        let keyring = Keyring::open(&of_rival, january()).await.unwrap();
        keyring.rotate().await.unwrap();
        let current = current(&of_rival).await;
        let mark = current.with("Rival", true);
        of_rival.upsert_replace(&mark).await.unwrap();
    };
    let provider = Interrupted::by(vec![january()], rival);
    let keyring = Keyring::open(&keys, provider).await.unwrap();
    keyring.rotate().await.unwrap();
    let current = current(&keys).await;
    assert_eq!(
        current.properties().get("Rival"),
        Some(&Value::Boolean(true))
    );
    let rows = keys.query::<DynamicEntity>().count().await.unwrap();
    assert_eq!(rows, 1 + 3, "the key that lost is not used");
}

#[tokio::test]
async fn a_key_that_a_rival_has_wrapped_is_not_wrapped_with_an_older_one() {
    let march = LocalKey::new("2024-03", [9; 32]);
    let server = TableServer::in_process();
    tables(&client(&server)).await;
    open(&server, january()).await.unwrap();
    let keys = key_table(&client(&server)).await;
    let (of_rival, newest) = (keys.clone(), vec![march.clone(), january()]);
    let rival = async move {
        let keyring = Keyring::open(&of_rival, newest).await.unwrap();
        assert_eq!(keyring.rewrap().await.unwrap(), 1);
    };
    let provider = Interrupted::by(vec![february(), january()], rival);
    let keyring = Keyring::open(&keys, provider).await.unwrap();
    assert_eq!(keyring.rewrap().await.unwrap(), 0);
    open(&server, march).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_does_not_hide_whether_a_key_is_stored() {
    let server = TableServer::in_process();
    tables(&client(&server)).await;
    let keys = key_table(&client(&server)).await;
    let lost = server.faults().on_writes().nth(1);
    let lost = lost.inject(Fault::lost_response());
    Keyring::open(&keys, january()).await.unwrap();
    assert_eq!(lost.hits(), 1);
    assert_eq!(keys.query::<DynamicEntity>().count().await.unwrap(), 2);
}

#[tokio::test]
async fn a_key_of_the_program_beside_stored_ones_outlasts_each_load() {
    let server = TableServer::in_process();
    let (_, raw) = tables(&client(&server)).await;
    let older = raw.with_encryption(Keyring::new(february()));
    older.insert(&Patient::ada()).await.unwrap();
    let keys = key_table(&client(&server)).await;
    let keyring = Keyring::open(&keys, january())
        .await
        .unwrap()
        .also(february());
    let table = raw.with_encryption(keyring.clone());
    for hours in 0..3 {
        assert_eq!(
            get(&table, "1").await,
            Patient::ada(),
            "after {hours} hours"
        );
        assert_eq!(compared(&table), 2);
        server.clock().advance(HOUR);
    }
    keyring.rotate().await.unwrap();
    assert_eq!(get(&table, "1").await, Patient::ada());
    assert_eq!(compared(&table), 3);
}

#[tokio::test]
async fn the_client_that_makes_a_key_has_it_at_once() {
    let server = TableServer::in_process();
    let (_, raw) = tables(&client(&server)).await;
    let keys = key_table(&client(&server)).await;
    let keyring = Keyring::open(&keys, january()).await.unwrap();
    let table = raw.with_encryption(keyring.clone());
    assert_eq!(compared(&table), 1);
    keyring.rotate().await.unwrap();
    assert_eq!(compared(&table), 2);
}

/// Overwrites the id of the key in a value.
async fn with_key(raw: &TableClient, id: &str, byte: u8) {
    let right = stored(raw, id).await;
    let mut name = binary(&right, "Name");
    name[2..18].fill(byte);
    raw.upsert_replace(&right.with("Name", name)).await.unwrap();
}

#[tokio::test]
async fn missing_keys_are_asked_for_once_a_minute() {
    let server = TableServer::in_process();
    let (_, raw) = tables(&client(&server)).await;
    let table = open(&server, january()).await.unwrap();
    for id in ["1", "2"] {
        table
            .insert(&Patient::new(id, "ada@contoso.com"))
            .await
            .unwrap();
        with_key(&raw, id, id.as_bytes()[0]).await;
    }
    let journal = server.journal();
    let loads = || journal.requests().op(Op::QueryEntities).count();
    for _ in 0..3 {
        for id in ["1", "2"] {
            let error = table.get(Patient::key("Ward", id)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Data);
        }
    }
    assert_eq!(loads(), 1);
    server.clock().advance(MINUTE);
    table.get(Patient::key("Ward", "1")).await.unwrap_err();
    assert_eq!(loads(), 2);
}

#[tokio::test]
async fn a_row_with_the_key_of_another_one_is_an_error() {
    let server = TableServer::in_process();
    let keys = key_table(&client(&server)).await;
    let keyring = Keyring::open(&keys, january()).await.unwrap();
    keyring.rotate().await.unwrap();
    let rows = keys
        .query::<DynamicEntity>()
        .values()
        .collect()
        .await
        .unwrap();
    let mut rows = rows.iter().filter(|row| row.row_key() != "current");
    let (Some(one), Some(other)) = (rows.next(), rows.next()) else {
        panic!("two keys were made");
    };
    let exchanged = one.clone().with("Wrapped", binary(other, "Wrapped"));
    keys.upsert_replace(&exchanged).await.unwrap();
    let error = Keyring::open(&keys, january()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    let message = "the keys in \"TablesdkKeys\" cannot be read: a row has the key of another one";
    assert!(error.to_string().contains(message), "{error}");
}

#[tokio::test]
async fn a_load_for_a_new_key_unwraps_no_other() {
    let server = TableServer::in_process();
    let (_, raw) = tables(&client(&server)).await;
    let provider = Counting::default();
    let table = open(&server, provider.clone()).await.unwrap();
    table.insert(&Patient::ada()).await.unwrap();
    with_key(&raw, "1", 7).await;
    assert_eq!(provider.unwrapped(), 1);
    table.get(Patient::key("Ward", "1")).await.unwrap_err();
    assert_eq!(provider.unwrapped(), 1);
}

#[tokio::test]
async fn a_clock_that_is_wrong_by_hours_changes_no_key() {
    for by in [-3, 3] {
        let server = TableServer::in_process();
        let (_, raw) = tables(&client(&server)).await;
        open(&server, january()).await.unwrap();
        let right = key_table(&client(&server)).await;
        let right = Keyring::open(&right, january()).await.unwrap();
        raw.with_encryption(right.clone())
            .insert(&Patient::ada())
            .await
            .unwrap();
        let old = key_id(&stored(&raw, "1").await);
        right.rotate().await.unwrap();
        let keys = wrong_client(&server, "TablesdkKeys", by);
        let keyring = Keyring::open(&keys, january()).await.unwrap();
        let table = raw.with_encryption(keyring);
        let journal = server.journal();
        journal.clear();
        table.get(Patient::key("Ward", "1")).await.unwrap();
        let loads = journal.requests().table("TablesdkKeys").count();
        assert_eq!(loads, 0, "the keys are not old");
        for (id, is_old) in [("2", true), ("3", false)] {
            table
                .insert(&Patient::new(id, "ada@contoso.com"))
                .await
                .unwrap();
            let key = key_id(&stored(&raw, id).await);
            assert_eq!(key == old, is_old, "{by}");
            server.clock().advance(2 * HOUR);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_key_is_there_although_the_response_was_lost() {
    let server = TableServer::in_process();
    let keys = key_table(&client(&server)).await;
    let lost = Fault::lost_response();
    let lost = server.faults().on(Op::InsertEntity).times(1).inject(lost);
    let keyring = Keyring::open(&keys, january()).await.unwrap();
    assert_eq!(lost.hits(), 1);
    let lost = Fault::lost_response();
    let lost = server.faults().on(Op::UpdateEntity).times(1).inject(lost);
    keyring.rotate().await.unwrap();
    assert_eq!(lost.hits(), 1);
}
