//! The patterns of the table design guide as the client has them.

mod better_index;
mod costs;
mod entity;
mod index_faults;
mod indexes;
mod repair;

use harness::on_both_transports;
