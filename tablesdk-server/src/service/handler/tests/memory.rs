//! The memory budget of responses.

use super::*;
use crate::request::connection::Connection;
use crate::request::handler::Handler as _;
use crate::request::memory::{MemoryBudget, MemoryBudgets, RequestMemory};

#[tokio::test(start_paused = true)]
async fn a_read_waits_for_memory_for_its_entity() {
    let client = Client::new();
    let call = async |method: &str, path: &str, body: &str, memory: Option<&Arc<RequestMemory>>| {
        let mut request = client.signed(method, path, &[], body);
        if let Some(memory) = memory {
            request.extensions_mut().insert(Connection {
                memory: Some(Arc::clone(memory)),
                ..Connection::default()
            });
        }
        client.service.call(request).await
    };
    let created = call("POST", "/acct/Tables", r#"{"TableName":"people"}"#, None).await;
    assert_eq!(created.status(), 201);
    let text = "x".repeat(30_000);
    let entity = format!(r#"{{"PartitionKey":"p","RowKey":"r","a":"{text}"}}"#);
    assert_eq!(
        call("POST", "/acct/people", &entity, None).await.status(),
        201
    );

    let budgets = Arc::new(MemoryBudgets {
        bodies: MemoryBudget::new(0),
        responses: MemoryBudget::new(80_000),
    });
    let peer = std::net::IpAddr::from([127, 0, 0, 1]);
    let held = budgets
        .responses
        .share("acct", peer)
        .reserve(20_000)
        .await
        .unwrap();
    let memory = RequestMemory::new(&budgets, peer);
    let path = "/acct/people(PartitionKey='p',RowKey='r')";
    let mut get = std::pin::pin!(call("GET", path, "", Some(&memory)));
    let waits = tokio::time::timeout(Duration::from_secs(20), get.as_mut()).await;
    assert!(waits.is_err(), "there is no memory for it");
    drop(held);
    let response = get.await;
    assert!(body(&response).contains(&text));
    let reserved = memory.take_response(response.body().len()).unwrap();
    drop(reserved);
    budgets
        .responses
        .share("acct", peer)
        .reserve(40_000)
        .await
        .unwrap();
}

/// The state of each request is copied with all of its bytes, so that no operation may make it
/// large.
#[test]
fn the_future_of_a_request_is_small() {
    let client = Client::with_table();
    let (head, ()) = client
        .signed("GET", "/acct/people()", &[], "")
        .map(drop)
        .into_parts();
    let connection = Connection::default();
    let admitted = wait_for(client.service.admit(head, &connection));
    let future = client.service.respond(admitted.unwrap(), Bytes::new());
    let bytes = size_of_val(&future);
    assert!(bytes <= FUTURE_BYTES_MAX, "{bytes} bytes");
}

/// It has about 2.1 KB, most of which are the facts of the request.
const FUTURE_BYTES_MAX: usize = 2_176;
