//! The outbox: steps whose entities are in another account.

use harness::client;
use tablesdk::outbox::{Outbox, Step};
use tablesdk::{DynamicEntity, SharedKey, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use super::{by_number, commit, leave, outbox_rows, report, set_title, stored_title, tables};

/// The table of the transactions, and the same table of titles in two accounts.
async fn accounts() -> (TableServer, TableServiceClient, [TableClient; 3]) {
    let server = TableServer::builder()
        .account(SharedKey::new("one", "a2V5").unwrap())
        .account(SharedKey::new("two", "a2V5Mg==").unwrap());
    let server = server.in_process().unwrap();
    let (table, titles) = tables(&server);
    let other = TableServiceClient::builder(server.endpoint().replace("/one", "/two"))
        .credential(SharedKey::new("two", "a2V5Mg==").unwrap())
        .transport(server.transport());
    let other = other.build().unwrap();
    let tables = [table, titles, other.table("Titles")];
    for table in &tables {
        table.create_table().await.unwrap();
    }
    (server, other, tables)
}

#[tokio::test(start_paused = true)]
async fn a_writer_applies_a_step_by_the_client_that_the_step_has() {
    let (server, _, [table, here, there]) = accounts().await;
    commit(&table, [set_title(&there, "Sales")]).await;
    assert_eq!(stored_title(&there).await.as_deref(), Some("Sales"));
    assert_eq!(stored_title(&here).await, None);
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_needs_a_client_of_the_account() {
    let (server, other, [table, here, there]) = accounts().await;
    leave(
        &table,
        [set_title(&there, "Sales"), set_title(&here, "Sales")],
    )
    .await;
    // The step behind it waits, too, and no attempt is counted.
    let without = Outbox::new(&table);
    for _ in 0..20 {
        assert_eq!(without.drain().await.unwrap(), report(0, 2, 0, 0));
    }
    assert_eq!(stored_title(&here).await, None);
    let with = Outbox::new(&table).account(&other);
    assert_eq!(with.drain().await.unwrap(), report(2, 0, 0, 0));
    assert_eq!(stored_title(&there).await.as_deref(), Some("Sales"));
    assert_eq!(stored_title(&here).await.as_deref(), Some("Sales"));
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test(start_paused = true)]
async fn the_entry_names_the_account_without_a_credential() {
    let (server, _, [table, _, there]) = accounts().await;
    leave(&table, [set_title(&there, "Sales")]).await;
    let key = ("Sales", "~tablesdk.outbox.log.00000000000000000001");
    let entry = table.get::<DynamicEntity>(key).await.unwrap().unwrap();
    let account = entry
        .properties()
        .read::<String>("TablesdkAccount")
        .unwrap();
    assert_eq!(account, server.endpoint().replace("/one", "/two"));
    assert!(!format!("{entry:?}").contains("a2V5"));
}

/// The same key in two accounts are two entities: a delete of the one leaves the other.
#[tokio::test(start_paused = true)]
async fn the_same_key_in_two_accounts_is_two_entities() {
    let (_server, _, [table, here, there]) = accounts().await;
    for titles in [&here, &there] {
        commit(&table, [set_title(titles, "Sales")]).await;
    }
    commit(&table, [Step::delete(&there, ("Titles", "Sales"))]).await;
    assert_eq!(stored_title(&there).await, None);
    assert_eq!(stored_title(&here).await.as_deref(), Some("Sales"));
}

/// A table that was copied to the account which its steps name.
#[tokio::test(start_paused = true)]
async fn the_account_of_a_step_may_be_that_of_the_outbox() {
    let (_server, other, [table, _, there]) = accounts().await;
    leave(&table, [by_number(&there, 7)]).await;
    let copy = other.table("Company");
    copy.create_table().await.unwrap();
    for row in ["head", "log.00000000000000000001"] {
        let key = ("Sales", format!("~tablesdk.outbox.{row}"));
        let entity = table.get::<DynamicEntity>(key).await.unwrap().unwrap();
        copy.insert(&*entity).await.unwrap();
    }
    let drain = Outbox::new(&copy).drain().partition("Sales");
    assert_eq!(drain.await.unwrap().applied, 1);
    let written = there.get::<DynamicEntity>(("Titles", "7")).await;
    assert!(written.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_client_of_the_same_account_is_no_other_account() {
    let (server, _, [table, ..]) = accounts().await;
    let again = client(&server).table("Titles");
    leave(&table, [set_title(&again, "Sales")]).await;
    assert_eq!(Outbox::new(&table).drain().await.unwrap().applied, 1);
}
