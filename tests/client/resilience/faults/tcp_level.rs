//! Faults below HTTP that a server does not inject, over real sockets: connections that end before
//! and during the request, responses that end too early, stall or arrive byte by byte, and peers
//! that do not speak HTTP.
//!
//! Only stalled responses cost real time: a third of a second each.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use harness::tcp::{Tear, TornServer};
use tablesdk::{RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use super::verb::Verb;
use super::{Trace, applied, direct, judge, prepare};
use crate::Employee;

/// The number of requests that the client sends because of the tear.
#[derive(Clone, Copy, Debug)]
enum Sent {
    Once,
    Twice,
    /// Once if the response has no body, because then no byte of it can be missing.
    OnceOrTwice,
    /// Twice or more: the timeout of an attempt is short, and the machine may be busy.
    Often,
}

const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"a\"\r\nContent-Length: 9\r\nConnection: close\r\n\r\n<p>Hi</p>";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Type: text/html\r\nContent-Length: 4\r\nConnection: close\r\n\r\nBusy";
const GATEWAY: &str = "HTTP/1.0 502 Bad Gateway\r\nContent-Type: text/html\r\n\r\n<html>Not found";
const MISSING: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const NO_LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n";
const NO_HTTP: &str = "SSH-2.0-OpenSSH_9.6\r\n";

fn cases() -> Vec<(Tear, Sent)> {
    let mut cases = vec![
        (Tear::Pass, Sent::Once),
        (Tear::ResetBefore, Sent::Twice),
        (Tear::ResetDuring, Sent::Twice),
        (Tear::CloseDuring, Sent::Twice),
        (Tear::CloseAfter, Sent::Twice),
        (Tear::CutHead, Sent::Twice),
        (Tear::CutChunks, Sent::OnceOrTwice),
        (Tear::StallBody, Sent::Often),
        (Tear::Trickle, Sent::Once),
    ];
    for (text, sent) in [
        (PAGE, Sent::Once),
        (BUSY, Sent::Twice),
        (GATEWAY, Sent::Twice),
        (MISSING, Sent::Once),
        (NO_LENGTH, Sent::Twice),
        (NO_HTTP, Sent::Twice),
    ] {
        cases.push((Tear::Text(text), sent));
        cases.push((Tear::CarryOutAndText(text), sent));
    }
    cases
}

/// A client that reaches the server through this one.
fn through(torn: &TornServer, server: &TableServer, policy: RetryPolicy) -> TableClient {
    let account = server.credential().account().to_owned();
    let service = TableServiceClient::builder(format!("http://{}/{account}", torn.address()))
        .credential(server.credential())
        .retry(policy.delay(Duration::ZERO))
        .build();
    service.unwrap().table("Tests")
}

#[tokio::test]
async fn every_verb_survives_one_lost_connection() {
    let run = |(tear, sent): (Tear, Sent)| async move {
        let server = TableServer::in_process();
        let journal = server.journal();
        let torn = TornServer::start(server.transport()).await.unwrap();
        let attempt = match sent {
            Sent::Often => Duration::from_millis(300),
            _ => Duration::from_secs(30),
        };
        let policy = RetryPolicy::exponential().try_timeout(attempt);
        let table = through(&torn, &server, policy);
        let other = direct(&server);
        other.create_table().await.unwrap();
        for verb in Verb::all() {
            let row = prepare(&other, verb).await;
            journal.clear();
            let before = torn.connections();
            let (name, reads_first) = (format!("{tear:?}"), usize::from(verb.reads_first()));
            torn.plan(std::iter::repeat_n(Tear::Pass, reads_first).chain([tear.clone()]));
            let outcome = verb.run(&table, row).await;
            let connections = torn.connections() - before;
            let shown = format!("{name}, {verb:?}: {outcome:?}, {connections} connections");
            if let Err(error) = &outcome {
                // The client knows of every request: nothing below it repeats any.
                assert_eq!(error.attempts() as usize, connections, "{shown}");
            }
            // In addition to retries: the read before the write; a read of the entity; the marker,
            // which is inserted, deleted or read.
            let more = if verb.is_exactly_once { 3 } else { 1 } + reads_first;
            let (least, most) = match sent {
                Sent::Once => (1, 1),
                Sent::Twice => (2, 2),
                Sent::OnceOrTwice => (1, 2),
                Sent::Often => (2, 10),
            };
            assert!((least..=most + more).contains(&connections), "{shown}");
            let applied = applied(&journal);
            judge(&name, (verb, Trace::Ambiguous), &outcome, &other, applied).await;
            if tear == Tear::Pass || tear == Tear::Trickle {
                assert!(outcome.is_ok(), "{shown}");
            }
        }
    };
    // Most of the time of some cases is waiting.
    stream::iter(cases()).for_each_concurrent(4, run).await;
}

#[tokio::test]
async fn attempts_end_if_each_connection_is_lost() {
    let server = TableServer::in_process();
    let torn = TornServer::start(server.transport()).await.unwrap();
    let policy = RetryPolicy::exponential().attempts(5);
    let table = through(&torn, &server, policy);
    direct(&server).create_table().await.unwrap();
    for tear in [Tear::ResetBefore, Tear::ResetDuring, Tear::Text("")] {
        torn.plan(vec![tear.clone(); 5]);
        let row = Employee::ada();
        let error = table.insert(&row).await.unwrap_err();
        assert!(error.is_outcome_unknown(), "{tear:?}: {error:?}");
        assert_eq!(error.attempts(), 5, "{tear:?}: {error:?}");
        // The marker shows that it was not applied.
        torn.plan(vec![tear.clone(); 5]);
        let error = table.insert(&row).exactly_once().await.unwrap_err();
        assert_eq!(
            error.kind(),
            tablesdk::ErrorKind::Transport,
            "{tear:?}: {error:?}"
        );
    }
}
