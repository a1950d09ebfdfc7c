//! The patterns of the table design guide as the client has them.

mod at_primary;
mod better_index;
mod chunked;
mod copies;
mod copy_repair;
mod costs;
mod counters;
mod doubled_entries;
mod doubled_requests;
mod encryption;
mod enums;
mod expiry;
mod expiry_removal;
mod hot_partition;
mod index_races;
mod indexes;
mod leases;
mod move_races;
mod moves;
mod names;
mod objects;
mod other_partitions;
mod outbox;
mod parts;
mod reads;
mod repair;
mod resumed_repair;
mod rolling;
mod scenarios;
mod sequences;
mod series;
mod staff;
mod test_store;
mod wide;

use harness::on_both_transports;
