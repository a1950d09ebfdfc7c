//! `tables rm`: one entity, or those that a query finds.

use clap::Args;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use tablesdk::key::EntityKey;
use tablesdk::{ETag, Error, TableClient};
use tablesdk_cli::own::outbox::partitions;
use tablesdk_cli::own::{AsStored, Kept, MARKS};

use super::Transfer;
use super::get::{existing, missing};
use crate::account::Account;
use crate::error::{AnyError, with_causes};
use crate::escape::key;
use crate::guard::{Guard, etag};
use crate::output::{Bar, Report, Subject, counted};
use crate::prompt::confirmed;
use crate::removal::{Found, Removed};
use crate::selection::{Selection, note_access};

/// Delete one entity, or those that a query finds
///
///   tables rm Employees Sales 000017
///   tables rm Logins --partition ann --rows ..2024-03-01 --dry-run
///   tables rm Logins --partition ann --rows ..2024-03-01
///   tables rm Logins20240311 --drop
///
/// One entity is deleted without a question; the exit code is 1 if there is none. A query
/// asks first, with the number of entities. Entities that change in between stay.
///
/// Entities that the client of tablesdk keeps in step with others, such as entries of
/// indexes, are deleted with --force only.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Rm {
    /// The table
    table: String,
    /// The partition key
    #[arg(requires = "row_key", conflicts_with = "Selection")]
    partition_key: Option<String>,
    /// The row key
    row_key: Option<String>,
    #[command(flatten)]
    selection: Selection,
    /// Delete the entity only if this is its ETag
    #[arg(long, value_name = "ETAG", requires = "row_key", value_parser = etag)]
    if_match: Option<ETag>,
    #[command(flatten)]
    query: OfQuery,
    /// Delete the table itself, with all that is in it
    #[arg(long, conflicts_with_all = ["row_key", "if_match", "Selection", "dry_run", "scan"])]
    drop: bool,
    #[command(flatten)]
    guard: Guard,
    #[command(flatten)]
    account: Account,
}

/// Options of queries alone
#[derive(Args)]
#[group(conflicts_with = "row_key")]
struct OfQuery {
    /// Print how many entities would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Delete without a question
    #[arg(long)]
    yes: bool,
    /// Look at the whole table if nothing else finds the entities
    #[arg(long)]
    scan: bool,
}

impl Transfer for Rm {
    async fn run(mut self) -> Result<Report, AnyError> {
        let table = self.account.connect()?.table(&self.table);
        let mut report = Report {
            verb: "Deleted",
            subject: Subject::Entities(self.table),
            ..Report::default()
        };
        let is_dry = self.query.dry_run;
        let keys = self.partition_key.as_deref().zip(self.row_key.as_deref());
        if self.drop {
            if drop_table(&table, self.query.yes, &mut self.guard).await? {
                report.totals.tables = 1;
                report.subject = Subject::Table(table.name().to_owned());
            }
        } else if let Some(key) = keys {
            remove_one(&table, key, self.if_match, &mut self.guard).await?;
            report.totals.entities = 1;
        } else {
            let selection = &self.selection;
            self.query
                .remove(&table, selection, &mut self.guard, &mut report)
                .await?;
        }
        if report.totals.entities > 0 && !is_dry {
            self.guard.note_mends();
        }
        Ok(report)
    }
}

/// Deletes a table, after a yes. Steps of an outbox would be lost with it.
async fn drop_table(
    table: &TableClient,
    is_confirmed: bool,
    guard: &mut Guard,
) -> Result<bool, AnyError> {
    let name = table.name();
    if !partitions(table).await?.is_empty() {
        guard.check_steps(name)?;
    }
    let question = format!("Delete the table {name} with all its entities?");
    if !is_confirmed && !confirmed(&question, "--yes").await? {
        return Ok(false);
    }
    if table.delete_table().await? {
        return Ok(true);
    }
    Err(format!("there is no table {name}").into())
}

async fn remove_one(
    table: &TableClient,
    (partition, row): (&str, &str),
    if_match: Option<ETag>,
    guard: &mut Guard,
) -> Result<(), AnyError> {
    let found = existing::<AsStored>(table, (partition, row)).await?;
    guard.check(&key(partition, row), Kept::of(&found.0))?;
    guard.check_table(table, Some(partition)).await?;
    let if_match = if_match.unwrap_or(ETag::ANY);
    if table.delete((partition, row)).if_match(if_match).await? {
        return Ok(());
    }
    Err(missing(table, (partition, row)).into())
}

impl OfQuery {
    async fn remove(
        self,
        table: &TableClient,
        selection: &Selection,
        guard: &mut Guard,
        report: &mut Report,
    ) -> Result<(), AnyError> {
        note_access(&selection.query(table).explain()?, self.scan)?;
        guard.check_table(table, selection.partition()).await?;
        let found = find(table, selection, guard).await?;
        if self.dry_run {
            report.verb = "Would delete";
            report.totals.entities = found.count();
            return Ok(());
        }
        let entities = counted(found.count(), "entity", "entities");
        let question = format!("Delete {entities} of {}?", table.name());
        let is_empty = found.count() == 0;
        if is_empty || !self.yes && !confirmed(&question, "--yes, or --dry-run").await? {
            return Ok(());
        }
        let bar = Bar::of_entities(found.count());
        let mut removed = Removed::default();
        let deleted = found.delete(table, &bar, &mut removed).await;
        drop(bar);
        report.totals.entities = removed.deleted;
        report.changed = removed.changed;
        report.failed = removed.changed;
        report.error = deleted.err().map(|error| with_causes(&*error));
        Ok(())
    }
}

/// An entity that is found, and whether the client keeps it.
type Candidate = (EntityKey, ETag, Option<Kept>);

/// The entities, all of which may be deleted.
async fn find(
    table: &TableClient,
    selection: &Selection,
    guard: &mut Guard,
) -> Result<Found, AnyError> {
    let mut found = Found::new()?;
    let mut entities: BoxStream<'_, Result<Candidate, Error>> = if guard.is_forced() {
        let mut all = table.query::<AsStored>();
        if let Some(filter) = selection.odata(table)? {
            all = all.odata(&filter);
        }
        let all = all.stream();
        all.map_ok(|it| (it.key().clone(), it.etag().clone(), Kept::of(&it.0)))
            .boxed()
    } else {
        let marks = selection.query(table).select(|e| e.properties(MARKS));
        let marks = marks.stream();
        marks
            .map_ok(|it| (it.key().clone(), it.etag().clone(), Kept::of(&it)))
            .boxed()
    };
    while let Some((entity, etag, kept)) = entities.try_next().await? {
        let (partition, row) = (entity.partition_key().as_str(), entity.row_key().as_str());
        guard.check(&key(partition, row), kept)?;
        found.add(partition, row, &etag)?;
    }
    Ok(found)
}
