//! [`TestTable`]: a table for one test.

use std::fmt;
use std::ops::Deref;
use std::thread;

use tokio::runtime::Builder;

use crate::client::{TableClient, TableServiceClient};
use crate::random::random_guid;
use crate::transport::InProcessServer;

/// A table for one test: on a server in the process of the test, or in a live account.
///
/// It is a [`TableClient`] by dereference. Each `TestTable` is empty and has a server of its own,
/// so tests run in parallel. If the environment variable `TABLESDK_TEST_ACCOUNT` contains a
/// connection string, the same test runs in that account, in a table with a name of its own, which
/// is deleted when the `TestTable` is dropped, also by a panic. A variable without any characters
/// but spaces counts as absent.
///
/// A test that pauses tokio's time cannot run in an account: while it waits for the network, its
/// time limits pass at once. It creates its table with [`TestTable::on`], which does not read the
/// variable.
///
/// ```
/// # use tablesdk::TableEntity;
/// # #[derive(TableEntity)]
/// # struct Employee {
/// #     #[table(partition_key)]
/// #     department: String,
/// #     #[table(row_key)]
/// #     id: String,
/// # }
/// use tablesdk::testing::TestTable;
/// use tablesdk_server::TableServer;
///
/// # /*
/// #[tokio::test]
/// # */
/// async fn raises_salary() -> tablesdk::Result<()> {
///     let table = TestTable::new(TableServer::in_process).await;
///     table.insert(&Employee { department: "Sales".to_owned(), id: "1".to_owned() }).await?;
///     assert_eq!(table.query::<Employee>().count().await?, 1);
///     Ok(())
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// #     raises_salary().await.unwrap();
/// # }
/// ```
#[must_use = "a table of a test ends when it is dropped"]
pub struct TestTable<S> {
    table: TableClient,
    home: Home<S>,
}

enum Home<S> {
    Server(S),
    /// The connection string of an account.
    Account(String),
}

impl<S: InProcessServer> TestTable<S> {
    /// Creates the table, on a new server, or in the account of `TABLESDK_TEST_ACCOUNT`. The
    /// function is not called for an account.
    ///
    /// # Panics
    ///
    /// When the table cannot be created: a test without its table has failed.
    pub async fn new(server: impl FnOnce() -> S) -> Self {
        let account = std::env::var(ACCOUNT).ok();
        // A secret that a CI system does not have is often an empty string.
        match account.filter(|account| !account.trim().is_empty()) {
            Some(connection_string) => Self::in_account(connection_string).await,
            None => Self::on(server()).await,
        }
    }

    /// Creates the table on a server.
    ///
    /// # Panics
    ///
    /// When the table cannot be created.
    pub async fn on(server: S) -> Self {
        let service = TableServiceClient::in_process(&server);
        Self::with_client(&service, server).await
    }

    /// Creates the table on a server, with a client of this server that has options of its own,
    /// such as a retry policy.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tablesdk::testing::TestTable;
    /// use tablesdk::{RetryPolicy, TableServiceClientBuilder};
    /// use tablesdk_server::TableServer;
    ///
    /// let server = TableServer::in_process();
    /// let service = TableServiceClientBuilder::in_process(&server).retry(RetryPolicy::none()).build()?;
    /// let table = TestTable::with_client(&service, server).await;
    /// assert!(table.table_exists().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When the table cannot be created.
    pub async fn with_client(service: &TableServiceClient, server: S) -> Self {
        let table = service.table("Test");
        create(&table).await;
        Self {
            table,
            home: Home::Server(server),
        }
    }
}

impl<S> TestTable<S> {
    /// Creates the table in an account, under a random name. It is deleted when this is dropped.
    ///
    /// # Panics
    ///
    /// When the table cannot be created.
    pub async fn in_account(connection_string: impl Into<String>) -> Self {
        let connection_string = connection_string.into();
        let service = TableServiceClient::from_connection_string(&connection_string);
        let service = service.unwrap_or_else(|error| panic!("the account of the test: {error}"));
        let name = format!("Test{}", random_guid().to_string().replace('-', ""));
        let table = service.table(name);
        create(&table).await;
        Self {
            table,
            home: Home::Account(connection_string),
        }
    }

    /// The server, to inject faults or to read its journal. `None` in an account: a test that needs
    /// its server ends there, or skips that part.
    pub const fn server(&self) -> Option<&S> {
        match &self.home {
            Home::Server(server) => Some(server),
            Home::Account(_) => None,
        }
    }
}

async fn create(table: &TableClient) {
    if let Err(error) = table.create_table().await {
        panic!("the table of the test cannot be created: {error}");
    }
}

impl<S> Deref for TestTable<S> {
    type Target = TableClient;

    fn deref(&self) -> &TableClient {
        &self.table
    }
}

/// Deletes the table of an account, and waits for it.
impl<S> Drop for TestTable<S> {
    fn drop(&mut self) {
        let Home::Account(connection_string) = &self.home else {
            return;
        };
        let name = self.table.name();
        // The runtime of the test cannot be waited for here, and connections belong to a runtime.
        thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = Builder::new_current_thread().enable_all().build();
                let service = TableServiceClient::from_connection_string(connection_string);
                if let (Ok(runtime), Ok(service)) = (runtime, service) {
                    // The table remains if the service cannot be reached. Its name says where it
                    // comes from.
                    let _ = runtime.block_on(async { service.table(name).delete_table().await });
                }
            });
        });
    }
}

impl<S> fmt::Debug for TestTable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestTable")
            .field("table", &self.table)
            .field("is_in_account", &matches!(self.home, Home::Account(_)))
            .finish()
    }
}

/// The variable of the environment.
const ACCOUNT: &str = "TABLESDK_TEST_ACCOUNT";
