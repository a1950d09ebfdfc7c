//! Entities: types, keys, attributes and enums, as a program stores them and reads them back.
//!
//! Tests of [`on_both_transports`] also run at any other endpoint that the environment names:
//! `harness::elsewhere`.

mod attributes;
mod dynamic;
mod edm_types;
mod every_type;
mod heterogeneous;
mod json;
mod key_forms;
mod key_laws;
mod key_templates;
mod keys;
mod other_programs;
mod patches;
mod projections;
mod round_trips;
mod values;

use harness::{Employee, on_both_transports};
