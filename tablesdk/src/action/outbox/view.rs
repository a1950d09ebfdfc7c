//! Reads the outbox of a partition.

use std::time::Duration;

use http::{HeaderMap, header};
use tablesdk_protocol::filter::{ComparisonOperator, Filter};
use tablesdk_protocol::operation::query_entities::Response;
use tablesdk_protocol::wire::json::{JsonEntity, JsonError, read_page};
use tablesdk_protocol::{ETag, EntityKey, PartitionKey, TableName, Timestamp, Value};

use super::entry::{Entry, State};
use super::head::{Head, row_key};
use crate::action::query::request::QueryRequest;
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun};
use crate::query::Continuations;

/// An entity of the outbox as it is stored.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) key: EntityKey,
    pub(super) etag: ETag,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) values: Vec<(String, Value)>,
}

/// Entities of one partition, in the order of their row keys.
pub(super) struct Rows {
    pub(super) found: Vec<Row>,
    /// Whether there are no others.
    pub(super) is_complete: bool,
    /// The time of the service.
    pub(super) now: Timestamp,
}

/// The outbox of a partition at one instant.
pub(super) struct View {
    pub(super) head: Head,
    /// The first of the entries that are to be applied, in order.
    pub(super) log: Vec<Entry>,
    pub(super) removed: Vec<Entry>,
    /// All that were set aside.
    pub(super) dead: Vec<Entry>,
    /// Whether nothing of the outbox is missing here.
    pub(super) is_complete: bool,
    pub(super) now: Timestamp,
}

impl View {
    /// Reads the head and the first entries as one page: the service reads a page at one instant, and several pages not.
    ///
    /// An entry that is set aside, or put back, between two pages could be in none of them. The later steps of its entity would then be
    /// applied before it. So the entries that were set aside are read separately, and the head shows that none was moved meanwhile.
    pub(super) async fn read(
        run: &mut OperationRun<'_>,
        table: &TableName,
        partition: &PartitionKey,
    ) -> Result<Self, Error> {
        let mut view = Self::page(run, table, partition).await?;
        while view.head.moves > 0 {
            let moves = view.head.moves;
            let dead = read_dead(run, table, partition).await?;
            view = Self::page(run, table, partition).await?;
            if view.head.moves == moves {
                view.dead = dead;
                break;
            }
        }
        if !view.is_complete {
            // The graves of steps that are no longer in the log are older than the page.
            let range = (&*State::Removed.prefix(), END);
            let rows = read_all(run, table, partition.as_str(), range).await?;
            view.removed = entries(State::Removed, rows);
        }
        Ok(view)
    }

    async fn page(
        run: &mut OperationRun<'_>,
        table: &TableName,
        partition: &PartitionKey,
    ) -> Result<Self, Error> {
        let read = read_rows(run, table, partition.as_str(), (&row_key(), END)).await?;
        let mut view = Self {
            head: Head::new(),
            log: Vec::new(),
            removed: Vec::new(),
            dead: Vec::new(),
            is_complete: read.is_complete,
            now: read.now,
        };
        for row in read.found {
            if row.key.row_key().as_str() == row_key() {
                view.head = Head::of(row)?;
            } else if let Some(entry) = Entry::read(State::Logged, row.clone()) {
                view.log.push(entry);
            } else if let Some(entry) = Entry::read(State::Removed, row) {
                view.removed.push(entry);
            }
        }
        Ok(view)
    }

    /// Whether an entry of that write is left.
    pub(super) fn has(&self, pointer: &str) -> bool {
        self.entries().any(|entry| entry.pointer == pointer)
    }

    /// The ids of the writes that the entries are of.
    pub(super) fn pointers(&self) -> impl Iterator<Item = String> {
        self.entries().map(|entry| entry.pointer.clone())
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        [&self.log, &self.removed, &self.dead].into_iter().flatten()
    }

    /// How long ago something was written, by the clock of the service.
    pub(super) fn age(&self, written: Option<Timestamp>) -> Duration {
        age(self.now, written)
    }
}

pub(super) fn age(now: Timestamp, written: Option<Timestamp>) -> Duration {
    match written {
        Some(written) if written < now => now.abs_diff(written),
        _ => Duration::ZERO,
    }
}

/// The entries that were set aside.
pub(super) async fn read_dead(
    run: &mut OperationRun<'_>,
    table: &TableName,
    partition: &PartitionKey,
) -> Result<Vec<Entry>, Error> {
    let range = (&*State::Dead.prefix(), &*row_key());
    let rows = read_all(run, table, partition.as_str(), range).await?;
    Ok(entries(State::Dead, rows))
}

fn entries(state: State, rows: Rows) -> Vec<Entry> {
    let entries = rows
        .found
        .into_iter()
        .filter_map(|row| Entry::read(state, row));
    entries.collect()
}

/// Reads all entities of a partition from one row key to another, in as many pages as there are.
pub(super) async fn read_all(
    run: &mut OperationRun<'_>,
    table: &TableName,
    partition: &str,
    range: (&str, &str),
) -> Result<Rows, Error> {
    read_pages(run, table, partition, range, usize::MAX).await
}

/// Reads the first page with entities of a partition from one row key to another.
pub(super) async fn read_rows(
    run: &mut OperationRun<'_>,
    table: &TableName,
    partition: &str,
    range: (&str, &str),
) -> Result<Rows, Error> {
    read_pages(run, table, partition, range, 1).await
}

async fn read_pages(
    run: &mut OperationRun<'_>,
    table: &TableName,
    partition: &str,
    (from, to): (&str, &str),
    pages: usize,
) -> Result<Rows, Error> {
    let compare = |name, operator, text: &str| Filter::comparison(name, operator, text.to_owned());
    let filter = compare("PartitionKey", ComparisonOperator::Equal, partition)
        .and(compare(
            "RowKey",
            ComparisonOperator::GreaterThanOrEqual,
            from,
        ))
        .and(compare("RowKey", ComparisonOperator::LessThan, to));
    let query = QueryRequest {
        table: table.clone(),
        filter: Some(filter),
        select: None,
    };
    let mut rows = Vec::new();
    let (mut continuation, continuations) = (None, Continuations::new());
    let mut read = 0;
    loop {
        let endpoint = &run.pipeline().endpoint;
        let request = query.for_page(None, continuation.clone(), endpoint)?;
        let response = run.send(Effect::ReadNow, &request).await?;
        let now = time_of(response.headers()).unwrap_or_else(|| run.pipeline().now());
        let page = Response::decode(response);
        let mut of_page = Vec::new();
        let found = read_page(&page.content, |entity| {
            of_page.push(Row::read(entity));
            Ok::<_, JsonError>(())
        });
        let found = found.map_err(Error::response);
        let of_page = found.and_then(|()| of_page.into_iter().collect::<Result<Vec<_>, _>>());
        rows.extend(of_page.map_err(|error| run.annotate(error))?);
        read += 1;
        // SERVICE: a page may be empty although others follow.
        if page.continuation.is_none() || read >= pages && !rows.is_empty() {
            return Ok(Rows {
                found: rows,
                is_complete: page.continuation.is_none(),
                now,
            });
        }
        let advanced = continuations.advance(continuation.as_ref(), page.continuation.as_ref());
        advanced.map_err(|error| run.annotate(Error::response(error)))?;
        continuation = page.continuation;
    }
}

/// The time of the service. A server without a network sends none: its client has its clock.
fn time_of(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(header::DATE)?.to_str().ok()?;
    Timestamp::parse_http_date(date).ok()
}

impl Row {
    fn read(entity: &JsonEntity<'_>) -> Result<Self, Error> {
        let text = |name| entity.text(name).map_err(Error::response);
        let (Some(partition), Some(row), Some(etag)) =
            (text("PartitionKey")?, text("RowKey")?, entity.etag())
        else {
            return Err(Error::response("the entity has no key or no ETag"));
        };
        let key = EntityKey::new(partition, row).map_err(Error::response)?;
        let mut values = Vec::new();
        for property in entity.properties() {
            if let Some(value) = property.to_value().map_err(Error::response)? {
                values.push((property.name().to_owned(), value));
            }
        }
        Ok(Self {
            key,
            etag: etag.clone(),
            timestamp: entity.timestamp().map_err(Error::response)?,
            values,
        })
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        let mut values = self.values.iter();
        values
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }
}

/// Sorts after the row keys of all entries.
pub(super) const END: &str = "~tablesdk.outbox.~";
