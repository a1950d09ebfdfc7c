//! The tables of a server as a whole: snapshots, text for tests, and lines of JSON.

use std::fmt;
use std::io;

use super::TableServer;
use crate::storage::Checkpoint;

/// All tables of a server at one moment; returned by [`TableServer::snapshot`].
///
/// It shares memory with the server, as far as the tables did not change since.
#[derive(Clone)]
pub struct ServerSnapshot {
    checkpoint: Checkpoint,
    /// True if its entities contain their keys, as those of the flavor `CosmosDb`.
    stores_keys: bool,
}

impl fmt::Debug for ServerSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSnapshot").finish_non_exhaustive()
    }
}

impl TableServer {
    /// Keeps all tables as they are now, with their entities, policies and settings, to be
    /// [restored](Self::restore) later. It takes the same time for any number of entities.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tablesdk_server::TableServer;
    ///
    /// let server = TableServer::in_process();
    /// server.load(r#"{"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Age":36}}"#).await?;
    /// let before = server.snapshot()?;
    /// server.load(r#"{"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"2","Age":50}}"#).await?;
    /// server.restore(&before)?;
    /// assert_eq!(server.dump()?, "Employees\nEmployees(PartitionKey='Sales',RowKey='1')\n  Age = 36\n");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] for a server with a data directory, which has backups, or
    /// over PostgreSQL.
    pub fn snapshot(&self) -> io::Result<ServerSnapshot> {
        let checkpoint = self.service.engine().checkpoint();
        let snapshot = checkpoint.map(|checkpoint| ServerSnapshot {
            checkpoint,
            stores_keys: self.service.flavor().stores_keys(),
        });
        snapshot.ok_or_else(in_memory_only)
    }

    /// Replaces all tables by those of a snapshot, of this server or of another one. The time
    /// depends on what was changed since, and not on the number of entities.
    ///
    /// Timestamps continue to increase: an ETag that a client knows never becomes that of another
    /// version. Faults, journals and the clock stay as they are. Requests that faults hold back
    /// change the restored tables later; [`reset`](Self::reset) drops them.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] for a server with a data directory or over PostgreSQL;
    /// [`io::ErrorKind::InvalidInput`] if only one of the two servers has the flavor
    /// [`CosmosDb`](crate::testing::Flavor::CosmosDb), which stores entities in another form.
    pub fn restore(&self, snapshot: &ServerSnapshot) -> io::Result<()> {
        if snapshot.stores_keys != self.service.flavor().stores_keys() {
            let message =
                "the flavor CosmosDb stores entities in another form: `save` and `load` move them";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let is_restored = self.service.restore(&snapshot.checkpoint);
        is_restored.then_some(()).ok_or_else(in_memory_only)
    }

    /// Deletes all tables and settings. Timestamps begin again with the time of the clock, even if
    /// it was set back.
    ///
    /// Requests that [faults](Self::faults) hold back are dropped, and have no effect. The
    /// [partition maps](Self::partitions) are removed with their tables. The faults, journals and
    /// the clock stay as they are.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] for a server with a data directory or over PostgreSQL.
    pub fn reset(&self) -> io::Result<()> {
        let is_reset = self.service.reset();
        is_reset.then_some(()).ok_or_else(in_memory_only)
    }

    /// The tables of the first account as text, for assertions and snapshot tests: sorted, without
    /// timestamps, and one property a line. Strings are written as in JSON, and other values as in
    /// `$filter`, so each shows its type.
    ///
    /// ```text
    /// Employees
    /// Employees(PartitionKey='Sales',RowKey='1')
    ///   Badge = 7L
    ///   Name = "Ada"
    /// ```
    ///
    /// # Errors
    ///
    /// When a data directory cannot be read, or the tables are in a PostgreSQL database, which
    /// servers share.
    pub fn dump(&self) -> io::Result<String> {
        let text = self.service.dump(self.account.account());
        text.map_err(io::Error::other)
    }

    /// The tables of the first account as lines of JSON, as the command `tables export` writes
    /// them.
    ///
    /// # Errors
    ///
    /// When a data directory cannot be read, or the tables are in a PostgreSQL database, which
    /// servers share.
    pub fn save(&self) -> io::Result<Vec<u8>> {
        let lines = self.service.save(self.account.account());
        lines.map_err(io::Error::other)
    }

    /// Adds tables and entities to those of the first account, from lines of JSON, as
    /// [`save`](Self::save) and `tables export` write them. An entity replaces one with the same
    /// key. The first and the last line of a file may be missing, and tables are created with their
    /// first entity.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidData`], with the number of the line, for one that is malformed, or
    /// that the service would refuse. The lines before it are loaded.
    pub async fn load(&self, lines: impl AsRef<[u8]> + Send) -> io::Result<()> {
        let account = self.account.account();
        self.service.load(account, lines.as_ref()).await
    }
}

fn in_memory_only() -> io::Error {
    let message = "only a server in memory has snapshots: one with a data directory has backups, \
                   and one over PostgreSQL the tools of the database";
    io::Error::new(io::ErrorKind::Unsupported, message)
}
