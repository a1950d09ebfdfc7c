//! The tables of the database, and their version.
//!
//! Servers that start at the same time on an empty database, or after an update, wait for each
//! other at the row with the version. A server whose tables exist needs no right to create any.

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::errors::{self, Lost};
use crate::storage::StorageError;

/// Makes sure that the tables of this version exist.
pub(super) async fn prepare(client: &ClientWrapper) -> Result<(), Unprepared> {
    let mut attempts = 0;
    loop {
        let version = match version(client).await {
            Ok(Some(VERSION)) => return check_rights(client).await,
            Ok(version) => version,
            Err(error) => return Err(failed(&error)),
        };
        if let Some(version) = version {
            return Err(Unprepared::Failed(StorageError::NewerSchema {
                version,
                known: VERSION,
            }));
        }
        let database = client.query_one("SELECT version()", &[]).await;
        let database: Result<String, _> = database.and_then(|row| row.try_get(0));
        let create = create(&database.map_err(|error| failed(&error))?);
        match client.batch_execute(&create).await {
            Ok(()) => {}
            // Another server creates them at this moment.
            Err(error) if is_race(&error) && attempts < ATTEMPTS_MAX => attempts += 1,
            Err(error) => return Err(failed(&error)),
        }
    }
}

/// Refuses a user who could not do what requests ask for.
async fn check_rights(client: &ClientWrapper) -> Result<(), Unprepared> {
    let row = match client.query_one(HAS_RIGHTS, &[]).await {
        Ok(row) => row,
        // A database without this function says so with the first request.
        Err(error) if error.as_db_error().is_some() => return Ok(()),
        Err(error) => return Err(failed(&error)),
    };
    let rights = (row.try_get(0), row.try_get(1));
    let (Ok(has_rights), Ok(user)): (Result<bool, _>, Result<String, _>) = rights else {
        return Ok(());
    };
    if has_rights {
        return Ok(());
    }
    Err(Unprepared::Failed(StorageError::Failed {
        what: "use the database",
        cause: format!(
            "the user {user} needs the rights SELECT, INSERT, UPDATE and DELETE on the table tablesdk_records"
        )
        .into(),
    }))
}

/// The version of the tables; `None` if there are none.
async fn version(client: &ClientWrapper) -> Result<Option<i32>, Error> {
    match client.query(READ_VERSION, &[]).await {
        Ok(rows) => rows.first().map(|row| row.try_get(0)).transpose(),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_race(error: &Error) -> bool {
    error.code().is_some_and(|code| {
        [
            SqlState::UNIQUE_VIOLATION,
            SqlState::DUPLICATE_TABLE,
            SqlState::DUPLICATE_OBJECT,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::INTERNAL_ERROR,
        ]
        .contains(code)
    })
}

fn failed(error: &Error) -> Unprepared {
    match errors::lost(error) {
        Ok(lost) => Unprepared::Lost(lost),
        Err(error) => Unprepared::Failed(error),
    }
}

/// Why the tables cannot be used.
pub(super) enum Unprepared {
    /// The database is not available.
    Lost(Lost),
    /// Another attempt would fail, too.
    Failed(StorageError),
}

const READ_VERSION: &str = "SELECT version FROM tablesdk_schema WHERE id = 1";

const HAS_RIGHTS: &str = "\
    SELECT has_table_privilege('tablesdk_records', 'SELECT') \
        AND has_table_privilege('tablesdk_records', 'INSERT') \
        AND has_table_privilege('tablesdk_records', 'UPDATE') \
        AND has_table_privilege('tablesdk_records', 'DELETE'), \
        current_user::text";

/// The statements that create the tables, in one transaction. The insert of the version waits for
/// that of another server.
///
/// Ranges of keys must lie together. YugabyteDB spreads the keys of an index over the machines by
/// their hashes unless they have an order, and PostgreSQL does not know an order of a primary key.
fn create(database: &str) -> String {
    let order = if database.contains("-YB-") {
        " ASC"
    } else {
        ""
    };
    format!(
        "CREATE TABLE IF NOT EXISTS tablesdk_schema ( \
            id integer NOT NULL PRIMARY KEY, \
            version integer NOT NULL \
        ); \
        CREATE TABLE IF NOT EXISTS tablesdk_records ( \
            key bytea NOT NULL, \
            version bigint NOT NULL, \
            replaced bigint, \
            record bytea, \
            removed_at timestamptz, \
            PRIMARY KEY (key{order}) \
        ); \
        CREATE INDEX IF NOT EXISTS tablesdk_present ON tablesdk_records (key ASC) \
            WHERE removed_at IS NULL; \
        CREATE INDEX IF NOT EXISTS tablesdk_removed ON tablesdk_records (removed_at ASC) \
            WHERE removed_at IS NOT NULL; \
        INSERT INTO tablesdk_schema (id, version) VALUES (1, {VERSION}) ON CONFLICT (id) DO NOTHING"
    )
}

/// The version of these tables.
const VERSION: i32 = 1;

/// How often the tables are created, if other servers create them at the same time.
const ATTEMPTS_MAX: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_order_on_every_database() {
        let postgres = "PostgreSQL 15.18 (Debian) on x86_64-pc-linux-gnu, compiled by gcc";
        assert!(create(postgres).contains("PRIMARY KEY (key)"));
        let yugabyte = "PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu";
        assert!(create(yugabyte).contains("PRIMARY KEY (key ASC)"));
    }
}
