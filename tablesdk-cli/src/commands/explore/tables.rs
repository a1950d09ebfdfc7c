//! The names of the tables, as the sidebar shows them.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tablesdk::{Error, TableServiceClient};

use super::app::read_retries;
use crate::commands::ls::names;

/// The names of the tables, read again when they are old.
pub(super) struct Tables {
    service: TableServiceClient,
    known: Mutex<Option<Known>>,
    /// The tables of which a page had nothing but entities that the client keeps, such as entries of an index.
    kept: Mutex<BTreeSet<String>>,
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
            kept: Mutex::default(),
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

    /// Notes whether a table was seen to have nothing but entities that the client keeps.
    pub(super) fn note(&self, table: &str, is_kept: bool) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if is_kept {
            kept.insert(table.to_owned());
        } else {
            kept.remove(table);
        }
    }

    pub(super) fn is_kept(&self, table: &str) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.contains(table)
    }

    fn fresh(&self) -> Option<Vec<String>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|it| it.read.elapsed() < AGE_MAX)?;
        Some(known.names.clone())
    }
}

const AGE_MAX: Duration = Duration::from_secs(30);
