//! The names of the tables, as the sidebar shows them, and what pages have seen of each.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tablesdk::{Error, TableServiceClient};

use super::app::read_retries;
use super::url;
use crate::commands::ls::names;

/// The names of the tables, read again when they are old.
pub(super) struct Tables {
    service: TableServiceClient,
    known: Mutex<Option<Known>>,
    /// By the name in lower case.
    seen: Mutex<HashMap<String, Seen>>,
}

/// The facts that pages have seen of a table.
#[derive(Default)]
struct Seen {
    /// The first entities were nothing but those that the client keeps, such as entries of an
    /// index.
    is_kept: bool,
    /// One response of the service had the whole table.
    is_small: bool,
    /// The URL of the last query.
    last: Option<String>,
}

struct Known {
    names: Vec<String>,
    read: Instant,
}

impl Tables {
    pub(super) fn new(service: &TableServiceClient) -> Self {
        Self {
            service: service.clone(),
            known: Mutex::new(None),
            seen: Mutex::default(),
        }
    }

    /// The names. Those that were read a moment ago are returned without a request.
    pub(super) async fn names(&self) -> Result<Vec<String>, Error> {
        if let Some(names) = self.fresh() {
            return Ok(names);
        }
        let names = names(self.service.tables().retry(read_retries())).await?;
        let known = Known {
            names: names.clone(),
            read: Instant::now(),
        };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        Ok(names)
    }

    /// Reads the names again when they are asked for.
    pub(super) fn forget(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Notes what the first page of a table without a condition was: nothing but entities that the
    /// client keeps, and the whole table.
    pub(super) fn note(&self, table: &str, is_kept: bool, is_small: bool) {
        let mut seen = self.seen();
        let seen = seen.entry(table.to_ascii_lowercase()).or_default();
        (seen.is_kept, seen.is_small) = (is_kept, is_small);
    }

    pub(super) fn is_kept(&self, table: &str) -> bool {
        self.of(table, |it| it.is_kept)
    }

    /// Returns true if the last read of the table got all of it in one response.
    pub(super) fn is_small(&self, table: &str) -> bool {
        self.of(table, |it| it.is_small)
    }

    /// Notes the URL of a query which the service has answered.
    pub(super) fn remember(&self, table: &str, url: String) {
        if url.len() <= URL_BYTES_MAX {
            let mut seen = self.seen();
            seen.entry(table.to_ascii_lowercase()).or_default().last = Some(url);
        }
    }

    /// The URL of the entities of a table: those of the last query.
    pub(super) fn last(&self, table: &str) -> String {
        let last = self.of(table, |it| it.last.clone());
        last.unwrap_or_else(|| url::table(table))
    }

    /// Reads what was seen of a table. The result is the default for a table that no page has
    /// shown.
    fn of<R: Default>(&self, table: &str, read: impl FnOnce(&Seen) -> R) -> R {
        let seen = self.seen();
        let seen = seen.get(&table.to_ascii_lowercase());
        seen.map(read).unwrap_or_default()
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<String, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh(&self) -> Option<Vec<String>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|it| it.read.elapsed() < AGE_MAX)?;
        Some(known.names.clone())
    }
}

const AGE_MAX: Duration = Duration::from_secs(30);
const URL_BYTES_MAX: usize = 8 << 10;
