//! `export`: all tables, or some, page by page, with the position after each page.

use std::collections::VecDeque;
use std::sync::Arc;

use super::position::Place;
use super::{ExportPosition, Record};
use crate::TableServiceClient;
use crate::entity::DynamicEntity;
use crate::error::Error;
use crate::query::{EntityStream, Pages};

/// Reads whole tables. See [`TableServiceClient::export`].
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use futures::TryStreamExt;
/// use tablesdk::transfer::{ExportPosition, Record};
///
/// let mut chunks = service.export().tables(["Employees"]).page_size(100).stream();
/// let mut entities = 0;
/// let mut position = String::new();
/// while let Some(chunk) = chunks.try_next().await? {
///     entities += chunk.records.iter().filter(|r| matches!(r, Record::Entity { .. })).count();
///     // To go on from, when the rest has to wait: `export().resume(…)` takes it.
///     position = chunk.position.to_string();
/// }
/// assert_eq!(entities, 1);
/// assert!(position.parse::<ExportPosition>()?.is_end());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "an export does nothing until its stream is read"]
pub struct Export {
    service: TableServiceClient,
    tables: Option<Vec<String>>,
    page_size: Option<usize>,
    resume: Option<ExportPosition>,
}

/// Some records of an export, and where it goes on after them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Chunk {
    /// The records, in order: those of one page, and of what begins or ends around it.
    pub records: Vec<Record>,
    /// What [`Export::resume`] takes to go on after these records.
    pub position: ExportPosition,
    /// How many tables are left after the one of these records.
    pub tables_left: usize,
}

impl Export {
    pub(crate) const fn new(service: TableServiceClient) -> Self {
        Self {
            service,
            tables: None,
            page_size: None,
            resume: None,
        }
    }

    /// Reads only these tables; they must exist. Without this option, all tables of the account are read, as they are listed when
    /// the export starts or resumes.
    pub fn tables<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.tables = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The number of entities to ask for in one request, from 1 to 1,000; a [`Chunk`] has at most that many. 1,000 by default.
    pub fn page_size(mut self, count: usize) -> Self {
        self.page_size = Some(count);
        self
    }

    /// Resumes after a chunk of an earlier export of the same account and tables. A table that was created in between is read if
    /// its name comes later in the order.
    pub fn resume(mut self, position: ExportPosition) -> Self {
        self.resume = Some(position);
        self
    }

    /// The records, chunk by chunk, in the order of the tables' names without regard to case. Ends after the first error:
    /// those of the service, such as `TableNotFound` when a table was deleted in between, and
    /// [`ErrorKind::Response`](crate::ErrorKind::Response) for an entity that cannot be read.
    pub fn stream(self) -> EntityStream<Chunk> {
        let Self {
            service,
            tables,
            page_size,
            resume,
        } = self;
        let reader = Arc::new(Reader { service, page_size });
        let mut begin = Some((tables, resume));
        EntityStream::follow(Pages::default(), move |_, walk: Option<Walk>| {
            let reader = Arc::clone(&reader);
            let begin = begin.take();
            async move {
                let walk = match (walk, begin) {
                    (Some(walk), _) => walk,
                    (None, Some((tables, resume))) => reader.begin(tables, resume).await?,
                    (None, None) => return Ok((Vec::new(), None)),
                };
                reader.next(walk).await
            }
        })
    }
}

/// How far an export has come.
struct Walk {
    is_start: bool,
    position: ExportPosition,
    /// The tables that were not begun.
    left: VecDeque<String>,
}

struct Reader {
    service: TableServiceClient,
    page_size: Option<usize>,
}

impl Reader {
    async fn begin(
        &self,
        tables: Option<Vec<String>>,
        resume: Option<ExportPosition>,
    ) -> Result<Walk, Error> {
        let mut names = match tables {
            Some(names) => names,
            None => self.service.tables().collect().await?,
        };
        // Names of tables are compared without regard to case.
        names.sort_by_key(|name| name.to_ascii_lowercase());
        names.dedup_by(|a, b| a.eq_ignore_ascii_case(b));
        match &resume {
            None => {}
            Some(ExportPosition { place, .. }) => match place {
                Place::Table { name: last, .. } => {
                    let last = last.to_ascii_lowercase();
                    names.retain(|name| name.to_ascii_lowercase() > last);
                }
                Place::Tables | Place::End => names.clear(),
            },
        }
        Ok(Walk {
            is_start: resume.is_none(),
            position: resume.unwrap_or(ExportPosition {
                tables: 0,
                entities: 0,
                place: Place::Tables,
            }),
            left: names.into(),
        })
    }

    /// The next chunk: a page with what begins before it, or the end.
    async fn next(&self, walk: Walk) -> Result<(Vec<Chunk>, Option<Walk>), Error> {
        let Walk {
            is_start,
            position,
            mut left,
        } = walk;
        let ExportPosition {
            mut tables,
            mut entities,
            place,
        } = position;
        let mut records = Vec::new();
        if is_start {
            records.push(Record::Start);
        }
        let (name, page) = match place {
            Place::End => return Ok((Vec::new(), None)),
            Place::Table {
                name,
                page: Some(page),
            } => (name, Some(page)),
            Place::Table { page: None, .. } | Place::Tables => match left.pop_front() {
                Some(name) => {
                    records.push(Record::Table { name: name.clone() });
                    tables += 1;
                    (name, None)
                }
                None => {
                    records.push(Record::End { tables, entities });
                    let position = ExportPosition {
                        tables,
                        entities,
                        place: Place::End,
                    };
                    let chunk = Chunk {
                        records,
                        position,
                        tables_left: 0,
                    };
                    return Ok((vec![chunk], None));
                }
            },
        };
        let mut query = self.service.table(name.as_str()).query::<DynamicEntity>();
        if let Some(count) = self.page_size {
            query = query.page_size(count);
        }
        let page = query.page(page).await?;
        entities += page.items.len() as u64;
        records.extend(page.items.into_iter().map(|entity| Record::Entity {
            table: name.clone(),
            entity: entity.into_inner(),
        }));
        let position = ExportPosition {
            tables,
            entities,
            place: Place::Table {
                name,
                page: page.next,
            },
        };
        let chunk = Chunk {
            records,
            position: position.clone(),
            tables_left: left.len(),
        };
        let walk = Walk {
            is_start: false,
            position,
            left,
        };
        Ok((vec![chunk], Some(walk)))
    }
}
