//! `delete_all`: deletes what a query finds, by way of a bulk run of deletes.

use futures_util::{StreamExt as _, TryStreamExt as _};
use tablesdk_protocol::{ETag, EntityKey, IfMatch};

use super::report::{BulkError, BulkReport};
use super::run::BulkRun;
use super::send::Verb;
use crate::action::write::encoded::EncodedEntity;
use crate::pipeline::Table;
use crate::query::EntityStream;

/// Keys, with ETags where they were asked for.
type FoundKeys = EntityStream<(EntityKey, Option<ETag>)>;

/// Deletes what a query finds. See
/// [`QueryEntities::delete_all`](crate::action::QueryEntities::delete_all).
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
    find: Box<dyn FnOnce(Table, bool) -> FoundKeys + Send + 'a>,
    if_unchanged: bool,
}

impl<'a> DeleteAll<'a> {
    pub(crate) fn new(
        table: Table,
        find: impl FnOnce(Table, bool) -> FoundKeys + Send + 'a,
    ) -> Self {
        Self {
            bulk: BulkRun::new(table),
            find: Box::new(find),
            if_unchanged: false,
        }
    }

    /// Deletes only entities that have not changed since the query found them. The others stay, and
    /// are counted as [changed](super::BulkProgress::changed). Without this option, an entity that
    /// was found is deleted even if it has changed since.
    pub const fn if_unchanged(mut self) -> Self {
        self.if_unchanged = true;
        self
    }

    async fn run(self) -> Result<BulkReport, BulkError> {
        let if_unchanged = self.if_unchanged;
        let found = (self.find)(self.bulk.table.clone(), if_unchanged);
        let inputs = found.map_err(Into::into).map_ok(move |(key, etag)| {
            let if_match = etag.filter(|_| if_unchanged).map(IfMatch::ETag);
            Ok((EncodedEntity::of_key(key), if_match))
        });
        let bulk = self.bulk.with_input(Verb::Delete, inputs.boxed());
        bulk.run().await
    }
}

bulk_over_query!(
    DeleteAll { bulk, if_unchanged };
    /// Deletes nothing.
);
call_options!(impl[] DeleteAll<'_>, bulk.table.pipeline);
