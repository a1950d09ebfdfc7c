//! The patterns of the table design guide as the client has them.

mod better_index;
mod chunked;
mod compressed;
mod copies;
mod copy_faults;
mod costs;
mod counters;
mod design_guide;
mod entity;
mod expiry;
mod expiry_removal;
mod faults;
mod hot_partition;
mod index_faults;
mod indexes;
mod lease_faults;
mod leases;
mod move_faults;
mod moves;
mod names;
mod object_faults;
mod objects;
mod other_partitions;
mod outbox;
mod outbox_faults;
mod parts;
mod reads;
mod repair;
mod resumed_repair;
mod rolling;
mod sequences;
mod series;
mod staff;
mod test_store;

use harness::on_both_transports;
