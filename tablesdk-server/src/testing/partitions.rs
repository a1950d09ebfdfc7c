//! [`Partitions`]: the partition map of a table, as a test sees and changes it.

use std::io;

use tablesdk_protocol::{Clock as _, PartitionKey, TableName};

use super::partition_map::{Availability, PartitionMap};
use super::place::table_of;
use super::{Faults, VirtualClock};
use crate::flavor::Flavor;

/// The partition map of a table: the ranges of partition keys into which the service cuts it, each
/// served by one server at a time. Clones are the same map.
///
/// Returned by [`TableServer::partitions`](crate::TableServer::partitions). A new table has one
/// range. As in the service, a range border decides about three things:
///
/// * A page of a query ends there, with a continuation token. It may have fewer entities than a
///   full page, and none.
/// * A range can [move](Self::move_range) to another server. For some seconds of the server's
///   [clock](crate::TableServer::clock), requests to it get 503 `ServerBusy`, and then closed
///   connections.
/// * With [`Throttle::per_range`](super::Throttle::per_range), each range has a rate of its own. A
///   load that exceeds the rate for a minute splits the range and moves its upper half.
///
/// A partition is never divided. A table that is deleted and created again has one range again;
/// [`TableServer::reset`](crate::TableServer::reset) removes all maps. A request that gets a fault
/// of a [rule](super::FaultRule) meets no move, and is not counted.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// use tablesdk_server::TableServer;
///
/// let server = TableServer::in_process();
/// let partitions = server.partitions("Employees")?;
/// partitions.split_at("M")?;
/// let starts: Vec<_> = partitions.ranges().into_iter().map(|range| range.start).collect();
/// assert_eq!(starts, ["", "M"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Partitions {
    faults: Faults,
    clock: VirtualClock,
    table: (String, String),
}

/// A range of partitions that one server of the service serves; returned by
/// [`Partitions::ranges`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionRange {
    /// The first partition key of the range; empty for the first range.
    pub start: String,
    /// The partition key before which the range ends; `None` for the last range.
    pub end: Option<String>,
    /// The number of requests for entities since the range was made by a split, a merge or the
    /// first call of [`TableServer::partitions`](crate::TableServer::partitions). A query counts in
    /// the range where its page begins.
    pub requests: u64,
    /// The number of entities that these requests wrote or returned, or tried to.
    pub entities: u64,
    /// True if the range is served. False while it moves to another server.
    pub is_available: bool,
}

impl Partitions {
    pub(crate) fn new(
        faults: &Faults,
        clock: &VirtualClock,
        flavor: Flavor,
        account: &str,
        table: &str,
    ) -> io::Result<Self> {
        if flavor.is_cosmos_db() {
            let message = "Cosmos DB distributes partitions by a hash and not by ranges of keys";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        TableName::new(table).map_err(refused)?;
        let partitions = Self {
            faults: faults.clone(),
            clock: clock.clone(),
            table: table_of(account, table),
        };
        partitions.change(|_| ());
        Ok(partitions)
    }

    /// The ranges in the order of their keys.
    pub fn ranges(&self) -> Vec<PartitionRange> {
        let now = self.clock.now();
        self.change(|map| {
            let ranges = map.ranges().map(|(range, end)| PartitionRange {
                start: range.start.clone(),
                end: end.map(ToOwned::to_owned),
                requests: range.requests,
                entities: range.entities,
                is_available: range.availability(now) == Availability::Served,
            });
            ranges.collect()
        })
    }

    /// Splits the range of a partition: the upper half begins with the partition. Both halves are
    /// served at once; [`move_range`](Self::move_range) moves one of them.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] if a range begins there already, the key is not a valid
    /// partition key, or the table has 1,000 ranges.
    pub fn split_at(&self, partition_key: impl Into<String>) -> io::Result<()> {
        let key = checked(partition_key)?;
        let split = self.change(|map| map.split_at(&key));
        split.map_err(|problem| refused(format!("cannot split at {key:?}: {problem}")))
    }

    /// Merges the range that begins with a partition and the range before it.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] if no two ranges meet there.
    pub fn merge_at(&self, partition_key: impl Into<String>) -> io::Result<()> {
        let key = checked(partition_key)?;
        let merged = self.change(|map| map.merge_at(&key));
        merged.map_err(|problem| refused(format!("cannot merge at {key:?}: {problem}")))
    }

    /// Moves the range of a partition to another server, as the service does to balance the load.
    ///
    /// For three seconds of the server's [clock](crate::TableServer::clock), requests to the range
    /// get 503 `ServerBusy` and are not carried out. For two more seconds, the connection is reset
    /// instead of a response. Then the range is served again. The real times are not documented.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] if the key is not a valid partition key.
    pub fn move_range(&self, partition_key: impl Into<String>) -> io::Result<()> {
        let key = checked(partition_key)?;
        let now = self.clock.now();
        self.change(|map| map.range(&key).start_move(now));
        Ok(())
    }

    fn change<T>(&self, change: impl FnOnce(&mut PartitionMap) -> T) -> T {
        self.faults.change_partitions(&self.table, change)
    }
}

fn checked(partition_key: impl Into<String>) -> io::Result<String> {
    let key = PartitionKey::new(partition_key).map_err(refused)?;
    Ok(key.into_string())
}

fn refused(problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}
