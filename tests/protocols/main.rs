//! Models of the protocols that write several partitions: every interleaving of their clients.

mod explore;
mod outbox;
