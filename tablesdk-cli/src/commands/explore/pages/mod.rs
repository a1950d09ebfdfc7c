//! The pages, one file each, and parts of them.

pub(super) mod bench;
pub(super) mod columns;
pub(super) mod copy;
mod decision;
pub(super) mod entities;
pub(super) mod entity;
pub(super) mod history;
pub(super) mod home;
pub(super) mod review;
pub(super) mod schema;

use serde::Deserialize;

/// The field of the URL of a page that can be searched.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Search {
    find: String,
}
