//! The client under faults: lost and malformed responses, retries, expired credentials, and what it reports about them.

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

use harness::{Employee, on_both_transports};
