//! The patterns of the table design guide as the client has them.

mod better_index;
mod costs;
mod design_guide;
mod elsewhere;
mod entity;
mod index_faults;
mod indexes;
mod repair;
mod rolling;

use harness::on_both_transports;
