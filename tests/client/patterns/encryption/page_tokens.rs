//! Page tokens of queries that compare an encrypted property: they are bound to the value, and to
//! none of the keys.

use tablesdk::encryption::{Keyring, LocalKey};
use tablesdk::query::PageToken;
use tablesdk::{Error, ErrorKind, TableClient};

use super::keys::{HOUR, open, rotated};
use super::{EMAIL, Patient, february, insert, january, keyring, start, with_email};

/// A page of two patients with that email: their ids, and the token as a web service gives it out.
async fn page(
    table: &TableClient,
    email: &str,
    token: Option<&str>,
) -> Result<(Vec<String>, Option<String>), Error> {
    let query = table.query::<Patient>().filter(|p| p.email.eq(email));
    let page = query.take(2).page_after(token).await?;
    let ids = page.items.iter().map(|patient| patient.id.clone());
    Ok((ids.collect(), page.next.as_ref().map(PageToken::to_string)))
}

/// Reads all pages, each with the next of the clients.
async fn in_turn(tables: &[&TableClient]) -> Vec<String> {
    let (mut ids, mut token) = (Vec::new(), None);
    for table in tables.iter().cycle() {
        let (more, next) = page(table, EMAIL, token.as_deref()).await.unwrap();
        ids.extend(more);
        match next {
            Some(next) => token = Some(next),
            None => break,
        }
    }
    ids
}

const ALL: [&str; 6] = ["1", "2", "3", "4", "5", "6"];

#[tokio::test]
async fn page_tokens_stay_valid_when_there_is_a_new_key() {
    let (server, ..) = start().await;
    let one = open(&server, january()).await;
    let other = open(&server, january()).await;
    insert(&one, 1..=6).await;
    let (_, before) = page(&one, EMAIL, None).await.unwrap();
    let before = before.as_deref();

    // One has loaded the new key, the other has not.
    let newest = rotated(&server).await;
    for tables in [[&newest, &other], [&other, &newest], [&one, &newest]] {
        assert_eq!(in_turn(&tables).await, ALL);
        assert_eq!(page(tables[0], EMAIL, before).await.unwrap().0, ["3", "4"]);
    }

    // The new key encrypts. A client that was idle loads it when it needs it.
    server.clock().advance(2 * HOUR);
    assert_eq!(in_turn(&[&newest, &other, &one]).await, ALL);
    assert_eq!(page(&other, EMAIL, before).await.unwrap().0, ["3", "4"]);
    let (_, token) = page(&newest, EMAIL, None).await.unwrap();
    for table in [&one, &other, &newest] {
        let other = page(table, "grace@contoso.com", token.as_deref()).await;
        let error = other.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "another value: {error}");
        assert!(!error.to_string().contains("contoso"), "{error}");
    }
}

/// The keys are loaded while a page is read: its token is one for the next page.
#[tokio::test]
async fn the_token_of_a_page_that_loads_a_new_key_is_valid() {
    let (server, ..) = start().await;
    let table = open(&server, january()).await;
    insert(&table, 1..=6).await;
    rotated(&server).await;
    server.clock().advance(2 * HOUR);
    assert_eq!(in_turn(&[&table]).await, ALL);
}

#[tokio::test]
async fn local_keys_in_another_order_accept_the_same_page_tokens() {
    let (_server, _, raw) = start().await;
    let with = |first: fn() -> LocalKey, second: fn() -> LocalKey| {
        raw.with_encryption(Keyring::new(first()).also(second()))
    };
    let (one, other) = (with(january, february), with(february, january));
    insert(&one, 1..=6).await;
    assert_eq!(in_turn(&[&one, &other]).await, ALL);
    assert_eq!(in_turn(&[&other, &one]).await, ALL);

    // Without the key, nobody knows which value it was.
    let (_, token) = page(&other, EMAIL, None).await.unwrap();
    let old = raw.with_encryption(keyring());
    let error = page(&old, EMAIL, token.as_deref()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
}

#[tokio::test]
async fn merged_pages_stay_valid_when_there_is_a_new_key() {
    let (server, ..) = start().await;
    let one = open(&server, january()).await;
    insert(&one, 1..=6).await;
    for id in 1..=3 {
        let patient = Patient {
            department: "Home".to_owned(),
            ..Patient::new(&format!("{id}b"), EMAIL)
        };
        one.insert(&patient).await.unwrap();
    }
    let page = async |table: &TableClient, token: Option<PageToken>| {
        let partitions = [Patient::partition("Ward"), Patient::partition("Home")];
        let merged = with_email(table).partitions(partitions).merged();
        merged.take(2).page(token).await
    };
    let first = page(&one, None).await.unwrap();
    let newest = rotated(&server).await;
    let second = page(&newest, first.next).await.unwrap();
    let third = page(&one, second.next).await.unwrap();
    let ids: Vec<_> = third.items.iter().map(|patient| &patient.id).collect();
    assert_eq!(ids, ["3", "3b"]);
}
