//! Clients that change the keys of a table at the same time, and what a client remembers of them.

use harness::client;
use tablesdk::encryption::{Keyring, LocalKey};
use tablesdk::{DynamicEntity, ErrorKind, TableClient, Value};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use super::super::expiry_removal::wrong_client;
use super::keys::{HOUR, current, key_id, key_table, load, wrapped_keys};
use super::vault::Vault;
use super::{Patient, binary, february, get, insert, january, start, stored};

/// The number of keys that a filter compares with.
fn compared(table: &TableClient) -> usize {
    let explained = super::with_email(table).explain().unwrap();
    explained.filter().unwrap().matches("Email__eq").count()
}

#[tokio::test]
async fn one_of_two_rotations_makes_the_current_key() {
    let server = TableServer::in_process();
    let keys = key_table(&client(&server)).await;
    load(&server, january()).await.unwrap();
    let of_rival = keys.clone();
    let rival = async move {
        let keyring = Keyring::open(&of_rival, january()).await.unwrap();
        keyring.rotate().await.unwrap();
        let mark = current(&of_rival).await.with("Rival", true);
        of_rival.upsert_replace(&mark).await.unwrap();
    };
    let vault = Vault::new([january()]).interrupted(rival);
    load(&server, vault).await.unwrap().rotate().await.unwrap();
    let current = current(&keys).await;
    let mark = current.properties().get("Rival");
    assert_eq!(mark, Some(&Value::Boolean(true)));
    let rows = wrapped_keys(&keys).await;
    assert_eq!(rows.len(), 3, "the key that lost is not used");
}

#[tokio::test]
async fn a_key_that_a_rival_has_wrapped_is_not_wrapped_with_an_older_one() {
    let march = LocalKey::new("2024-03", [9; 32]);
    let server = TableServer::in_process();
    load(&server, january()).await.unwrap();
    let keys = key_table(&client(&server)).await;
    let newest = vec![march.clone(), january()];
    let rival = async move {
        let keyring = Keyring::open(&keys, newest).await.unwrap();
        assert_eq!(keyring.rewrap().await.unwrap(), 1);
    };
    let vault = Vault::new([february(), january()]).interrupted(rival);
    let keyring = load(&server, vault).await.unwrap();
    assert_eq!(keyring.rewrap().await.unwrap(), 0);
    load(&server, march).await.unwrap();
}

#[tokio::test]
async fn a_key_of_the_program_beside_stored_ones_outlasts_each_load() {
    let (server, _, raw) = start().await;
    insert(&raw.with_encryption(Keyring::new(february())), [1]).await;
    let keyring = load(&server, january()).await.unwrap().also(february());
    let table = raw.with_encryption(keyring.clone());
    for hours in 0..3 {
        let found = get(&table, "1").await;
        assert_eq!(found, Patient::ada(), "after {hours} hours");
        assert_eq!(compared(&table), 2);
        server.clock().advance(HOUR);
    }
    keyring.rotate().await.unwrap();
    assert_eq!(get(&table, "1").await, Patient::ada());
    assert_eq!(compared(&table), 3);
}

#[tokio::test]
async fn the_client_that_makes_a_key_has_it_at_once() {
    let (server, _, raw) = start().await;
    let keyring = load(&server, january()).await.unwrap();
    let table = raw.with_encryption(keyring.clone());
    assert_eq!(compared(&table), 1);
    keyring.rotate().await.unwrap();
    assert_eq!(compared(&table), 2);
}

#[tokio::test]
async fn a_row_with_the_key_of_another_one_is_an_error() {
    let server = TableServer::in_process();
    let keys = key_table(&client(&server)).await;
    load(&server, january())
        .await
        .unwrap()
        .rotate()
        .await
        .unwrap();
    let [one, other] = &wrapped_keys(&keys).await[..] else {
        panic!("two keys were made");
    };
    let exchanged = one.clone().with("Wrapped", binary(other, "Wrapped"));
    keys.upsert_replace(&exchanged).await.unwrap();
    let error = load(&server, january()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    let message = "the keys in \"TablesdkKeys\" cannot be read: a row has the key of another one";
    assert!(error.to_string().contains(message), "{error}");
}

#[tokio::test]
async fn a_clock_that_is_wrong_by_hours_changes_no_key() {
    for by in [-3, 3] {
        let (server, _, raw) = start().await;
        let right = load(&server, january()).await.unwrap();
        insert(&raw.with_encryption(right.clone()), [1]).await;
        let old = key_id(&stored(&raw, "1").await);
        right.rotate().await.unwrap();
        let keys = wrong_client(&server, "TablesdkKeys", by);
        let keyring = Keyring::open(&keys, january()).await.unwrap();
        let table = raw.with_encryption(keyring);
        let journal = server.journal();
        journal.clear();
        get(&table, "1").await;
        let loads = journal.requests().table("TablesdkKeys").count();
        assert_eq!(loads, 0, "the keys are not old");
        for (id, is_old) in [(2, true), (3, false)] {
            insert(&table, [id]).await;
            let key = key_id(&stored(&raw, &id.to_string()).await);
            assert_eq!(key == old, is_old, "{by}");
            server.clock().advance(2 * HOUR);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_does_not_hide_whether_a_key_is_stored() {
    let server = TableServer::in_process();
    let keys = key_table(&client(&server)).await;
    let lose_response = |op| {
        let first = server.faults().on(op).times(1);
        first.inject(Fault::lost_response())
    };
    let lost = lose_response(Op::InsertEntity);
    let keyring = load(&server, january()).await.unwrap();
    assert_eq!(lost.hits(), 1);
    assert_eq!(keys.query::<DynamicEntity>().count().await.unwrap(), 2);
    let lost = lose_response(Op::UpdateEntity);
    keyring.rotate().await.unwrap();
    assert_eq!(lost.hits(), 1);
}
