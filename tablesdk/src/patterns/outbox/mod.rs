//! The outbox: steps in other partitions and messages, which follow a transaction for certain.
//!
//! The entries of the outbox are committed together with the changes of the program, in their
//! partition, and numbered by its head. The writer or a worker ([`Outbox::run`](Outbox::run))
//! applies them in that order. A pointer, written before the commit, leads workers to the
//! partition.
//!
//! Nothing of this is contained in a program that does not call `step`, and has no
//! [`Outbox`](Outbox).

mod accounts;
mod apply;
mod batch;
mod commit;
mod drain;
mod entry;
mod event;
mod head;
#[cfg(feature = "json")]
mod message;
mod pointers;
mod poisoned;
mod report;
mod run;
mod step;
mod steps;
mod view;
mod wake;
mod work;

pub use drain::{DrainOutbox, Outbox};
#[cfg(feature = "json")]
pub use message::{Message, Received};
pub use poisoned::PoisonedStep;
pub use report::DrainReport;
pub use step::Step;
