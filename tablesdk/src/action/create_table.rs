//! `create_table`: Create Table.

use std::time::Duration;

use http::StatusCode;
use tablesdk_protocol::ErrorCode;
use tablesdk_protocol::operation::Prefer;
use tablesdk_protocol::operation::create_table::Request;
use tablesdk_protocol::wire::json::MetadataLevel;

use super::write::ambiguous_write::resolve_without_entity;
use crate::error::Error;
use crate::pipeline::{PollBackoff, Table};

/// Creates a table. See [`TableClient::create_table`](crate::TableClient::create_table).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// use std::time::Duration;
///
/// let archive = service.table("Archive");
/// assert!(archive.create_table().if_missing().await?, "it was created");
/// assert!(!archive.create_table().if_missing().await?, "it was there");
///
/// // The name of a deleted table is taken for some time: wait for it, for up to a minute.
/// archive.delete_table().await?;
/// archive.create_table().wait(Duration::from_secs(60)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct CreateTable<const IF_MISSING: bool = false> {
    table: Table,
    wait: Option<Duration>,
}

impl CreateTable {
    pub(crate) const fn new(table: Table) -> Self {
        Self { table, wait: None }
    }

    /// Treats an existing table as success: the result says whether the table was created. When a
    /// response was lost, `true` may also mean that another client created the table at the same
    /// time.
    #[doc(alias = "if_not_exists")]
    pub fn if_missing(self) -> CreateTable<true> {
        CreateTable {
            table: self.table,
            wait: self.wait,
        }
    }

    async fn run(self) -> Result<(), Error> {
        self.create().await
    }
}

impl CreateTable<true> {
    async fn run(self) -> Result<bool, Error> {
        match self.create().await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some(&ErrorCode::TableAlreadyExists) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl<const IF_MISSING: bool> CreateTable<IF_MISSING> {
    /// Waits, at most for this time, while a table of the same name is being deleted. The service
    /// takes 40 seconds or more for a deletion. Without this option, `TableBeingDeleted` is
    /// reported at once.
    ///
    /// The pause between attempts is one second, then two, and so on up to five, measured by
    /// tokio's clock. Each attempt is an operation of its own under the client's
    /// [`RetryPolicy`](crate::RetryPolicy), whose deadline is separate from this time. A pause that
    /// would end after this time is not begun: the last `TableBeingDeleted` is reported instead.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tablesdk::TableServiceClient;
    /// # let server = tablesdk_server::TableServer::in_process();
    /// # let service = TableServiceClient::in_process(&server);
    /// # let table = service.table("Employees");
    /// # table.create_table().await?;
    /// use std::time::Duration;
    ///
    /// table.delete_table().await?;
    /// table.create_table().wait(Duration::from_secs(120)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(mut self, time: Duration) -> Self {
        self.wait = Some(time);
        self
    }

    async fn create(&self) -> Result<(), Error> {
        let pauses = self.wait.map(PollBackoff::new);
        let Some(mut pauses) = pauses else {
            return self.try_once().await;
        };
        loop {
            match self.try_once().await {
                Err(error)
                    if error.code() == Some(&ErrorCode::TableBeingDeleted)
                        && !error.is_outcome_unknown()
                        && pauses.pause().await => {}
                outcome => return outcome,
            }
        }
    }

    async fn try_once(&self) -> Result<(), Error> {
        let request = Request {
            name: self.table.checked_name(OPERATION)?,
            prefer: Prefer::ReturnNoContent,
            level: MetadataLevel::Minimal,
        };
        let request = request.encode(self.table.endpoint());
        let resolve = |sent: Result<_, Error>| match sent {
            // A client created it, most likely this one by an earlier attempt: a table does not
            // show who created it.
            Err(error)
                if error.is_ambiguous() && error.code() == Some(&ErrorCode::TableAlreadyExists) =>
            {
                Ok(())
            }
            sent => {
                let statuses = [StatusCode::CREATED, StatusCode::NO_CONTENT];
                resolve_without_entity(OPERATION, sent, &statuses)
            }
        };
        self.table
            .pipeline
            .write(OPERATION, &request, resolve)
            .await
    }
}

action!(impl[] CreateTable, table.pipeline => ());

action!(impl[] CreateTable<true>, table.pipeline => bool);

const OPERATION: &str = "create table";
