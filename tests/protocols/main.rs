//! Models of the protocols that write several partitions: every interleaving of their clients.

mod entries;
mod explore;
mod moves;
mod outbox;
mod unique;
