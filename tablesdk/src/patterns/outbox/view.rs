//! Reads the outbox of a partition.

use std::time::Duration;

use tablesdk_protocol::wire::json::EntityCursor;
use tablesdk_protocol::{PartitionKey, TableName, Timestamp};

use super::entry::{Entry, Row, StepState};
use super::head::{Head, row_key};
use crate::action::query::own_pages::OwnPages;
use crate::action::query::request::QueryRequest;
use crate::error::Error;
use crate::filter::rows_in_partition;
use crate::pipeline::{Effect, OperationRun, date_of};

/// Entities of one partition, in the order of their row keys.
pub(super) struct Rows {
    pub(super) found: Vec<Row>,
    /// True if there are no other entities.
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
    /// True if this is the whole outbox.
    pub(super) is_complete: bool,
    pub(super) now: Timestamp,
}

impl View {
    /// Reads the head and the first entries as one page, if the service does not end it after the
    /// head: the service reads a page at one instant, and several pages not.
    ///
    /// An entry that is set aside, or put back, between two pages could be in none of them. The
    /// later steps of its entity would then be applied before it. So the entries that were set
    /// aside are read separately, and the head shows that none was moved meanwhile.
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
            let range = (&*StepState::Removed.prefix(), END);
            let rows = read(run, table, partition.as_str(), range, usize::MAX).await?;
            view.removed = rows.entries(StepState::Removed);
        }
        Ok(view)
    }

    async fn page(
        run: &mut OperationRun<'_>,
        table: &TableName,
        partition: &PartitionKey,
    ) -> Result<Self, Error> {
        let of_head = row_key();
        let is_head = |row: &Row| row.row_key() == of_head;
        let mut rows = read(run, table, partition.as_str(), (&of_head, END), 1).await?;
        let mut head = Head::of(rows.found.iter().find(|row| is_head(row)), partition)?;
        // The service ended the page after the head. The head is read after the entries, so that it
        // shows whether one was moved meanwhile.
        if !rows.is_complete && rows.found.iter().all(is_head) {
            let range = (&*StepState::Logged.prefix(), END);
            rows = read(run, table, partition.as_str(), range, 1).await?;
            head = Head::read(run, table, partition).await?;
        }
        Ok(Self {
            head,
            log: rows.entries(StepState::Logged),
            removed: rows.entries(StepState::Removed),
            dead: Vec::new(),
            is_complete: rows.is_complete,
            now: rows.now,
        })
    }

    /// Returns true if an entry of that write is left.
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
    pub(super) fn entries(&self, state: StepState) -> Vec<Entry> {
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
    let range = (&*StepState::Dead.prefix(), &*row_key());
    let rows = read(run, table, partition.as_str(), range, usize::MAX).await?;
    Ok(rows.entries(StepState::Dead))
}

/// Reads the entities of a partition from one row key to another: those of the first pages that
/// have some, at most so many.
pub(super) async fn read(
    run: &mut OperationRun<'_>,
    table: &TableName,
    partition: &str,
    (from, to): (&str, &str),
    pages: usize,
) -> Result<Rows, Error> {
    let filter = rows_in_partition(partition, from, to);
    let mut own_pages = OwnPages::new(QueryRequest::own(table.clone(), filter, None));
    let mut found = Vec::new();
    let mut count = 0;
    loop {
        let request = own_pages.request(run.pipeline())?;
        let response = run.send(Effect::ReadNow, &request).await?;
        // A server without a network sends no time: its client has its clock.
        let now = date_of(response.headers()).unwrap_or_else(|| run.pipeline().now());
        let rows = own_pages.read(response, |entity| {
            Row::read(&mut EntityCursor::new(entity), None)
        });
        let rows = rows.and_then(|rows| {
            let rows = rows.into_iter().collect::<Result<Vec<_>, _>>();
            rows.map_err(Error::entity)
        });
        found.extend(rows.map_err(|error| run.annotate(error))?);
        count += 1;
        if own_pages.is_last() || count >= pages && !found.is_empty() {
            return Ok(Rows {
                found,
                is_complete: own_pages.is_last(),
                now,
            });
        }
        own_pages.advance().map_err(|error| run.annotate(error))?;
    }
}

/// Sorts after the row keys of all entries.
pub(super) const END: &str = "~tablesdk.outbox.~";
