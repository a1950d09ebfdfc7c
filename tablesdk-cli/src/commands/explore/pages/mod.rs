//! The pages, one file each.

pub(super) mod bench;
pub(super) mod columns;
pub(super) mod copy;
pub(super) mod entities;
pub(super) mod entity;
pub(super) mod history;
pub(super) mod home;
pub(super) mod review;
pub(super) mod schema;
