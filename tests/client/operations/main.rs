//! Operations of the client on a server that works: their results, and what the table holds
//! afterwards.
//!
//! Tests of [`on_both_transports`] also run at any other endpoint that the environment names:
//! `harness::elsewhere`.

mod administration;
mod azurite;
mod bad_entities;
mod bad_input;
mod batches;
mod bulk;
mod chains;
mod continuations;
mod error_messages;
mod error_table;
mod fakes;
mod hints;
mod in_process;
mod modify;
mod modify_all;
mod paging;
mod queries;
mod reading_and_changing;
mod requests;
mod shared_access;
mod table_of_verbs;
mod tables;
mod tracked;
mod transactions;
mod user_delegation;
mod verbs;
mod written_entities;

use harness::{Employee, on_both_transports};
