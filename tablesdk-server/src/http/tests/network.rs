//! The limits that defend a server against a hostile network: memory of bodies and responses, and
//! evictions.

use super::*;
use crate::request::memory::{MemoryBudget, MemoryBudgets};

/// With that many bytes for bodies, and for responses; a client may hold half of either.
fn shared_with_memory(bytes: usize) -> Arc<ConnectionShared<Echo>> {
    let memory = MemoryBudgets {
        bodies: MemoryBudget::new(bytes),
        responses: MemoryBudget::new(bytes),
    };
    let memory = Arc::new(memory);
    Arc::new(ConnectionShared { memory, ..shared() })
}

/// A body that takes all that a client may hold.
const LARGE_BODY: &str = "PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 4194304\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn bodies_wait_for_memory() {
    let shared = shared_with_memory(2 * LARGE);
    let held = shared.memory.bodies.share("", PEER);
    let held = held.reserve(LARGE).await.unwrap();
    let mut peer = Peer::of(&shared);
    peer.send(LARGE_BODY).await;
    peer.send(vec![b'x'; 20_000]).await;
    peer.is_refused(503, "[refused PUT ServerBusy]").await;

    let mut peer = Peer::of(&shared);
    peer.send(LARGE_BODY).await;
    peer.send(vec![b'x'; 20_000]).await;
    drop(held);
    peer.send(vec![b'x'; LARGE - 20_000]).await;
    peer.read_until("[PUT /1 h 4194304]").await;
}

#[tokio::test(start_paused = true)]
async fn absent_bodies_hold_no_memory() {
    let shared = shared_with_memory(2 * LARGE);
    let mut silent = Vec::new();
    for _ in 0..64 {
        let mut peer = Peer::of(&shared);
        peer.send(LARGE_BODY).await;
        silent.push(peer);
    }
    let began = tokio::time::Instant::now();
    let mut peer = Peer::of(&shared);
    peer.send(LARGE_BODY).await;
    peer.send(vec![b'x'; LARGE]).await;
    peer.read_until("[PUT /1 h 4194304]").await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn stalled_bodies_release_their_memory() {
    let shared = shared_with_memory(2 * LARGE);
    let mut stalled = Peer::of(&shared);
    stalled.send(LARGE_BODY).await;
    stalled.send(vec![b'x'; 20_000]).await;
    let mut peer = Peer::of(&shared);
    let began = tokio::time::Instant::now();
    peer.send(LARGE_BODY).await;
    peer.send(vec![b'x'; LARGE]).await;
    peer.read_until("[PUT /1 h 4194304]").await;
    assert!(began.elapsed() < Duration::from_secs(2));
    stalled.is_refused(408, "").await;
}

#[tokio::test(start_paused = true)]
async fn unread_refusals_do_not_stop_an_eviction() {
    let shared = Arc::new(shared());
    let mut peer = Peer::of(&shared);
    let requests = "GET /secret HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1000);
    // Until the server waits for the refusals to be read.
    let sent = timeout(Duration::from_secs(1), peer.send(&requests)).await;
    assert!(
        sent.is_err(),
        "the server reads only so many requests ahead"
    );
    let began = tokio::time::Instant::now();
    shared.evict().await;
    (&mut peer.serving).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn unread_responses_release_their_memory() {
    let shared = shared_with_memory(2 * LARGE);
    let request = "GET /large HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut stalled = Peer::of(&shared);
    stalled.send(request).await;
    stalled.read_until("HTTP/1.1 200 OK").await;
    let mut peer = Peer::of(&shared);
    let began = tokio::time::Instant::now();
    for _ in 0..2 {
        peer.send(request).await;
        peer.read_until("\r\n\r\n").await;
        let mut body = vec![0; LARGE];
        peer.stream.read_exact(&mut body).await.unwrap();
    }
    assert!(began.elapsed() < Duration::from_secs(2));
    assert!(stalled.read_to_end().await.len() < LARGE);
}

#[tokio::test(start_paused = true)]
async fn chunked_bodies_return_unused_memory() {
    let shared = shared_with_memory(2 * REQUEST_BODY_BYTES_MAX);
    let began = tokio::time::Instant::now();
    let mut peer = Peer::of(&shared);
    for _ in 0..3 {
        peer.send("POST /1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n7530\r\n")
            .await;
        peer.send(vec![b'x'; 0x7530]).await;
        peer.send("\r\n0\r\n\r\n").await;
        peer.read_until("[POST /1 h 30000]").await;
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn an_evicted_connection_completes_its_response() {
    let shared = Arc::new(shared());
    let mut busy = Peer::of(&shared);
    busy.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n").await;
    busy.read_until("\r\n\r\n").await;
    let mut half_a_head = Peer::of(&shared);
    half_a_head.send("GET /1 HTTP/1.1\r\nHo").await;
    shared.evict().await;
    assert_eq!(half_a_head.read_to_end().await, "");
    tokio::join!(shared.evict(), async {
        let mut body = vec![0; LARGE];
        busy.stream.read_exact(&mut body).await.unwrap();
        assert_eq!(busy.read_to_end().await, "");
    });
}
