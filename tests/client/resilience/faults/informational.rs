//! A peer that never stops sending informational responses, over real sockets: the operation still
//! ends at its deadline.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use tablesdk::transport::ReqwestTransport;
use tablesdk::{Error, RetryPolicy, SharedKey, TableServiceClient};

/// A server that sends `100 Continue` to every request, as fast as its connections permit.
///
/// On threads of its own, since a client that is busy on a runtime of one thread would slow the
/// flood down.
fn flood() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let responses = "HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000);
                let _ = stream.read(&mut [0; 4096]);
                while stream.write_all(responses.as_bytes()).is_ok() {}
            });
        }
    });
    address
}

/// The time until the client ends its request to such a server, and the error.
async fn give_up(transport: ReqwestTransport, deadline: Duration) -> (Duration, Error) {
    let service = TableServiceClient::builder(format!("http://{}/acct", flood()))
        .credential(SharedKey::new("acct", "c2VjcmV0").unwrap())
        .transport(transport)
        .retry(RetryPolicy::exponential().deadline(deadline))
        .build()
        .unwrap();
    let start = Instant::now();
    let error = service.tables().collect().await.unwrap_err();
    (start.elapsed(), error)
}

#[tokio::test]
async fn endless_informational_responses_end_at_the_deadline() {
    let transport = ReqwestTransport::new().unwrap().on_own_thread().unwrap();
    let deadline = Duration::from_secs(1);
    let (passed, error) = give_up(transport, deadline).await;
    assert!(error.is_timeout(), "{error:?}");
    assert!(passed < deadline * 2, "{passed:?}");
}

/// How much later depends on the machine: the runtime's only thread reads up to 50 MB at a time.
#[tokio::test]
async fn endless_informational_responses_end_on_the_callers_thread() {
    let transport = ReqwestTransport::new().unwrap();
    let (_, error) = give_up(transport, Duration::from_millis(100)).await;
    assert!(error.is_timeout(), "{error:?}");
}
