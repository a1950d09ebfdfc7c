//! [`Durability`]: which failures an acknowledged write survives.

/// Which failures an acknowledged write survives.
///
/// ```
/// use tablesdk_server::{Durability, TableServer};
///
/// # fn main() -> std::io::Result<()> {
/// # let place = tempfile::tempdir()?;
/// # let directory = place.path().join("tables");
/// let server = TableServer::builder().data(directory, Durability::Sync).in_process()?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// A write survives a crash of the process, but not a crash or power loss of the machine: it is
    /// passed to the operating system, which keeps it in memory for some seconds before it is on
    /// the disk. Several times faster with few writers.
    Relaxed,
    /// A write survives a crash or power loss of the machine, too: it is acknowledged after it is
    /// synced to the disk.
    #[default]
    Sync,
}
