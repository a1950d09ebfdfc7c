//! The structs that read the entities of a table, inferred from a sample of them: a Rust module for
//! `#[derive(TableEntity)]`.
//!
//! A struct states no more than all entities of the sample show: where they disagree, a key is a
//! plain string, and a property has no field of its own. This module knows no requests:
//! [`sampling`](crate::sampling) reads the sample.

mod check;
mod columns;
mod keys;
mod kinds;
mod looks;
mod model;
mod names;
mod properties;
mod sample;
mod source;
mod template;

pub use self::check::Unreadable;
pub use self::looks::{KeyLooks, KindLooks};
pub use self::model::Module;
pub use self::names::TypeName;
pub use self::sample::{LeftOut, Sample};
