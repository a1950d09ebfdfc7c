//! The outbox: messages.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tablesdk::DynamicEntity;
use tablesdk::outbox::{Outbox, Received};

use super::{Renamed, commit, company, drain, leave, outbox_rows, renamed, report};

#[tokio::test(start_paused = true)]
async fn messages_are_handled_in_their_order() {
    let (server, table, _titles) = company().await;
    for name in ["a", "b"] {
        commit(&table, [renamed(name), renamed("again")]).await;
    }
    // They wait for a worker with a handler.
    assert_eq!(drain(&table).await, report(0, 4, 0, 0));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let outbox = Outbox::new(&table).on(move |message: Received<Renamed>| {
        let (title, number) = (message.title.clone(), message.number());
        assert_eq!(message.partition(), "Sales");
        assert!(message.id().ends_with(&format!(".{number:020}")));
        log.lock().unwrap().push((title, number));
        async { Ok(()) }
    });
    assert_eq!(outbox.drain().await.unwrap(), report(4, 0, 0, 0));
    let expected = [("a", 1), ("again", 2), ("b", 3), ("again", 4)];
    let expected = expected.map(|(title, number)| (title.to_owned(), number));
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// A function that notes in a table which messages it has handled.
#[tokio::test(start_paused = true)]
async fn the_id_of_a_message_can_be_a_key() {
    let (_server, table, titles) = company().await;
    commit(&table, [renamed("a")]).await;
    let handled = titles.clone();
    let outbox = Outbox::new(&table).on(move |message: Received<Renamed>| {
        let handled = handled.clone();
        async move {
            let note = DynamicEntity::new(message.id(), message.id());
            handled.insert(&note).await?;
            Ok(())
        }
    });
    assert_eq!(outbox.drain().await.unwrap(), report(1, 0, 0, 0));
    assert_eq!(titles.query::<DynamicEntity>().count().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_fails_is_tried_again_and_blocks_its_partition() {
    let (server, table, _titles) = company().await;
    leave(&table, [renamed("first"), renamed("second")]).await;
    let calls = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&calls);
    let outbox = Outbox::new(&table).on(move |message: Received<Renamed>| {
        let mut calls = log.lock().unwrap();
        calls.push(message.title.clone());
        let fails = calls.len() < 3;
        async move {
            if fails {
                Err("the mail server is down".into())
            } else {
                Ok(())
            }
        }
    });
    assert_eq!(outbox.drain().await.unwrap(), report(0, 2, 1, 0));
    // Not before 30 seconds have passed.
    assert_eq!(outbox.drain().await.unwrap(), report(0, 2, 0, 0));
    server.clock().advance(Duration::from_secs(31));
    assert_eq!(outbox.drain().await.unwrap(), report(0, 2, 1, 0));
    // Then twice as long.
    server.clock().advance(Duration::from_secs(31));
    assert_eq!(outbox.drain().await.unwrap(), report(0, 2, 0, 0));
    server.clock().advance(Duration::from_secs(31));
    assert_eq!(outbox.drain().await.unwrap(), report(2, 0, 0, 0));
    assert_eq!(
        *calls.lock().unwrap(),
        ["first", "first", "first", "second"]
    );
}
