//! The outbox: steps in other partitions and messages, which follow a transaction for certain.
//!
//! The entries of the outbox are committed together with the changes of the program, in their partition, and numbered by its head. The writer
//! or a worker ([`Outbox::drain`](drain::Outbox::drain)) applies them in that order. A pointer, written before the commit, leads workers to
//! the partition.
//!
//! Nothing of this is contained in a program that does not call `then`, and has no [`Outbox`](drain::Outbox).

mod apply;
mod commit;
pub(super) mod drain;
mod entry;
mod head;
#[cfg(feature = "json")]
pub(super) mod message;
pub(super) mod poisoned;
pub(super) mod step;
pub(super) mod steps;
mod view;
mod work;
