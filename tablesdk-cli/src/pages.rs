//! Reads whole tables page by page, with a position after each page.
//!
//! This is not a snapshot: an entity that is written during the export may or may not be read. An
//! entity that does not change is read once. Stored access policies and service properties are not
//! read, and of what the client stores for purposes of its own, some stays behind: see
//! [`own`](crate::own).

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tablesdk::query::PageToken;
use tablesdk::{DynamicEntity, Error, Stored, TableServiceClient};

use crate::lines::Totals;
use crate::own::{AsStored, LeftBehind, OwnEntities, Selector};

/// Reads tables in the order of their names, without regard to case.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use tablesdk::{DynamicEntity, TableServiceClient};
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = TableServiceClient::from_connection_string(&server.connection_string())?;
/// # service.table("Employees").create_table().await?;
/// # service.table("Employees").insert(&DynamicEntity::new("Sales", "1")).await?;
/// use tablesdk_cli::pages::TablePages;
///
/// let mut pages = TablePages::open(&service, &[], None).await?;
/// while let Some(page) = pages.next().await? {
///     println!("{} entities of {}", page.entities.len(), page.table);
/// }
/// assert_eq!(pages.position().totals.entities, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TablePages {
    service: TableServiceClient,
    /// The tables of which no page was read.
    left: VecDeque<String>,
    /// The filter of each query.
    filter: Option<String>,
    position: Position,
}

/// A position after a page. It serializes, so that another process can resume there.
///
/// It contains the name of a table and a key in readable form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Position {
    /// The number of tables of which a page was read, and the number of entities that were read and
    /// did not stay behind.
    pub totals: Totals,
    #[serde(default)]
    selector: Selector,
    /// The table of the page, and the start of its next page.
    table: Option<(String, Option<PageToken>)>,
}

impl Position {
    /// How many of the entities are the client's own.
    pub const fn own(&self) -> OwnEntities {
        self.selector.own
    }

    /// How many of the client's own entities stayed behind.
    pub const fn left_behind(&self) -> LeftBehind {
        self.selector.left
    }
}

/// A page of one table.
#[derive(Debug)]
#[non_exhaustive]
pub struct TablePage {
    /// The name of the table.
    pub table: String,
    /// True if this is the first page of the table.
    pub is_first: bool,
    /// The entities of one response of the service. There may be none, also if further pages of the
    /// table have some.
    pub entities: Vec<DynamicEntity>,
    /// An error for each entity that cannot be read, such as one with a property of an unknown
    /// type. The totals do not count them.
    pub unreadable: Vec<Error>,
}

impl TablePages {
    /// Selects tables: those with these names, or all tables of the account if there are no names.
    /// With a position, reads only what comes after it.
    ///
    /// # Errors
    ///
    /// When the tables of the account cannot be listed.
    pub async fn open(
        service: &TableServiceClient,
        tables: &[String],
        resume: Option<Position>,
    ) -> Result<Self, Error> {
        let mut left = tables.to_vec();
        if tables.is_empty() {
            left = service.tables().collect().await?;
        }
        left.sort_by_key(|name| name.to_ascii_lowercase());
        left.dedup_by(|a, b| a.eq_ignore_ascii_case(b));
        let position = resume.unwrap_or_default();
        if let Some((last, _)) = &position.table {
            let last = last.to_ascii_lowercase();
            left.retain(|name| name.to_ascii_lowercase() > last);
        }
        Ok(Self {
            service: service.clone(),
            left: left.into(),
            filter: None,
            position,
        })
    }

    /// Reads only entities that match an OData filter. Those of the client itself that match it go
    /// along.
    pub fn select(&mut self, filter: Option<String>) {
        self.filter = filter;
    }

    /// Reads the next page: one response of the service. Returns `None` after the last one.
    ///
    /// # Errors
    ///
    /// When the request fails, such as for a table that does not exist. The position does not
    /// change.
    pub async fn next(&mut self) -> Result<Option<TablePage>, Error> {
        let (table, token) = match &self.position.table {
            Some((table, Some(token))) => (table.clone(), Some(token.clone())),
            _ => match self.left.front() {
                Some(table) => (table.clone(), None),
                None => return Ok(None),
            },
        };
        let is_first = token.is_none();
        let query = self.service.table(&table).query::<AsStored>();
        let unreadable = Arc::new(Mutex::new(Vec::new()));
        let errors = Arc::clone(&unreadable);
        let query = match &self.filter {
            Some(filter) => query.odata(filter),
            None => query,
        };
        let query = query.skip_unreadable(move |error| locked(&errors).push(error));
        let page = query.one_response().page(token).await?;
        if is_first {
            self.left.pop_front();
            self.position.totals.tables += 1;
            self.position.selector.begin_table();
        }
        let mut entities = Vec::with_capacity(page.items.len());
        for AsStored(entity) in page.items.into_iter().map(Stored::into_inner) {
            if self.position.selector.takes(&entity) {
                entities.push(entity);
            }
        }
        self.position.totals.entities += entities.len() as u64;
        self.position.table = Some((table.clone(), page.next));
        Ok(Some(TablePage {
            table,
            is_first,
            entities,
            unreadable: mem::take(&mut *locked(&unreadable)),
        }))
    }

    /// The position after the last page that was read.
    pub const fn position(&self) -> &Position {
        &self.position
    }

    /// The number of tables of which no page was read.
    pub fn tables_left(&self) -> usize {
        self.left.len()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
