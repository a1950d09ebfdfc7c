//! Several servers over one database, and the checker that judges them: nothing acknowledged is lost, no batch is applied in part,
//! and the operations on each entity have an order that explains all results.
//!
//! `register` says what an operation does to an entity, `history` notes what clients did and saw, and `linearizable` looks for the
//! order. `planted` and `simulated` show that it finds what a faulty store would do.

mod database;
mod frontier;
mod history;
mod linearizable;
mod one_server;
mod planted;
mod register;
mod simulated;
mod worker;
mod workload;
