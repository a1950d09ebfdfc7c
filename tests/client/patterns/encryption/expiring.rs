//! Entities that expire, with encrypted properties.

use std::time::Duration;

use tablesdk::{DynamicEntity, ErrorKind, TableClient, TableEntity, Timestamp};
use tablesdk_server::TableServer;

use super::super::expiry::hours;
use super::super::expiry_removal::rows;
use super::{EMAIL, assert_no_secret, binary, keyring};
use crate::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{user}", row_key = "session_{id:06}")]
struct Session {
    user: String,
    id: u32,
    #[table(encrypt)]
    name: String,
    #[table(encrypt(eq))]
    email: String,
    #[table(expires)]
    until: Timestamp,
}

fn session(id: u32, until: Timestamp) -> Session {
    Session {
        user: "ann".to_owned(),
        id,
        name: "Ada Lovelace".to_owned(),
        email: EMAIL.to_owned(),
        until,
    }
}

fn key(id: u32) -> tablesdk::key::Key<Session> {
    Session::key("ann", id)
}

/// Session 1 has expired, session 2 has not.
async fn two(raw: &TableClient) -> TableClient {
    let table = raw.with_encryption(keyring());
    table.insert(&session(1, hours(-1))).await.unwrap();
    table.insert(&session(2, hours(1))).await.unwrap();
    table
}

on_both_transports! {
    async fn an_expired_entity_is_hidden_and_decrypted_if_it_is_asked_for(subject: Subject) {
        let table = two(&subject.table().await).await;
        let of_ann = || table.query::<Session>().partition("ann").filter(|s| s.email.eq(EMAIL));
        assert!(table.get(key(1)).await.unwrap().is_none());
        assert_eq!(table.get(key(2)).await.unwrap().unwrap().name, "Ada Lovelace");
        assert_eq!(of_ann().select(|s| s.id).collect().await.unwrap(), [2]);
        assert_eq!(of_ann().count().await.unwrap(), 1);
        let over = table.get(key(1)).including_expired().await.unwrap().unwrap();
        assert_eq!(over.email, EMAIL);
        let all = of_ann().including_expired().values().collect().await.unwrap();
        assert!(all.iter().all(|session| session.name == "Ada Lovelace") && all.len() == 2);
        let many = table.get_many([1, 2].map(key)).including_expired().await.unwrap();
        assert!(many.iter().all(|found| found.as_ref().unwrap().name == "Ada Lovelace"));
        // In the place of an expired entity.
        let renewed = table.modify(key(1), |_| Ok(())).or_insert(|| session(1, hours(2)));
        assert_eq!(renewed.await.unwrap().name, "Ada Lovelace");
        assert_eq!(of_ann().count().await.unwrap(), 2);
    }

    async fn expired_entities_are_removed(subject: Subject) {
        let raw = subject.table().await;
        let table = two(&raw).await;
        let in_partition = table.clean_up_expired::<Session>().partition("bob").await.unwrap();
        assert_eq!(in_partition.removed, 0);
        let report = table.clean_up_expired::<Session>().await.unwrap();
        assert_eq!((report.removed, report.postponed, report.unreadable.len()), (1, 0, 0));
        assert_eq!(rows(&raw).await, ["session_000002"]);
    }

    async fn an_expired_entity_that_cannot_be_decrypted_is_reported_and_left(subject: Subject) {
        let raw = subject.table().await;
        let table = two(&raw).await;
        table.insert(&session(3, hours(-1))).await.unwrap();
        let stored = raw.get::<DynamicEntity>(("ann", "session_000001")).await.unwrap().unwrap();
        let mut name = binary(&stored, "name");
        name[40] ^= 1;
        raw.upsert_replace(&stored.into_inner().with("name", name)).await.unwrap();
        let report = table.clean_up_expired::<Session>().await.unwrap();
        assert_eq!((report.removed, report.unreadable.len()), (1, 1));
        assert!(report.unreadable[0].contains("cannot be decrypted"), "{report:?}");
        assert_no_secret(&format!("{report:?}"));
        assert_eq!(rows(&raw).await, ["session_000001", "session_000002"]);
        let error = table.get(key(1)).including_expired().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(table.get(key(1)).await.unwrap().is_none());
    }

    async fn without_keys_nothing_is_removed(subject: Subject) {
        let raw = subject.table().await;
        two(&raw).await;
        let error = raw.clean_up_expired::<Session>().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert_eq!(rows(&raw).await.len(), 2);
    }
}

/// A patch of the instant leaves the encrypted properties as they are.
#[tokio::test]
async fn an_entity_that_is_prolonged_is_not_removed() {
    let server = TableServer::in_process();
    let raw = harness::client(&server).table("Tests");
    raw.create_table().await.unwrap();
    let table = two(&raw).await;
    let patch = table.patch(key(1)).set(|s| s.until, hours(3));
    patch.await.unwrap();
    server.clock().advance(Duration::from_secs(2 * 3600));
    let report = table.clean_up_expired::<Session>().await.unwrap();
    assert_eq!(report.removed, 1);
    let left = table.get(key(1)).await.unwrap().unwrap();
    assert_eq!(left.name, "Ada Lovelace");
    assert_eq!(rows(&raw).await, ["session_000001"]);
}
