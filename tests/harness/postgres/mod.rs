//! A real PostgreSQL for tests: a new, empty [`Database`] for a test that needs one, or a
//! [`Postgres`] of its own for a test that stops, kills and replaces the database.
//!
//! The programs of PostgreSQL 13 to 18 must be on the machine: see `programs.rs`.
//! `TABLESDK_TEST_POSTGRES`, the URL of a user who may create databases, without TLS, names a
//! database system that runs elsewhere: an own PostgreSQL, CockroachDB or YugabyteDB. Without
//! either, the tests are skipped, and standard error says so; with
//! `TABLESDK_TEST_POSTGRES_REQUIRED=1`, they fail instead.
//!
//! All functions block their thread, for milliseconds or, where a process starts or ends, for up to
//! some seconds. They may be called within any runtime.

mod cluster;
mod process;
mod programs;
mod sql;

use std::sync::OnceLock;

pub use self::cluster::{PASSWORD, PASSWORD_IN_URL, Postgres};
pub use self::programs::Programs;
pub use self::sql::sql;

/// The variable of the environment with the URL of a database system that runs elsewhere.
const ELSEWHERE: &str = "TABLESDK_TEST_POSTGRES";

/// A database that was empty at first. It is deleted when this is dropped.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
    /// The URL of another database of the same system.
    administrator: String,
}

/// A new, empty database, in a cluster that the tests of this process share. `None` if there is no
/// PostgreSQL, for which standard error has the reason.
///
/// The cluster starts with the first database, and ends with the process. It does not write to the
/// disk in time, so it is not for tests that kill it.
///
/// # Panics
///
/// If the cluster cannot be started; if there is none and the environment requires one.
pub fn database() -> Option<Database> {
    static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
    if let Ok(url) = std::env::var(ELSEWHERE) {
        return Some(Database::create(url, ""));
    }
    let shared = SHARED.get_or_init(Postgres::start_shared).as_ref()?;
    // Without a wait for the disk, the copy of files is the faster way. Before version 15, it is
    // the only one.
    let options = if shared.programs().version() >= 15 {
        "STRATEGY file_copy"
    } else {
        ""
    };
    Some(Database::create(shared.url("postgres"), options))
}

impl Database {
    fn create(administrator: String, options: &str) -> Self {
        let name = format!("tablesdk_test_{:016x}", fastrand::u64(..));
        let created = sql(&administrator, &format!("CREATE DATABASE {name} {options}"));
        created.unwrap_or_else(|error| panic!("cannot create a database: {error:?}"));
        Self {
            url: with_database(&administrator, &name),
            name,
            administrator,
        }
    }

    /// Its URL, with a user who may do everything in it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs SQL in it: [`sql()`].
    pub fn sql(&self, text: &str) -> Vec<String> {
        sql(&self.url, text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let Self {
            name,
            administrator,
            ..
        } = self;
        // A server may still be connected. Not every system knows the word for that.
        let ends = sql(administrator, &format!("DROP DATABASE {name} WITH (FORCE)"));
        if ends.is_err() {
            sql(administrator, &format!("DROP DATABASE {name}")).ok();
        }
    }
}

/// The URL of another database of the same system.
fn with_database(url: &str, name: &str) -> String {
    let (address, parameters) = match url.split_once('?') {
        Some((address, parameters)) => (address, format!("?{parameters}")),
        None => (url, String::new()),
    };
    let start = address.find("://").map_or(0, |scheme| scheme + 3);
    let end = address[start..].find('/');
    let end = end.map_or(address.len(), |path| start + path);
    format!("{}/{name}{parameters}", &address[..end])
}
