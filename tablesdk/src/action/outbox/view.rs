//! Reads the outbox of a partition.

use std::time::Duration;

use http::header;
use tablesdk_protocol::filter::{ComparisonOperator, Filter};
use tablesdk_protocol::operation::query_entities::Response;
use tablesdk_protocol::wire::json::{EntityMembers, JsonError, read_page};
use tablesdk_protocol::{PartitionKey, TableName, Timestamp};

use super::entry::{Entry, Row, State};
use super::head::{Head, row_key};
use crate::action::query::request::QueryRequest;
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun};
use crate::query::Continuations;

/// Entities of one partition, in the order of their row keys.
pub(super) struct Rows {
    pub(super) found: Vec<Row>,
    /// Whether there are no others.
    is_complete: bool,
    /// The time of the service.
    now: Timestamp,
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
            let rows = read(run, table, partition.as_str(), range, usize::MAX).await?;
            view.removed = rows.entries(State::Removed);
        }
        Ok(view)
    }

    async fn page(
        run: &mut OperationRun<'_>,
        table: &TableName,
        partition: &PartitionKey,
    ) -> Result<Self, Error> {
        let rows = read(run, table, partition.as_str(), (&row_key(), END), 1).await?;
        let mut found = rows.found.iter();
        let head = found.find(|row| row.row_key() == row_key());
        Ok(Self {
            head: Head::of(head, partition)?,
            log: rows.entries(State::Logged),
            removed: rows.entries(State::Removed),
            dead: Vec::new(),
            is_complete: rows.is_complete,
            now: rows.now,
        })
    }

    /// Whether an entry of that write is left.
    pub(super) fn has(&self, pointer: &str) -> bool {
        self.pointers().any(|of_entry| of_entry == pointer)
    }

    /// The ids of the writes that the entries are of.
    pub(super) fn pointers(&self) -> impl Iterator<Item = &str> {
        let entries = [&self.log, &self.removed, &self.dead].into_iter().flatten();
        entries.map(Entry::pointer)
    }

    /// How long ago an entry was written, by the clock of the service.
    pub(super) fn age(&self, entry: &Entry) -> Duration {
        age(self.now, entry.written())
    }
}

fn age(now: Timestamp, written: Option<Timestamp>) -> Duration {
    match written {
        Some(written) if written < now => now.abs_diff(written),
        _ => Duration::ZERO,
    }
}

impl Rows {
    pub(super) fn entries(&self, state: State) -> Vec<Entry> {
        let entries = self.found.iter();
        entries.filter_map(|row| Entry::read(state, row)).collect()
    }

    /// How long ago one of them was written, by the clock of the service.
    pub(super) fn age(&self, row: &Row) -> Duration {
        age(self.now, row.timestamp())
    }
}

/// The entries that were set aside.
pub(super) async fn read_dead(
    run: &mut OperationRun<'_>,
    table: &TableName,
    partition: &PartitionKey,
) -> Result<Vec<Entry>, Error> {
    let range = (&*State::Dead.prefix(), &*row_key());
    let rows = read(run, table, partition.as_str(), range, usize::MAX).await?;
    Ok(rows.entries(State::Dead))
}

/// Reads the entities of a partition from one row key to another: those of the first pages that have some, at most so many.
pub(super) async fn read(
    run: &mut OperationRun<'_>,
    table: &TableName,
    partition: &str,
    (from, to): (&str, &str),
    pages: usize,
) -> Result<Rows, Error> {
    use ComparisonOperator::{Equal, GreaterThanOrEqual, LessThan};

    let compare = |name, operator, text: &str| Filter::comparison(name, operator, text.to_owned());
    let filter = compare("PartitionKey", Equal, partition)
        .and(compare("RowKey", GreaterThanOrEqual, from))
        .and(compare("RowKey", LessThan, to));
    let query = QueryRequest {
        unsealed: None,
        table: table.clone(),
        filter: Some(filter),
        select: None,
        hides_expired: None,
    };
    let mut found = Vec::new();
    let (mut continuation, continuations) = (None, Continuations::new());
    let mut count = 0;
    loop {
        let request = query.for_page(None, continuation.clone(), run.pipeline())?;
        let response = run.send(Effect::ReadNow, &request).await?;
        // A server without a network sends no time: its client has its clock.
        let date = response.headers().get(header::DATE);
        let date = date.and_then(|date| Timestamp::parse_http_date(date.to_str().ok()?).ok());
        let now = date.unwrap_or_else(|| run.pipeline().now());
        let page = Response::decode(response);
        let mut rows = Vec::new();
        let listed = read_page(&page.content, |entity| {
            rows.push(Row::read(&mut EntityMembers::Listed(entity), None));
            Ok::<_, JsonError>(())
        });
        let rows = listed.map_err(Error::response).and_then(|()| {
            let rows = rows.into_iter().collect::<Result<Vec<_>, _>>();
            rows.map_err(Error::entity)
        });
        found.extend(rows.map_err(|error| run.annotate(error))?);
        count += 1;
        // SERVICE: a page may be empty although others follow.
        if page.continuation.is_none() || count >= pages && !found.is_empty() {
            return Ok(Rows {
                found,
                is_complete: page.continuation.is_none(),
                now,
            });
        }
        let advanced = continuations.advance(continuation.as_ref(), page.continuation.as_ref());
        advanced.map_err(|error| run.annotate(Error::response(error)))?;
        continuation = page.continuation;
    }
}

/// Sorts after the row keys of all entries.
pub(super) const END: &str = "~tablesdk.outbox.~";
