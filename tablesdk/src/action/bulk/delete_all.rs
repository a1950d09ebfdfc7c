//! `delete_all`: deletes what a query finds, by way of a bulk run of deletes.

use std::fmt;
use std::pin::Pin;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use tablesdk_protocol::{ETag, EntityKey, IfMatch};

use super::input::SourceError;
use super::report::{BulkError, BulkProgress, BulkReport};
use super::report::{Cause, Outcome, ReportBuilder};
use super::run::BulkRun;
use super::send::Verb;
use crate::action::write::encoded::EncodedEntity;
use crate::pipeline::Table;
use crate::query::EntityStream;

/// Keys, with ETags where they were asked for.
type Found = EntityStream<(EntityKey, Option<ETag>)>;

/// Deletes what a query finds. See [`QueryEntities::delete_all`](crate::action::QueryEntities::delete_all).
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// # for id in ["1", "2", "3"] {
/// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
/// # }
/// let sales = || table.query::<Employee>().partition("Sales");
/// let found = sales().delete_all().dry_run().await?;
/// assert_eq!(found.progress().read, 3);
///
/// let report = sales().delete_all().if_unchanged().concurrency(4).await?;
/// assert_eq!((report.progress().written, report.progress().changed), (3, 0));
/// # Ok(())
/// # }
/// ```
#[must_use = "actions do nothing until awaited"]
pub struct DeleteAll<'a> {
    bulk: BulkRun<'a>,
    /// The query of a table; the second argument says whether to read the ETags.
    find: Box<dyn FnOnce(Table, bool) -> Found + Send + 'a>,
    if_unchanged: bool,
    dry_run: bool,
}

impl<'a> DeleteAll<'a> {
    pub(crate) fn new(table: Table, find: impl FnOnce(Table, bool) -> Found + Send + 'a) -> Self {
        Self {
            bulk: BulkRun::new(table),
            find: Box::new(find),
            if_unchanged: false,
            dry_run: false,
        }
    }

    /// Deletes nothing. The report's [`read`](BulkProgress::read) returns how many entities the query finds.
    pub const fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Deletes only entities that have not changed since the query found them. The others stay, and are counted as
    /// [changed](BulkProgress::changed). Without this option, an entity that was found is deleted even if it has changed since.
    pub const fn if_unchanged(mut self) -> Self {
        self.if_unchanged = true;
        self
    }

    /// How many batches are in flight at a time; 16 by default. Must not be 0, not even in a dry run.
    pub const fn concurrency(mut self, batches: usize) -> Self {
        self.bulk.concurrency = batches;
        self
    }

    /// Sets a function that is called with the progress after every batch; in a dry run, after every 1,000 entities.
    pub fn progress(mut self, report: impl FnMut(&BulkProgress) + Send + 'a) -> Self {
        self.bulk.progress = Box::new(report);
        self
    }

    async fn run(self) -> Result<BulkReport, BulkError> {
        self.bulk.check()?;
        let if_unchanged = self.if_unchanged;
        let found = (self.find)(self.bulk.table.clone(), if_unchanged);
        if self.dry_run {
            return count(found.map_err(Into::into).boxed(), self.bulk.progress).await;
        }
        let inputs = found.map_err(Into::into).map_ok(move |(key, etag)| {
            let if_match = etag.filter(|_| if_unchanged).map(IfMatch::ETag);
            Ok((EncodedEntity::of_key(key), if_match))
        });
        self.bulk
            .with_input(Verb::Delete, inputs.boxed())
            .run()
            .await
    }
}

/// Counts what a run would read.
pub(crate) async fn count<T>(
    mut found: BoxStream<'_, Result<T, SourceError>>,
    mut progress: impl FnMut(&BulkProgress),
) -> Result<BulkReport, BulkError> {
    let mut report = ReportBuilder::new(0);
    let mut count = 0;
    loop {
        match found.try_next().await {
            Ok(Some(_)) => {
                report.read(count);
                report.outcome(count, Outcome::Found);
                count += 1;
                if count % ENTITIES_PER_PROGRESS == 0 {
                    progress(report.progress(count));
                }
            }
            Ok(None) => return Ok(report.finish(count)),
            Err(error) => {
                return Err(BulkError::new(report.finish(count), Cause::Source(error)));
            }
        }
    }
}

impl<'a> IntoFuture for DeleteAll<'a> {
    type Output = Result<BulkReport, BulkError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

call_options!(impl[] DeleteAll<'_>, bulk.table.pipeline);

impl fmt::Debug for DeleteAll<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeleteAll")
            .field("bulk", &self.bulk)
            .field("if_unchanged", &self.if_unchanged)
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}

const ENTITIES_PER_PROGRESS: u64 = 1_000;
