//! The names of the tables, as the sidebar shows them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tablesdk::{Error, TableServiceClient};

use super::app::read_retries;
use crate::commands::ls::names;

/// The names of the tables, read again when they are old.
pub(super) struct Tables {
    service: TableServiceClient,
    known: Mutex<Option<Known>>,
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

    fn fresh(&self) -> Option<Vec<String>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|it| it.read.elapsed() < AGE_MAX)?;
        Some(known.names.clone())
    }
}

const AGE_MAX: Duration = Duration::from_secs(30);
