//! The client under faults: lost and malformed responses, retries, expired credentials, and what it
//! reports about them.

mod ambiguous_outcomes;
mod call_options;
mod credential_rotation;
mod doubled_requests;
mod exactly_once;
mod faults;
mod feature_interactions;
mod late_requests;
mod malformed_responses;
mod mixed_up_responses;
mod observability;
mod patches;
mod retries;
mod secondary;
mod tls;
mod tokens;
mod transactions;

use std::time::Duration;

use bytes::Bytes;
use harness::{Employee, Subject, on_both_transports};
use http::Response;
use tablesdk::{RetryPolicy, TableClient};
use tablesdk_server::testing::Faults;

/// A server in process, a table of a client that retries, and the faults of the server.
async fn start() -> (Subject, TableClient, Faults) {
    Subject::with_table(RetryPolicy::exponential()).await
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn with_header(mut to: Response<Bytes>, (name, value): (&'static str, &str)) -> Response<Bytes> {
    to.headers_mut().insert(name, value.parse().unwrap());
    to
}
