//! Several servers over one database, and the checker that judges them: nothing acknowledged is
//! lost, no batch is applied in part, and the operations on each entity have an order that explains
//! all results.
//!
//! `survival` kills servers and databases under the operations of many clients. `views` shows that
//! all servers see what one of them wrote, `outcomes` cuts connections to the database,
//! `round_trips` counts the statements of requests, and `database` is about what servers do with
//! it.
//!
//! `register` says what an operation does to an entity, `history` notes what clients did and saw,
//! and `linearizable` looks for the order. `planted` and `simulated` show that it finds what a
//! faulty store would do. `TABLESDK_SHARED_STORE_OPERATIONS` and `TABLESDK_SHARED_STORE_INCREMENTS`
//! make the runs longer; `TABLESDK_SHARED_STORE_SEED` sets the seed, or makes it `random`.

mod cluster;
mod counters;
mod database;
mod frontier;
mod history;
mod linearizable;
mod one_server;
mod outcomes;
mod planted;
mod register;
mod relay;
mod relayed;
mod round_trips;
mod simulated;
mod survival;
mod views;
mod worker;
mod workload;
