//! Lost responses: every attempt sends the same bytes, and the outcome is resolved by them.

use harness::client_with;
use harness::proxy::Proxy;
use tablesdk::action::CurrentState;
use tablesdk::{DynamicEntity, ETag, ErrorKind, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use super::{Patient, binary, tables};

async fn start() -> (TableServer, Proxy, TableClient) {
    let server = TableServer::in_process();
    let proxy = Proxy::new(server.transport());
    let service = client_with(&server, |builder| builder.transport(proxy.clone()));
    let (table, _) = tables(&service).await;
    (server, proxy, table)
}

fn bodies(proxy: &Proxy, op: Op) -> Vec<bytes::Bytes> {
    let sent = proxy.sent().into_iter().filter(|sent| sent.op == op);
    sent.map(|sent| sent.body).collect()
}

#[tokio::test(start_paused = true)]
async fn a_retry_sends_the_same_bytes() {
    let (server, proxy, table) = start().await;
    let lost = Fault::lost_response();
    server.faults().next(Op::InsertOrReplaceEntity, lost);
    table.upsert_replace(&Patient::ada()).await.unwrap();
    let sent = bodies(&proxy, Op::InsertOrReplaceEntity);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], sent[1]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_shows_the_decrypted_entity() {
    let (server, _, table) = start().await;
    let lost = Fault::lost_response();
    server.faults().next(Op::InsertEntity, lost);
    let error = table.insert(&Patient::ada()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    let Some(CurrentState::Present(current)) = error.current() else {
        panic!("{error}");
    };
    assert!(current.equals_sent());
    assert_eq!(*current.read::<Patient>().unwrap(), Patient::ada());
    // A type without encrypted properties could be written: it gets the bytes.
    let raw = current.read::<DynamicEntity>().unwrap();
    assert!(binary(&raw, "Name").len() > 46);
    // The same value, encrypted by another client, is not what was sent.
    let (server, _, table) = start().await;
    let mut stored = table.insert(&Patient::ada()).await.unwrap();
    table.replace_if(&Patient::ada(), ETag::ANY).await.unwrap();
    let lost = Fault::lost_response();
    server.faults().next(Op::UpdateEntity, lost);
    let error = table.replace(&mut stored).await.unwrap_err();
    assert!(
        error.is_precondition_failed() || error.is_outcome_unknown(),
        "{error}"
    );
    if let Some(CurrentState::Present(current)) = error.current() {
        assert!(!current.equals_sent());
        assert_eq!(*current.read::<Patient>().unwrap(), Patient::ada());
    }
}

#[tokio::test(start_paused = true)]
async fn exactly_once_finds_its_own_bytes() {
    let (server, _, table) = start().await;
    for fault in [Fault::lost_response(), Fault::reset()] {
        server.faults().next(Op::Batch, fault);
        let mut stored = table.insert(&Patient::ada()).exactly_once().await.unwrap();
        "Ada King".clone_into(&mut stored.name);
        table.replace(&mut stored).await.unwrap();
        server.faults().next(Op::Batch, Fault::lost_response());
        stored.visits = 2;
        table.replace(&mut stored).exactly_once().await.unwrap();
        // The ETag is the current one.
        stored.visits = 3;
        table.replace(&mut stored).await.unwrap();
        table.delete_stored(&stored).await.unwrap();
    }
}
